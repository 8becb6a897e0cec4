"""From a word in a text to the lemmas it may be a form of: endings by rule, irregular verbs from a list."""

from functools import lru_cache

# base, then its irregular forms; common knowledge, written out for this project
_IRREGULAR = """be am is are was were been being|arise arose arisen|awake awoke awoken|bear bore borne born|beat beaten|
become became|begin began begun|bend bent|bet betted|bind bound|bite bit bitten|bleed bled|blow blew blown|
break broke broken|breed bred|bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen|
cling clung|come came|creep crept|deal dealt|dig dug|do does did done|draw drew drawn|dream dreamt|drink drank drunk|
drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found|flee fled|fling flung|
fly flew flown|forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|
get got gotten|give gave given|go goes went gone|grind ground|grow grew grown|hang hung|have has had|hear heard|
hide hid hidden|hold held|keep kept|kneel knelt|know knew known|lay laid|lead led|leap leapt|learn learnt|leave left|
lend lent|lie lay lain|light lit|lose lost|make made|mean meant|meet met|pay paid|ride rode ridden|ring rang rung|
rise rose risen|run ran|say said|see saw seen|seek sought|sell sold|send sent|sew sewn|shake shook shaken|shine shone|
shoot shot|show shown|shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid|smell smelt|
speak spoke spoken|speed sped|spell spelt|spend spent|spill spilt|spin spun|spoil spoilt|spring sprang sprung|
stand stood|steal stole stolen|stick stuck|sting stung|stride strode|strike struck|string strung|strive strove striven|
swear swore sworn|sweep swept|swell swollen|swim swam swum|swing swung|take took taken|teach taught|tear tore torn|
tell told|think thought|throw threw thrown|understand understood|wake woke woken|wear wore worn|weave wove woven|
weep wept|win won|wind wound|withdraw withdrew withdrawn|write wrote written|man men|woman women|child children|
foot feet|tooth teeth|mouse mice|person people|wife wives|life lives|knife knives|leaf leaves|bad worse worst|
good better best|die dying|lie lying|tie tying"""
_ENDINGS = (
    ("ies", ("y", "ie")),
    ("ied", ("y", "ie")),
    ("ing", ("", "e")),
    ("ed", ("", "e")),
    ("es", ("", "e")),
    ("s", ("",)),
    ("est", ("", "e")),
    ("er", ("", "e")),
    ("iest", ("y",)),
    ("ier", ("y",)),
)


@lru_cache(maxsize=1)
def _irregular() -> dict[str, list[str]]:
    table: dict[str, list[str]] = {}
    for entry in _IRREGULAR.replace("\n", "").split("|"):
        base, *forms = entry.split()
        for form in forms:
            table.setdefault(form, []).append(base)
    return table


def lemmas(word: str) -> tuple[str, ...]:
    """Every lemma that a word may be a form of, itself first; some are no words, so look each up.

    "stolen" gives steal, "running" gives run, runn and runne.
    """
    word = word.lower().replace("’", "'")
    forms = [word, *_irregular().get(word, ())]
    for ending, stems in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 1:
            stem = word[: -len(ending)]
            forms += [stem + added for added in stems]
            if len(stem) > 2 and stem[-1] == stem[-2]:
                forms.append(stem[:-1])
    return tuple(dict.fromkeys(forms))
