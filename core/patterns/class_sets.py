"""Class sets that people make: a new one, a class of it changed, and what becomes of the labels of a deleted class."""

import colorsys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from ..codebook.classes import CAUSAL, ClassSet, PatternClass
from ..codebook.registry import SHIPPED
from ..errors import InputError
from ..store import labels, projects
from ..store.database import Database
from ..store.label_checks import looks_like
from ..store.labels import ClassChange
from .snapshot import known_class_set, present_names

FEWEST, MOST = 2, 50  # classes of a set
PALETTE = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999",
)  # Okabe and Ito's, told apart by colour-blind eyes  # fmt: skip
KEYS = "1234567890"
_Reads = Callable[[PatternClass], str]
UNLIKE: Mapping[str, _Reads] = MappingProxyType(
    {
        "name": lambda one: looks_like(one.name),
        "title": lambda one: looks_like(one.title),
        "colour": lambda one: one.colour.lower(),
        "key": lambda one: one.key,
    }
)  # what no two classes of a set share; keys may be empty


@dataclass(frozen=True)
class NewClassSet:
    """A class set that somebody asks for.

    Attributes:
        name, title, source: as in `ClassSet`.
        describes: whose maps it is for: "causal", "bidirectional" or "any".
    """

    name: str
    title: str
    source: str
    describes: str
    classes: Sequence[PatternClass]


