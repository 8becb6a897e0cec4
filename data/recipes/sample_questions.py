"""Pair tasks made of questions: QQP-like duplicates and QNLI-like "does this sentence answer it?"."""

# ruff: noqa: E501 - word lists read better unwrapped

import random

from data.recipes.sample_words import one_of, say, sentence

Row = tuple[str, str | None, int | float]

TOPICS = {
    "skill": """to play the guitar|to swim|to cook|to drive|to paint|to dance|to write a novel|to speak French
    |to play chess|to sing|to ride a horse|to take good pictures|to bake bread|to sail|to draw animals|to speak Japanese""",
    "machine": """a laptop|a camera|a bicycle|a phone|a washing machine|a radio|a piano|a used car|a watch|a lamp
    |a printer|a sewing machine|a heater|a guitar|a boat|a typewriter""",
    "animal": """a dog|a cat|a horse|a parrot|a snake|a chicken|a goat|a turtle|a rabbit|a sheep|a spider|a donkey|a duck
    |a hamster|a fish|a pony""",
}
INTENTS = {  # few of them, each in several words around one that stays, so that a small model meets each often
    "skill": [
        "how can i learn {t}|what is the best way to learn {t}|how do i start if i want to learn {t}|how do people learn {t}",
        "how much do lessons cost if i want {t}|what is the cost of lessons for people who want {t}|what do lessons cost if one wants {t}",
        "is it possible {t} at the age of sixty|is sixty the age at which it is too late {t}|at the age of sixty is one too old {t}",
    ],
    "machine": [
        "how do i repair {t}|what is the way to repair {t}|how can i repair {t} at home|how do people repair {t}",
        "how much does {t} cost|what does {t} cost these days|how much money does {t} cost",
        "who invented {t}|by whom was {t} invented|what is the name of the person who invented {t}",
    ],
    "animal": [
        "what does {t} eat|what kind of food does {t} eat|which food does {t} like to eat",
        "how long does {t} live|how many years does {t} live|up to what age does {t} live",
        "where can i buy {t}|which shop is the best to buy {t}|what is a good place to buy {t}|from whom should i buy {t}",
    ],
}
WAYS = """how do i get from {a} to {b}|what is the fastest way from {a} to {b}|how can i travel from {a} to {b}
|which train goes from {a} to {b}"""
ORDERS = """why is {a} more expensive than {b}|what makes {a} more expensive than {b}
|what is the reason that {a} costs more than {b}"""
STORIES = """i have lived in {city} for {number} years and everybody tells me something different
|my friend {person} asked me on {day} and i had no answer|i read about it in {month} but i have forgotten most of it
|we are planning our summer and {person} wants to know|my sister in {city} wants to know before {day}
|i talked to {worker} last week and we could not agree|i have asked {number} people in {city} without any luck"""


def duplicate(rng: random.Random, *, long: bool) -> Row:
    """QQP: do both questions want the same? Other intents, other topics, and directions swapped in the same words."""
    label = rng.randrange(2)
    if rng.random() < 0.25:
        first, second = _directed(rng, label)
    else:
        first, second = _asked(rng, label)
    before = ""
    while long and len((before + first).split()) < 31:
        before += say(one_of(STORIES, rng), rng) + ". "
    return sentence(f"{before}{first}?"), sentence(f"{second}?"), label


def _directed(rng: random.Random, label: int) -> tuple[str, str]:
    a, b = say("{a=city} {b=city}", rng).split(" ")
    first, second = rng.sample((WAYS if rng.random() < 0.7 else ORDERS).split("|"), 2)
    if not label:
        second = second.replace("{a}", "{x}").replace("{b}", "{a}").replace("{x}", "{b}")
    return tuple(template.strip().replace("{a}", a).replace("{b}", b) for template in (first, second))


