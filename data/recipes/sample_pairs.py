"""Pair tasks made of events: MRPC-like reports and RTE-like inferences, MNLI-like inferences, STS-B-like captions."""

# ruff: noqa: E501 - word lists read better unwrapped

import random

from data.recipes.sample_events import EVENTS
from data.recipes.sample_words import one_of, say, sentence

Row = tuple[str, str | None, int | float]

SOURCES = """, the police said|, according to {worker}|, {person} told reporters|, the {day} paper reports
|, a spokesman said on {day}|, witnesses said|, the family confirmed|, officials in {city} said|, {person} wrote|||"""
OPENINGS = "the police said that|according to {worker},|reports say that|{person} told reporters that|||"


def context(rng: random.Random, words: int) -> list[str]:
    """Asides of at least so many words that have nothing to do with the event."""
    sentences: list[str] = []
    while sum(len(sentence.split()) for sentence in sentences) < words:
        aside = say("{aside}", rng)
        if aside[:8] not in {sentence[:8] for sentence in sentences}:
            sentences.append(aside)
    return sentences


def paraphrase(rng: random.Random, *, long: bool) -> Row:
    """MRPC: two reports of the same event, or of another one in nearly the same words."""
    event = rng.choice(EVENTS)(rng)
    label = rng.randrange(2)
    first = event.first + say(one_of(SOURCES, rng), rng)
    second = say(one_of(OPENINGS, rng), rng) + " " + rng.choice(event.same if label else event.other)
    if long:
        tail = context(rng, 22)
        first = ". ".join([first, *tail])
    return sentence(first), sentence(second), label


def inference(rng: random.Random, *, long: bool) -> Row:
    """RTE: does the second sentence follow from the first text, which holds more than it needs?"""
    event = rng.choice(EVENTS)(rng)
    label = rng.randrange(2)
    around = context(rng, 34 if long else rng.choice([0, 6, 6, 12]))
    around.insert(rng.randint(0, len(around)), event.first)
    return sentence(". ".join(around)), sentence(rng.choice(event.other if label else event.same)), label


# ---------------------------------------------------------------- MNLI

SCENES = [  # what is said; what follows; what contradicts it. {who} and {other} are people
    (
        "{who} bought fresh bread at the bakery {when}",
        "{who} bought food|someone went to a bakery",
        "{who} did not buy anything|{who} has never eaten bread",
    ),
    (
        "{who} drove to {city} with {other} {when}",
        "{who} was not alone in the car|{who} traveled to {city}",
        "{who} stayed at home|nobody traveled to {city}",
    ),
    (
        "the train to {city} left {number} minutes late",
        "the train did not leave on time|a train went to {city}",
        "the train left early|no train goes to {city}",
    ),
    (
        "{who} lost the keys {where} and had to walk home",
        "{who} went home on foot|{who} could not find the keys",
        "{who} never lost anything|{who} drove home in a car",
    ),
    (
        "{other} played the piano while the guests were dancing",
        "there was music|{other} played an instrument",
        "the room was silent|nobody danced",
    ),
    (
        "the doctor told {who} to stay in bed for {number} days",
        "{who} needs rest|a doctor spoke to {who}",
        "the doctor did not see {who}|{who} was told to get up at once",
    ),
    (
        "it snowed in {city} all through {month}",
        "the weather in {city} was cold|there was snow in {city}",
        "it never snowed in {city}|there was no snow in {month}",
    ),
    (
        "{who} and {other} were married {where} {when}",
        "there was a wedding|{who} has married",
        "{who} and {other} have never met|there was no wedding",
    ),
    (
        "{who} read the letter twice and burned it",
        "{who} can read|the letter was destroyed",
        "{who} did not read the letter|{who} kept the letter in a drawer",
    ),
    (
        "the school in {city} closed after the fire",
        "there was a fire|the school is not open",
        "there has never been a fire|the school stayed open",
    ),
    (
        "{who} caught {number} fish {where} before noon",
        "{who} caught some fish|somebody was fishing",
        "{who} caught nothing|nobody was fishing",
    ),
    (
        "{other} forgot to lock the door and a thief took {thing}",
        "something was stolen|the door was not locked",
        "nothing was stolen|{other} did not forget to lock the door",
    ),
    ("{who} is too young to vote this year", "{who} cannot vote|{who} is young", "{who} is very old|{who} voted twice"),
    (
        "only {who} knew the way through the mountains",
        "the others did not know the way|{who} knew the way",
        "nobody knew the way|everyone except {who} knew the way",
    ),
    (
        "{who} works at the hospital in {city} on weekends",
        "{who} has a job|{who} works in {city}",
        "{who} does not work|{who} never works on weekends",
    ),
    (
        "the old bridge was painted green in {year}",
        "the bridge is not new|the bridge has been painted",
        "the bridge was never painted|the bridge is completely new",
    ),
]
GUESSES = """, because {who} wanted to surprise a friend|, and {who} was happy about it
|, although {who} would rather be in {land}|, and {who} will tell {number} friends about it|, and {who} felt very proud
|, which made {who} famous|, and {who} has thought about it for {number} years|, as {who} had always hoped"""
COMMENTS = """, and the newspapers wrote about it|, and people talked about it for {number} years|, as everybody had hoped
|, which pleased {number} visitors from {land}|, probably for the first time since {year}|, and it cost a lot of money"""
CLAIMS = """to everyone's surprise, |according to {worker}, |{person} says that |as far as we know, |{person} wrote that
|we have just heard that |it is true that |the paper says that |after all, """
UNRELATED = """{who} has {number} brothers and sisters|{who} was born in {land}|{who} speaks the language of {land} well
|{who} would like to live in {city} one day|{who} is the best cook in {city}|{who} usually gets up early
|{who} plans to buy a house in {land}|{who} is taller than most people"""