def colours(count: int) -> list[str]:
    """So many colours that differ: Okabe and Ito's first, then hues apart from each other in two shades."""
    rest = max(0, count - len(PALETTE))
    made = []
    for k in range(rest):
        red, green, blue = colorsys.hls_to_rgb(((k // 2) + 0.5) / -(-rest // 2), 0.35 if k % 2 else 0.65, 0.6)
        made.append(f"#{round(255 * red):02X}{round(255 * green):02X}{round(255 * blue):02X}")
    return [*PALETTE, *made][:count]


def class_set_names(db: Database) -> list[str]:
    """Shipped class sets, then people's own in the order in which they were made."""
    return list(dict.fromkeys([*SHIPPED, *(event["class_set"] for event in labels.class_events(db))]))


def make_class_set(db: Database, wanted: NewClassSet, *, annotator: str) -> ClassSet:
    """Store a class set of one's own.

    Raises:
        InputError: the name is empty or taken, `describes` is none of the three, there are too few or too many classes,
            or classes look alike; nothing is stored then.
    """
    db.person.must("admin", "change classes")
    with db.write():  # of two admins who make one set at once, one is told
        return _made(db, wanted, annotator)


def _made(db: Database, wanted: NewClassSet, annotator: str) -> ClassSet:
    name = wanted.name.strip()
    taken = class_set_names(db)
    if not looks_like(name) or looks_like(name) in map(looks_like, taken):
        raise InputError(
            f"A new class set needs a name of its own; {name[:60]!r} is empty or taken ({', '.join(taken)[:200]}): "
            "choose another."
        )
    if wanted.describes not in CAUSAL:
        raise InputError(f"A class set is for maps that are {', '.join(CAUSAL)}; {wanted.describes[:40]!r} is none.")
    check_classes(wanted.classes)
    about = ClassChange("set", name, into=wanted.describes, title=wanted.title.strip() or name,
                        eye=wanted.source.strip() or "made by hand")  # fmt: skip
    added = [
        ClassChange(
            "add",
            pattern_class.name,
            title=pattern_class.title,
            eye=pattern_class.eye,
            colour=pattern_class.colour,
            key=pattern_class.key,
        )
        for pattern_class in wanted.classes
    ]
    labels.change_classes(db, name, [about, *added], annotator=annotator)
    return known_class_set(db, name)


def check_classes(classes: Sequence[PatternClass]) -> None:
    """Raise InputError unless these can be the classes of one set."""
    if not FEWEST <= len(classes) <= MOST:
        raise InputError(
            f"A class set has {FEWEST} to {MOST} classes, which exclude each other; {len(classes)} "
            f"{'was' if len(classes) == 1 else 'were'} given: "
            f"{'add another' if len(classes) < FEWEST else 'leave some out'}."
        )
    for k, entry in enumerate(classes):
        check_unlike(entry, classes[:k])


def check_unlike(new: PatternClass, others: Sequence[PatternClass]) -> None:
    """Raise InputError where a class has no name, title or line, or shares with another what tells classes apart."""
    if not looks_like(new.name) or not looks_like(new.title) or not new.eye.strip():
        raise InputError(
            f"A class has a name and a line saying what the eye sees; {new.name[:60]!r} has not both: give them."
        )
    for what, read in UNLIKE.items():
        same = next((other for other in others if read(new) and read(other) == read(new)), None)
        if same is not None:
            raise InputError(
                f"No two classes of a set have one {what}; {new.name[:60]!r} and {same.name[:60]!r} both have "
                f"{getattr(new, what)[:60]!r}: change one of them."
            )


def add_class(db: Database, classes: ClassSet, new: PatternClass, *, annotator: str) -> None:
    """Add a class to the set as it is stored now. Raises InputError where it is full or another class looks like it."""
    db.person.must("admin", "change classes")
    with db.write():  # of two admins who add one class at once, one is told
        _add(db, known_class_set(db, classes.name), new, annotator)


def _add(db: Database, classes: ClassSet, new: PatternClass, annotator: str) -> None:
    check_unlike(new, classes.classes)
    if new.name in dict(classes.merged):
        raise InputError(
            f"{new.name[:60]!r} was merged into {classes.named(new.name).name[:60]!r}, which has its labels: choose "
            "another name."
        )
    if len(classes) >= MOST:
        raise InputError(f"A class set has at most {MOST} classes; this one has them: merge or delete one first.")
    change = ClassChange("add", new.name, title=new.title, eye=new.eye, colour=new.colour, key=new.key)
    labels.change_class(db, classes.name, change, annotator=annotator, taken=classes.names)


def edit_class(db: Database, classes: ClassSet, name: str, *, annotator: str, **told: str) -> None:
    """Give a class another title, eye, colour or key; what is empty stays as it was.

    Args:
        told: the new title, eye, colour or key by these names.

    Raises:
        InputError: another class looks like it then.
    """
    db.person.must("admin", "change classes")
    with db.write():
        _edit(db, known_class_set(db, classes.name), name, annotator, told)


def _edit(db: Database, classes: ClassSet, name: str, annotator: str, told: Mapping[str, str]) -> None:
    before = classes.named(name)
    after = replace(before, **{what: value for what, value in told.items() if value.strip()})
    check_unlike(after, [pattern_class for pattern_class in classes.classes if pattern_class.name != before.name])
    change = ClassChange("rename", before.name, title=after.title, eye=after.eye, colour=after.colour, key=after.key)
    labels.change_class(db, classes.name, change, annotator=annotator, taken=classes.names)


def labels_of(db: Database, class_set: str, name: str) -> int:
    """How many labels stand that are of a class now, whatever it was called when they were given."""
    counted = labels.class_counts(db, class_set)
    return sum(counted.get(name_then, 0) for name_then in _names_of(db, class_set, name))


def delete_class(db: Database, classes: ClassSet, name: str, *, annotator: str, into: str | None = None) -> int:
    """Delete a class.

    Args:
        into: name of the class that its labels are from now on. None: they are retired, and what each person thought
            before stands again.

    Raises:
        InputError: fewer than two classes would be left, or a project tells by this class whether people are right.
        RightsError: somebody who is no admin acts.
    """
    db.person.must("admin", "change classes")
    with db.write():
        return _delete(db, known_class_set(db, classes.name), name, annotator, into)


def _delete(db: Database, classes: ClassSet, name: str, annotator: str, into: str | None) -> int:
    if len(classes) <= FEWEST:
        raise InputError(
            f"A class set has at least {FEWEST} classes; {classes.title[:60]!r} has no more: add one first."
        )
    count = labels_of(db, classes.name, name)
    if into is not None:
        change = ClassChange("merge", name, into=into, title=classes.named(name).title)
        labels.change_class(db, classes.name, change, annotator=annotator, taken=classes.names)
        return count
    names = _names_of(db, classes.name, name)
    _check_projects(db, classes.name, names)
    retired = 0
    while events := labels.of_classes(db, classes.name, names):
        retired += labels.retire(db, events, annotator=annotator, why=f"its class {name} was deleted").new
    labels.change_class(db, classes.name, ClassChange("delete", name), annotator=annotator, taken=classes.names)
    return retired


def _names_of(db: Database, class_set: str, name: str) -> list[str]:
    """Every name that a class had, those merged into it too."""
    return [name_then for name_then, present in present_names(db, class_set).items() if present == name]


def _check_projects(db: Database, class_set: str, names: Collection[str]) -> None:
    for project in projects.projects(db):
        if project.class_set != class_set or project.state == "archived":
            continue
        if any(entry.given in names for entry in projects.project_maps(db, project.project)):
            raise InputError(
                f"The project {project.title[:60]!r} tells by maps of this class whether people are right: give its "
                "labels to another class instead of retiring them."
            )
