"""The recipe of docs/architecture.md, tried: a class set that ships is one file, and nothing else names it."""

from core.codebook import registry, sets
from core.codebook.measures import measured
from core.patterns.class_sets import class_set_names
from core.patterns.snapshot import current_labels, known_class_set
from core.store import labels
from core.store.database import Database
from tests.store.labelling import a_map, event

FILE = '''"""Two classes of encoders' maps, as an example."""

from core.codebook.classes import ClassSet, Codebook, PatternClass
from core.codebook.sets import background, line, normalised


def _disputes(name, measures, sentences):
    return "no line is marked from end to end" if name == "line" and not measures.line.weakest_third else None


def _draw(rng, name, length):
    return normalised(background(rng, length) + (name == "line") * 3 * line(rng, length))


CLASS_SET = ClassSet(
    "lines", "Lines: two classes", "an example",
    (
        PatternClass("line", "Line", "A dark line along the diagonal or beside it.", "#E69F00", "1"),
        PatternClass("rest", "The rest", "No line that is followed from end to end.", "#999999", "2"),
    ),
    causal=False,
    codebook=Codebook("rest", (), 100, _disputes, lambda measures, key: f"strongest column {key}", _draw, ()),
)
'''


def test_one_file_declares_a_class_set_that_ships(tmp_path, monkeypatch):
    (tmp_path / "lines.py").write_text(FILE)
    monkeypatch.setattr(sets, "__path__", [*sets.__path__, str(tmp_path)])
    found = registry.found_sets()
    assert list(found) == ["bert", "gpt2", "lines"], "those that stand for a family come first"
    monkeypatch.setitem(registry.SHIPPED, "lines", found["lines"])
    assert registry.shipped_set(causal=False).name == "bert"
    db = Database(tmp_path / "atlas.duckdb")
    assert class_set_names(db) == [*found]
    assert registry.class_set("lines") == known_class_set(db, "lines") == found["lines"]
    labels.store_maps(db, [a_map("m1")])
    labels.record_events(db, [event(1, "m1", "line", class_set="lines")])
    assert current_labels(db, "lines")["class"].tolist() == ["line"]
    db.close()
    line, rest = (registry.drawn_map("lines", name, length=24, seed=0) for name in found["lines"].names)
    assert registry.dispute("lines", "line", measured(line), sentences=1) is None
    assert "end to end" in str(registry.dispute("lines", "line", measured(rest), sentences=1))
    assert registry.explained("lines", measured(line), []).startswith("strongest column")