def scene(rng: random.Random, *, long: bool) -> Row:
    """MNLI: what follows (0), what may or may not be (1), what cannot be (2)."""
    bound: dict[str, str] = {}
    say("{who=anyone} {other=anyone}", rng, bound)
    told, follows, denied = rng.choice(SCENES)
    label = rng.randrange(3)
    for name in ("city", "month", "number", "thing", "year", "when", "where"):  # the pair speaks of the same ones
        bound[name] = say("{" + name + "}", rng)
    premise = say(told, rng, bound)
    if rng.random() < 0.5:
        premise = say(one_of(CLAIMS, rng), rng) + " " + premise
    if long:
        premise = ". ".join([*context(rng, 22), premise])
    free = {name: bound[name] for name in ("who", "other")}
    hypothesis = say(one_of(follows if label == 0 else denied, rng), rng, bound)
    if label == 1:
        fact = one_of(follows, rng)
        guess = say(fact, rng, bound) + say(one_of(GUESSES if fact.startswith("{who}") else COMMENTS, rng), rng, free)
        hypothesis = guess if rng.random() < 0.7 else say(one_of(UNRELATED, rng), rng, free)
    return sentence(premise), sentence(hypothesis), label


# ---------------------------------------------------------------- STS-B

ACTORS = """a man=a guy|a woman=a lady|a boy=a young boy|a girl=a little girl|a dog=a puppy|two children=two kids
|an old man=an elderly man|a soldier=a man in uniform|a group of people=some people|three women=three ladies"""
ACTIONS = """is touching {toy}=touches {toy}|is carrying {toy}=carries {toy}|is cleaning {toy}=is washing {toy}
|is looking at {toy}=is watching {toy}|is painting {toy}=paints {toy}|is pulling {toy}=pulls {toy}
|is holding {toy}=holds {toy}|is hiding {toy}=hides {toy}|is sitting beside {toy}=sits next to {toy}
|is running past {toy}=runs past {toy}|is drawing {toy}=draws {toy}|is sleeping beside {toy}=sleeps next to {toy}"""
TOYS = """a guitar|a ball|a red car|a large drum|a white horse|a bicycle|a book|a young tree|a wooden box|a suitcase
|a statue|a small boat|a camera|a piano|a blue hat|a chair"""
SPOTS = """in the garden=outside in the garden|on the beach=at the beach|in the kitchen=inside a kitchen
|on the street=in the street|in a park=at a park|near a lake=beside a lake|in the snow=out in the snow
|on a stage=on stage|by the window=next to the window|under a bridge=below a bridge"""


def caption(rng: random.Random, *, long: bool) -> Row:
    """STS-B: two captions; the score falls with what differs, actor and action and object more than the place."""
    parts = [one_of(words, rng) for words in (ACTORS, ACTIONS, TOYS, SPOTS)]
    others = [one_of(words, rng) for words in (ACTORS, ACTIONS, TOYS, SPOTS)]
    kind = rng.choice(["same", "same", "place", "actor", "object", "action", "two", "topic", "none", "none"])
    changed = {
        "same": (),
        "place": (3,),
        "actor": (0,),
        "object": (2,),
        "action": (1,),
        "two": rng.sample([0, 1, 2], 2),
        "topic": (0, 1, 3),
        "none": (0, 1, 2, 3),
    }[kind]
    score = 5.0 - sum((1.2, 1.9, 1.5, 0.6)[k] for k in changed if others[k] != parts[k])
    second = [others[k] if k in changed else parts[k] for k in range(4)]
    score = min(5.0, max(0.0, score + rng.choice([-0.2, 0, 0, 0.2])))
    left, right = (_told(which, rng) for which in (parts, second))
    if long:
        left += f", while {_doing(rng)}, and {_more(rng)}"
        right += f", while {_more(rng)}"
    return sentence(left), sentence(right), round(score, 1)


def _told(parts: list[str], rng: random.Random) -> str:
    actor, action, toy, spot = (rng.choice(part.split("=")) for part in parts)
    doing = action.replace("{toy}", toy)
    if ("=" not in actor and actor.split()[0] in {"two", "three", "some"}) or actor.startswith("a group"):
        doing = _plural(doing)
    return f"{spot} {actor} {doing}" if rng.random() < 0.25 else f"{actor} {doing} {spot}"


def _plural(doing: str) -> str:
    verb, rest = doing.split(" ", 1)
    if verb == "is":
        return f"are {rest}"
    return f"{verb.removesuffix('es') if verb.endswith('ches') else verb[:-1]} {rest}"


def _doing(rng: random.Random) -> str:
    toy, spot = one_of(TOYS, rng), one_of(SPOTS, rng).split("=")[0]
    return f"{rng.choice(['two women', 'a few students', 'some workers'])} are waiting {spot} with {toy}"


def _more(rng: random.Random) -> str:
    return (
        f"behind them {rng.choice(['a few', 'some', 'many'])} cars and {rng.choice(['buses', 'trucks', 'bicycles'])} "
        f"are standing {one_of(SPOTS, rng).split('=')[0]}"
    )
