"""Treebanks and FrameNet releases that mean harm: read as far as they can be, or refused in a sentence, in seconds."""

import contextlib
import time

import pytest

from core.errors import AtlasError
from core.frames.release import open_release
from core.tasks import conllu

PATIENCE = 20.0  # CPU seconds of one file


def line(number, form="a", head="0", dep="root", pos="NOUN", misc="_"):
    return f"{number}\t{form}\t{form}\t{pos}\tNN\t_\t{head}\t{dep}\t_\t{misc}\n"


def words(heads):
    return "".join(line(k + 1, head=str(head), dep="dep" if head else "root") for k, head in enumerate(heads)) + "\n"


SOUND = words([0, 1])
LONG = 60_000
TREES = {
    "a token of words that are not there": "1-999999999\tab\t_\t_\t_\t_\t_\t_\t_\t_\n" + SOUND,
    "a token that ends before it begins": "5-2\tab\t_\t_\t_\t_\t_\t_\t_\t_\n" + SOUND,
    "a token without words": line(1) + "2-3\tab\t_\t_\t_\t_\t_\t_\t_\t_\n\n",
    "a number of 5,000 digits": "9" * 5000 + line("")[0:] + "\n",
    "a token of 5,000 digits": f"1-{'9' * 5000}\tab" + "\t_" * 8 + "\n" + SOUND,
    "digits of another script": line("\u0661") + line(2, head="1"),
    "a negative number": line(-1) + "\n",
    "a number that comes twice": line(1) + line(1, head="1", dep="dep") + "\n",
    "a head beyond the end": words([0, 99]),
    "a negative head": words([0, -1]),
    "a head that is a word": line(1) + line(2, head="x"),
    "heads that go round": words([0, 3, 2]) + SOUND,
    "nobody is the root": words([2, 1]) + SOUND,
    "everybody is the root": words([0, 0]) + SOUND,
    "a word that heads itself": words([1, 1]) + SOUND,
    "a chain of 60,000 words": words([0, *range(1, LONG)]),
    "a star of 60,000 words": words([0, *[1] * (LONG - 1)]),
    "one token of 60,000 words": f"1-{LONG}\t{'a' * LONG}" + "\t_" * 8 + "\n" + words([0, *[1] * (LONG - 1)]),
    "60,000 empty nodes": "".join(f"0.{k}\ta" + "\t_" * 8 + "\n" for k in range(1, LONG)) + SOUND,
    "60,000 comments": "# a\n" * LONG + SOUND,
    "a text that lacks the words": "# text = b\n" + SOUND,
    "a word of a megabyte": line(1, "a" * 2**20) + line(2, head="1", dep="dep"),
    "words that do not show": line(1, "\u202eab") + line(2, "\u200b", head="1", dep="dep"),
    "lines that end otherwise": SOUND.replace("\n", "\r\n"),
    "a separator of lines inside a word": line(1, "a\u2028b") + line(2, "c\x0bd", head="1", dep="dep"),
    "half a character": line(1, "\udc80"),
    "a zero byte": line(1, "a\0") + line(2, head="1", dep="dep"),
    "tags of nobody": line(1, pos="DROP TABLE") + line(2, head="1", dep="dep"),
    "columns without end": "\t".join(["1"] * 100_000) + "\n",
    "nothing": "",
    "blank lines": "\n" * LONG,
    "XML": "<treebank/>",
}


# A star has as many words as the token of 60,000, which takes 1.5 CPU seconds too.
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.slow) if one.startswith("one token") else one for one in TREES]
)
def test_a_treebank_is_read_or_refused(tmp_path, name):
    (tmp_path / "x-dev.conllu").write_bytes(TREES[name].encode("utf-8", "surrogatepass"))
    begun = time.process_time()
    part = None
    with contextlib.suppress(AtlasError):  # always one line of at most 650 characters
        part = conllu.read_part(str(tmp_path), "dev")
    assert time.process_time() - begun < PATIENCE
    for sentence in part.sentences if part else ():
        assert conllu.unusable(sentence.words) is None
        assert all(0 <= word.start <= word.end <= len(sentence.text) for word in sentence.words)
        assert all(0 <= word.head < len(sentence.words) for word in sentence.words)


SPACE = 'xmlns="http://framenet.icsi.berkeley.edu"'
FRAME = f"""<frame {SPACE} cBy="x" cDate="x" name="Motion" ID="7"><definition>x</definition>
<FE coreType="Core" ID="1" name="Theme" abbrev="T"><definition>x</definition></FE>
<lexUnit status="x" POS="V" name="go.v" ID="1" lemmaID="1"><definition>x</definition>
<sentenceCount total="1" annotated="1"/>
<lexeme order="1" headword="false" breakBefore="false" POS="V" name="go"/></lexUnit></frame>"""


