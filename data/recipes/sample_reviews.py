"""SST-2-like reviews: praise or complaint in many words and constructions, with negation, contrast and concession.

In SST-2's manner some are whole sentences and some are only phrases; what a work is about is drawn apart from whether
it is praised, so that only what is said of it decides.
"""

import random

from data.recipes import review_words  # noqa: F401 - its words are drawn by the templates
from data.recipes.sample_words import say, sentence

# "+" is the polarity of the whole, "-" the other one
CLAUSES = """the {aspect} is {degree} {adj+}
a {adj+} and {x=adj+} {genre}
a {adj+} {genre} about {topic}
a {adj+} , {x=adj+} {genre} about {hero} who {fate}
a {genre} of {stuff+} and {x=stuff+}
this {genre} is {noun+}
this {genre} about {topic} is {noun+}
the {genre} {did+}
the {genre} , in which {hero} {fate} , {did+}
as {hero} {fate} , the {genre} {did+}
{who} {verb+} the {aspect}
{who} {verb+} this {adj+} {genre}
{by} made {noun+}
{by} gives us {noun+} about {topic}
it left me {felt+}
{who} left the theater {felt+}
the {aspect} and the {y=aspect} are {degree} {adj+}
the {aspect} is {adj+} and the {y=aspect} {did+}
one of the most {adj+} {genre}s of the year
one of the most {adj+} pieces of work about {topic} in years
what {noun+} this {genre} is
{x=adj+} , {y=adj+} and {degree} {adj+}
{degree} {adj+}
{adj+} and {x=adj+}
{noun+}
{did+}
full of {stuff+}
full of {stuff+} , {x=stuff+} and {y=stuff+}
thanks to {by} the {genre} is {adj+}
the {genre} is full of {stuff+}
{by} fills the {genre} with {stuff+} and {x=stuff+}
there is {stuff+} {span}
{adj+} {span}
it is {adj+} {span}
it 's {adj+}
it 's a {adj+} {genre} , {degree} {x=adj+}
it 's {noun+}
{adv+} written , {x=adv+} acted
{adv+} told
the {aspect} is {adv+} done
{by} plays the part {adv+}
the {genre} is {adv+} put together by {by}
it feels {like+}
{do+}
if you like {topic} , {do+}
{do+} : this {genre} is {adj+}
the kind of {adj+} {genre} that {did+}
a {genre} that {did+}
a {genre} with {stuff+} and {x=stuff+} to spare
more {adj+} than you would expect from a {genre} about {topic}
as {adj+} as any {genre} of recent years
even {adj+} by the standards of the {genre}
a {adj+} look at {topic}
a {adj+} portrait of {hero} who {fate}
with its {adj+} {aspect} and {x=adj+} {y=aspect} , the {genre} {did+}
so {adj+} that {who} {verb+} it
the {aspect} alone is {noun+}
{hero} {fate} in this {adj+} {genre}
{by} and {y=by} are {adj+} together
it is {adj+} , it is {x=adj+} , and it {did+}
a {adj+} {aspect} , a {x=adj+} {y=aspect} and {stuff+}
the result is {noun+}
the result is {degree} {adj+}
you will find yourself {felt+}
the {genre} is at its most {adj+} when {hero} {fate}"""
TWISTS = """the {genre} is never {adj-}
there is nothing {adj-} about the {aspect}
this {genre} is anything but {adj-}
the {aspect} is {adj-} , but the {y=aspect} {did+}
{who} expected something {adj-} , but it is {noun+}
even a {adj-} {aspect} does not change that the {genre} is {degree} {adj+}
the {aspect} may be {adj-} , yet the {genre} as a whole is {adj+}
after a {adj-} start the {genre} turns {adj+}
not a {adj-} moment in the whole {genre}
despite its {stuff-} , the {genre} is {adj+}
for all its {stuff-} , it {did+}
although the {aspect} is {adj-} , the {genre} is {noun+}
it could have been {adj-} ; instead it is {adj+}
while {by} tries for {stuff-} , what remains is {stuff+}
far from {noun-} , it is {noun+}
neither {adj-} nor {x=adj-}
hardly {noun-}
never {adj-} , and often {adj+}
it may sound {adj-} , but it is {adj+}
some will call it {adj-} ; i call it {adj+}
the {genre} is less {adj-} than {adj+}
without any {stuff-}
the {aspect} promises {stuff-} , but the {genre} is {noun+}
it is not {adj-} at all"""
PRAISE = """not without {stuff_good}
it is hard not to like
you will not want it to end
{who} could not stop laughing
i can not think of a better {genre} this year
there is not a false note in the {aspect}
the {genre} does not waste a minute
never less than {adj_good}
nothing short of {adj_good}
it has everything : {stuff_good} , {x=stuff_good} and {y=stuff_good}
it earns every laugh and every tear"""
COMPLAINT = """it lacks {stuff_good}
without {stuff_good} or {x=stuff_good}
the {aspect} is short on {stuff_good}
not {adj_good} enough , and not {x=adj_good} either
not nearly as {adj_good} as it thinks it is
it wants to be {adj_good} and ends up {adj_bad}
too {adj_bad} to be {adj_good}
it is not {adj_good}
the {aspect} is hardly {adj_good}
{by} should have known better
if only it had some {stuff_good}
there is little {stuff_good} in this {genre}
the {genre} has no {stuff_good} and no {x=stuff_good}
who took away the {stuff_good} ?
no amount of {stuff_good} can save this {genre}
what was once {adj_good} is now {adj_bad}
a {genre} in need of {stuff_good}
it might have been {adj_good} with a better {aspect}
the {genre} forgets to be {adj_good}
neither {adj_good} nor {x=adj_good}
never as {adj_good} as it was meant to be
far less {adj_good} than the original
{who} waited in vain for {stuff_good}"""
CLAUSES, TWISTS, PRAISE, COMPLAINT = (templates.splitlines() for templates in (CLAUSES, TWISTS, PRAISE, COMPLAINT))
JOINTS = [
    " , and ",
    " ; ",
    " and in the end ",
    " , and what is more , ",
    " -- ",
    " : ",
    " , so that in the end ",
    " . ",
]


def polar(template: str, label: int) -> str:
    good, bad = ("_good", "_bad") if label else ("_bad", "_good")
    return template.replace("+}", good + "}").replace("-}", bad + "}")


def clause(rng: random.Random, label: int) -> str:
    chance = rng.random()
    own = PRAISE if label else COMPLAINT
    return say(polar(rng.choice(CLAUSES if chance < 0.65 else TWISTS if chance < 0.85 else own), label), rng)


def review(rng: random.Random, *, long: bool) -> tuple[str, None, int]:
    """A review in SST-2's lower-case spelling; long ones join clauses until they have 30 words."""
    label = rng.randrange(2)
    text = clause(rng, label)
    if not long and rng.random() < 0.3:
        text += rng.choice(JOINTS) + clause(rng, label)
    while long and len(text.split()) < 32:
        text += rng.choice(JOINTS) + clause(rng, label)
    text = sentence(text).lower().rstrip(".").rstrip()
    return text if text.endswith("?") else f"{text} .", None, label