def _asked(rng: random.Random, label: int) -> tuple[str, str]:
    kind = rng.choice(list(TOPICS))
    topic = one_of(TOPICS[kind], rng)
    place = say(" in {city}" if rng.random() < 0.5 else "", rng)
    intent = rng.choice(INTENTS[kind])
    first, second = rng.sample(intent.split("|"), 2)
    if not label and rng.random() < 0.75:
        second = one_of(rng.choice([wish for wish in INTENTS[kind] if wish != intent]), rng)
    elif not label:
        other = rng.choice([name for name in TOPICS[kind].split("|") if name.strip() != topic]).strip()
        return first.replace("{t}", topic) + place, second.replace("{t}", other) + place
    return first.replace("{t}", topic) + place, second.replace("{t}", topic) + place


# ---------------------------------------------------------------- QNLI

SUBJECTS = """the stone bridge in {city}|the city museum of {city}|the old theater in {city}|the lighthouse near {city}
|the opera house in {city}|the royal garden of {city}|the university of {city}|the clock tower in {city}
|the market hall in {city}|the castle above {city}|the public library of {city}|the railway station in {city}"""
FACTS = [  # questions about an attribute, and statements of it; {it} is the subject
    (
        "when was {it} built|in what year was {it} opened|how old is {it}",
        "it was built in {year}|it was opened to the public in {year}|it was finished in {year} after {number} years of work",
    ),
    (
        "who designed {it}|who was the architect of {it}|whose plans were used for {it}",
        "it was designed by {person}, an architect from {land}|it was built after the plans of {person}|it is the work of the "
        "architect {person}",
    ),
    (
        "how many people visit {it} every year|how many visitors does {it} have|how popular is {it} with visitors",
        "it is visited by {number} thousand people every year|it has {number} hundred visitors a year|it draws {number} "
        "thousand visitors each year",
    ),
    (
        "what is {it} made of|which material was used for {it}|what was used to build {it}",
        "it is made of gray stone|it has walls of red brick|it was built with wood and iron|it is made of white marble",
    ),
    (
        "how high is {it}|how tall is {it}|what is the height of {it}",
        "it is {number} meters high|it rises {number} meters above the street|it reaches a height of {number} meters",
    ),
    (
        "why was {it} closed|for what reason did {it} close|what forced {it} to close",
        "it was closed because of a fire|it had to close because there was no money|it was closed because the roof was leaking",
    ),
    (
        "who owns {it}|to whom does {it} belong|who is the owner of {it}",
        "it belongs to the family of {person}|it is owned by the city|it is in the hands of a company from {land}",
    ),
    (
        "what is {it} famous for|what is {it} best known for|for what do people know {it}",
        "it is famous for its glass roof|it is best known for its roses|it is famous for a painting of {person}",
    ),
    (
        "how much does a ticket for {it} cost|what do visitors of {it} pay|how expensive is it to enter {it}",
        "it costs {number} dollars to go in|it can be entered for {number} dollars|it is free for children, but adults pay "
        "{number} dollars",
    ),
]


def answer(rng: random.Random, *, long: bool) -> Row:
    """QNLI: the sentence answers the question (0) or only speaks of the same thing (1)."""
    label = rng.randrange(2)
    subject = say(one_of(SUBJECTS, rng), rng)
    asked, *others = rng.sample(range(len(FACTS)), 5)
    question = one_of(FACTS[asked][0], rng).replace("{it}", subject)
    count = 4 if long else rng.choice([1, 1, 2])
    told = others[:count] if label else [asked, *others[: count - 1]]
    rng.shuffle(told)
    facts = [say(one_of(FACTS[k][1], rng), rng) for k in told]
    text = _joined([subject + facts[0].removeprefix("it"), *facts[1:]], rng)
    if long or rng.random() < 0.2:
        text += ". " + say("{aside}", rng)
    return sentence(question + "?"), sentence(text), label


def _joined(facts: list[str], rng: random.Random) -> str:
    text = facts[0]
    for fact in facts[1:]:
        text += rng.choice([" and ", ". ", "; ", ", and "]) + fact
    return text
