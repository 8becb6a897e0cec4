"""Words to frames: the bundled facts, and a release's index."""

import pytest

from core.errors import InputError
from core.frames.lexicon import bundled_lexicon, release_lexicon


def test_the_papers_example_is_known():
    lexicon = bundled_lexicon()
    assert lexicon.frames("agitated", "ADJ") == (("agitated.a", "Emotion_directed"),)
    roles = lexicon.of("Emotion_directed")
    assert roles.at("subject") == "Experiencer"
    assert roles.at("oblique", "About") == "Topic"
    assert roles.at("oblique", "notwithstanding") is None
    assert roles.element("Experiencer", ((0, 2),)).in_core_set is True
    assert roles.element("Degree", ((0, 2),)).coreness is None


def test_the_part_of_speech_comes_first_but_hides_nothing():
    found = bundled_lexicon().frames("answer", "NOUN")
    assert found[0][0] == "answer.n"
    assert "answer.v" in {unit for unit, _ in found}
    assert bundled_lexicon().frames("zzyzx") == ()


def test_a_frame_that_is_not_bundled_is_refused():
    with pytest.raises(InputError, match="ATLAS_FRAMENET"):
        bundled_lexicon().of("No_such_frame")


@pytest.mark.slow  # 17 CPU seconds of NLTK reading a release
def test_a_release_knows_more_and_agrees_with_the_bundled_facts(release):
    whole, bundled = release_lexicon(release), bundled_lexicon()
    assert len(whole.units) > 1.5 * len(bundled.units)
    assert all(set(frames) <= set(whole.units[unit]) for unit, frames in bundled.units.items())
    for name in list(bundled.roles)[::40]:
        facts = release.frame(name)
        assert set(bundled.of(name).core) == {e for e, kind in facts.elements.items() if kind.startswith("Core")}
        assert bundled.of(name).core_sets == facts.core_sets
    unknown = next(name for name in release.frame_names if name not in bundled.roles)
    assert whole.of(unknown).core is not None
