"""SST-2-like reviews: praise or complaint, with negation and contrast so that word counts alone do not settle it."""

# ruff: noqa: E501 - word lists read better unwrapped

import random

from data.recipes.sample_words import WORDS, say, sentence

GOOD = {
    "adj": """wonderful|funny|charming|delightful|brilliant|moving|beautiful|clever|warm|excellent|fresh|gripping|lovely
    |superb|enjoyable|honest|touching|fascinating|elegant|memorable""",
    "noun": """a triumph|a joy|a real pleasure|a small miracle|a treat|a masterpiece|an evening well spent|a gem|a success
    |a delight from start to finish""",
    "did": """made me laugh out loud|kept me smiling all evening|won my heart|surprised me in the best way|was worth every
    minute|left the whole room cheering|gave me hope|deserves a second visit|stayed with me for days""",
    "felt": "happy|grateful|inspired|thrilled|refreshed|impressed",
    "verb": "loved|enjoyed|admired|adored|recommend|treasured",
}
BAD = {
    "adj": """dull|boring|awful|clumsy|predictable|terrible|lifeless|ugly|silly|cold|tedious|painful|shallow|stale|noisy
    |disappointing|confusing|lazy|dreary|forgettable""",
    "noun": """a disaster|a mess|a waste of time|a bore|a failure|a bad joke|an insult|a long yawn|a disappointment
    |a chore from start to finish""",
    "did": """put me to sleep|made me want to leave|tested my patience|wasted a good idea|fell apart in the second half
    |gave me a headache|was not worth the money|left the whole room yawning|bored me to tears|lost me after ten minutes""",
    "felt": "angry|bored|cheated|sad|tired|embarrassed",
    "verb": "hated|regretted|disliked|endured|cannot stand|suffered through",
}
WORDS_HERE = {
    "work": """film|movie|story|book|novel|play|show|comedy|drama|concert|album|documentary|performance|thriller
    |sequel|opera|series|romance""",
    "part": """acting|plot|music|dialogue|ending|script|first act|cast|direction|photography|humor|pace|lead actor
    |final scene|opening|soundtrack|costumes|heroine|villain|set""",
    "very": "very|truly|quite|so|remarkably|really|thoroughly|rather|simply|deeply|utterly|wholly",
    "viewer": "i|we|my sister|the audience|my friends|everybody in the room|the critics|my father|the whole family",
    "maker": "the director|the author|the writers|the composer|the young actors|the orchestra|the two stars|the band",
}
WORDS_HERE |= {f"{kind}_good": words for kind, words in GOOD.items()}
WORDS_HERE |= {f"{kind}_bad": words for kind, words in BAD.items()}
WORDS.update({name: [word.strip() for word in words.split("|")] for name, words in WORDS_HERE.items()})

# "+" is the polarity of the whole sentence, "-" the other one
CLAUSES = [
    "the {part} is {very} {adj+}",
    "a {adj+} and {x=adj+} {work}",
    "this {work} is {noun+}",
    "the {work} {did+}",
    "{viewer} {verb+} the {part}",
    "the {part} is {x=adj+} and the {y=part} is {adj+}",
    "{maker} made {noun+}",
    "it left me {felt+}",
    "the {part} and the {y=part} are {very} {adj+}",
    "one of the most {adj+} {work}s of the year",
    "what {noun+} this {work} is",
    "{x=adj+} , {y=adj+} and {very} {adj+}",
    "thanks to {maker} the {work} is {adj+}",
]
TWISTS = [
    "the {work} is never {adj-}",
    "there is nothing {adj-} about the {part}",
    "this {work} is anything but {adj-}",
    "the {part} is {adj-} , but the {y=part} {did+}",
    "{viewer} expected something {adj-} , but it is {noun+}",
    "even a {adj-} {part} does not change that the {work} is {very} {adj+}",
    "the {part} may be {adj-} , yet the {work} as a whole is {adj+}",
    "after a {adj-} start the {work} turns {adj+}",
    "not a {adj-} moment in the whole {work}",
]
JOINTS = [" , and ", " ; ", " and in the end ", " , and what is more , "]


def polar(template: str, label: int) -> str:
    good, bad = ("_good", "_bad") if label else ("_bad", "_good")
    return template.replace("+}", good + "}").replace("-}", bad + "}")


def clause(rng: random.Random, label: int) -> str:
    return say(polar(rng.choice(CLAUSES if rng.random() < 0.7 else TWISTS), label), rng)


def review(rng: random.Random, *, long: bool) -> tuple[str, None, int]:
    """A review in SST-2's lower-case spelling; long ones join clauses until they have 30 words."""
    label = rng.randrange(2)
    text = clause(rng, label)
    while long and len(text.split()) < 32:
        text += rng.choice(JOINTS) + clause(rng, label)
    return sentence(text).lower().rstrip(".") + " .", None, label