def unit(label, text="He went out.", before="", extra=""):
    return f"""{before}<lexUnit {SPACE} status="x" POS="V" name="go.v" ID="1" frame="Motion" frameID="7"
totalAnnotated="1">
<header><corpus description="x" name="x" ID="1"><document description="x" name="x" ID="1"/></corpus><frame>
<FE fgColor="x" bgColor="x" type="Core" abbrev="T" name="Theme"/></frame></header><definition>x</definition>
<lexeme POS="V" name="go"/><subCorpus name="x"><sentence sentNo="1" ID="1"><text>{text}</text>{extra}
<annotationSet cDate="x" status="MANUAL" ID="2">
<layer rank="1" name="Target"><label end="6" start="3" name="Target"/></layer>
<layer rank="1" name="FE">{label}</layer></annotationSet></sentence></subCorpus></lexUnit>"""


def label(start, end, name="Theme"):
    return f'<label end="{end}" start="{start}" name="{name}"/>'


BOMB = "<!DOCTYPE x [" + "".join(f'<!ENTITY e{k} "{f"&e{k - 1};" * 10 if k else "x" * 99}">' for k in range(9)) + "]>"
UNITS = {
    "a span past the end": unit(label(0, 10**9)),
    "a span of 300 digits": unit(label(0, "9" * 300)),
    "a span before the start": unit(label(-5, 1)),
    "a span that ends before it begins": unit(label(6, 2)),
    "a span that is a word": unit(label("x", 1)),
    "an element that the frame has not": unit(label(0, 1, "Nobody")),
    "a name that steers": unit(label(0, 1, "Theme\u202e")),
    "20,000 elements": unit(label(0, 1) * 20_000),
    "a text of a megabyte": unit(label(0, 1), "a " * 2**19),
    "no text": unit(label(0, 1), ""),
    "entities that expand": unit(label(0, 1), "&e8;", before=BOMB),
    "a file that is fetched": unit(label(0, 1), "&x;", before='<!DOCTYPE x [<!ENTITY x SYSTEM "file:///etc/passwd">]>'),
    "5,000 levels": unit(label(0, 1), extra="<a>" * 5000 + "</a>" * 5000),
    "cut short": unit(label(0, 1))[:700],
    "another root": "<html/>",
    "nothing": "",
    "no XML": "\0\1\2",
}


def release(folder, lu, frame=FRAME, name="Motion"):
    """A release of one frame and one lexical unit."""
    root = folder / "fndata-1.5"
    (root / "frame").mkdir(parents=True)
    (root / "lu").mkdir()
    (root / "frameIndex.xml").write_text(f'<frameIndex {SPACE}><frame name="{name}" ID="7"/></frameIndex>')
    (root / "luIndex.xml").write_text(
        f'<luIndex {SPACE}><lu frameID="7" frameName="{name}" status="x" hasAnnotation="true" name="go.v" ID="1"/>'
        "</luIndex>"
    )
    for empty in ("fulltextIndex", "frRelation", "semTypes"):
        (root / f"{empty}.xml").write_text(f"<{empty} {SPACE}/>")
    (root / "frame" / "Motion.xml").write_text(frame)
    (root / "lu" / "lu1.xml").write_bytes(lu.encode("utf-8", "surrogatepass"))
    for file in (root, *root.rglob("*")):
        file.chmod(0o755 if file.is_dir() else 0o644)
    return root


def read(root):
    """The sentences and what was skipped; nothing but an AtlasError may come out. Bounded in time."""
    begun = time.process_time()
    readings = []
    with contextlib.suppress(AtlasError):
        readings = list(open_release(root).sentences())
    assert time.process_time() - begun < PATIENCE
    said = "".join(skipped.why for reading in readings for skipped in reading.skipped)
    assert "root:" not in said  # nothing of a file elsewhere
    return [sentence for reading in readings for sentence in reading.sentences], said


def test_a_sound_release_of_one_sentence_is_read(tmp_path):
    (sentence,), _ = read(release(tmp_path, unit(label(0, 1))))
    assert (sentence.text, sentence.target, sentence.frame) == ("He went out.", ((3, 7),), "Motion")


@pytest.mark.thorough
@pytest.mark.parametrize("name", UNITS)
def test_a_lexical_unit_is_read_or_skipped_and_named(tmp_path, name):
    sentences, _ = read(release(tmp_path, UNITS[name]))
    for sentence in sentences:
        for element in sentence.elements:
            assert all(0 <= start <= end <= len(sentence.text) for start, end in element.spans)


@pytest.mark.parametrize(
    "name", ["../../../../etc/passwd", "..", "/etc/passwd", "Motion\u202e", "a" * 5000, "Motion.xml"]
)
def test_a_frame_called_like_a_path_reads_no_other_file(tmp_path, name):
    (tmp_path / "passwd.xml").write_text("<x>root:</x>")
    assert read(release(tmp_path, unit(label(0, 1)), name=name))[0] == []


@pytest.mark.parametrize(
    "frame", ["", "<frame/>", "<x>" * 3000, FRAME.replace("Core", "\u202e"), BOMB + "<x>&e8;</x>"], ids=len
)
def test_a_frame_that_is_none(tmp_path, frame):
    read(release(tmp_path, unit(label(0, 1)), frame=frame))
