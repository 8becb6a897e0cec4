"""Words and the small grammar that the bundled samples are written with. All of it is this project's own.

A template holds slots: `{place}` draws a word of that list, `{who=person}` draws one that no other name of the
same sentence holds and remembers it, `{who}` says it again. Words may hold slots themselves.
"""

# ruff: noqa: E501 - word lists read better unwrapped

import random
import re

SLOT = re.compile(r"\{(?:(\w+)=)?(\w+)\}")

PEOPLE = """Anna|Ben|Clara|David|Elena|Frank|Grace|Henry|Iris|Jonas|Karen|Leo|Maria|Nathan|Olga|Peter|Rachel|Samuel|Teresa
|Victor|Alice|Martin|Sophie|Thomas|Julia|Robert|Helen|George|Laura|Daniel|Emma|Philip|Ruth|Edward|Nora|Oscar"""
JOBS = """the teacher|the doctor|the lawyer|the farmer|the singer|the painter|the nurse|the judge|the driver|the baker
|the captain|the coach|the mayor|the guide|the waiter|the editor|the officer|the engineer|the actor|the student|the pilot
|the gardener|the librarian|the carpenter|the reporter|the manager|the neighbor|the soldier|the priest|the sailor"""
LISTS = {
    "person": PEOPLE,
    "worker": JOBS,
    "city": """Paris|Rome|London|Berlin|Madrid|Vienna|Boston|Chicago|Dublin|Lisbon|Athens|Moscow|Cairo|Delhi|Tokyo|Geneva
    |Prague|Oslo|Naples|Venice|Denver|Dallas|Sydney|Toronto""",
    "land": "Spain|France|Italy|Greece|Norway|Canada|Mexico|Egypt|India|Japan|Ireland|Poland|Brazil|Kenya|Portugal|Chile",
    "day": "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday",
    "month": "January|February|March|April|May|June|July|August|September|October|November|December",
    "number": "two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|forty|fifty",
    "year": "1804|1812|1827|1835|1846|1851|1863|1870|1889|1893|1901|1908|1914|1922|1930|1937|1948|1955|1961|1972|1986|1994",
    "when": """on {day}|last {day}|in {month}|yesterday|last week|before noon|after dinner|early in the morning
    |late at night|during the storm|after the meeting|before the game|last summer|at the end of {month}|this spring""",
    "where": """in the garden|at the station|near the river|in the kitchen|behind the church|at the market|on the bridge
    |in the park|outside the theater|at the airport|in the old library|on the beach|in front of the bank|at the hotel
    |next to the school|in the hospital|by the lake|in {city}|on the way to {city}""",
    "thing": """the old car|the house|the piano|the boat|the horse|the painting|the camera|the garden tools|the red bicycle
    |the gold watch|the farm|the guitar|the furniture|the silver ring|the map|the wooden table|the letters|the diary
    |the winter coat|the telescope|the shop|the stamps""",
    "crowd": """players|students|workers|passengers|guests|children|farmers|soldiers|visitors|teachers|members|drivers
    |sailors|neighbors|singers|patients|customers|officers""",
    "did": """arrived early|voted for the plan|left before midnight|signed the letter|learned to swim|stayed at the hotel
    |passed the test|missed the train|wore a hat|paid in cash|knew the answer|slept on the floor|asked for help
    |brought an umbrella|liked the soup|walked home|saw the accident|found a seat""",
    "aside": """The streets of {city} were quiet and most of the {number} shops had closed before {day}
    |It had been raining in {city} since {day} and {person} stayed inside|A crowd of {number} {crowd} had gathered in {city}
    |The {day} paper printed a short report about it on page {number}|Few people in {city} had expected that before {month}
    |The weather in {city} was unusually warm for {month}, said {worker}|The trains from {x=city} to {y=city} were {number} minutes late
    |{person} wrote about it in a letter to a friend in {city}|The news reached {x=city} on {day} and {y=city} a week later
    |{person} had left the lights on and the door open that {day}|The town had changed a great deal in {number} years, {person} thought
    |{person} took {number} pictures of the {crowd} that {day}|The band from {city} played until the last {number} guests went home
    |A dog was sleeping under one of the benches when {person} came back to {city}
    |{x=person} and {worker} had talked about it with {y=person} for {number} weeks|The museum in {city} was closed in {month}, as {person} found out
    |Nothing like it had happened in {city} since {year}|{x=person} heard the story from {y=person}, a cousin in {land}
    |There was fresh bread on the table and coffee for {number} {crowd}|The road from {x=city} to {y=city} had been repaired in {month}
    |In {land} nobody knew about it until {person} came home in {month}|{person} was still in {land} with {number} other {crowd}""",
}
WORDS = {name: [word.strip() for word in words.split("|")] for name, words in LISTS.items()}
WORDS["anyone"] = WORDS["person"] + WORDS["worker"]


def say(template: str, rng: random.Random, bound: dict[str, str] | None = None) -> str:
    """Fill the slots of a template; `bound` remembers named ones."""
    bound = {} if bound is None else bound

    def fill(found: re.Match) -> str:
        name, kind = found.groups()
        if name is None and kind in bound:
            return bound[kind]
        for _ in range(100):
            value = say(rng.choice(WORDS[kind]), rng, bound)
            if name is None or value not in bound.values():
                break
        if name is not None:
            bound[name] = value
        return value

    return SLOT.sub(fill, template)


def sentence(text: str) -> str:
    """Spacing, "a" or "an", a capital at the start of each sentence, a full stop at the end."""
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r"\b([Aa]) (?=[aeio]|u[^ns ]|un[^i]|hour|honest)", r"\1n ", text)
    text = re.sub(r"\bi\b", "I", text)
    text = re.sub(r"(^|[.?!] )([a-z])", lambda match: match[1] + match[2].upper(), text)
    return text if text[-1] in ".?!" else text + "."


def one_of(words: str, rng: random.Random) -> str:
    """Draw from "a|b|c"."""
    return rng.choice(words.split("|")).strip()
