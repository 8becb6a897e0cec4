"""Custom class sets: creation, changes of classes, and the labels of deleted classes."""

import colorsys
from collections.abc import Callable, Mapping, Sequence
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

FEWEST, MOST = 2, 50  # classes in a class set
# Okabe and Ito's colours, distinguishable by colour-blind people
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
KEYS = "1234567890"
_Reads = Callable[[PatternClass], str]
# Must differ between classes; keys may be empty
UNLIKE: Mapping[str, _Reads] = MappingProxyType(
    {
        "name": lambda one: looks_like(one.name),
        "title": lambda one: looks_like(one.title),
        "colour": lambda one: one.colour.lower(),
        "key": lambda one: one.key,
    }
)


@dataclass(frozen=True)
class NewClassSet:
    """A set of pattern classes that a user wants to create. `describes` is the kind of attention maps that the classes
    describe: "causal", "bidirectional" or "any"."""

    name: str
    title: str
    source: str
    describes: str
    classes: Sequence[PatternClass]


def colours(count: int) -> list[str]:
    """Return `count` distinct colours for pattern classes, starting with the palette of Okabe and Ito."""
    rest = max(0, count - len(PALETTE))
    made = []
    for k in range(rest):
        red, green, blue = colorsys.hls_to_rgb(((k // 2) + 0.5) / -(-rest // 2), 0.35 if k % 2 else 0.65, 0.6)
        made.append(f"#{round(255 * red):02X}{round(255 * green):02X}{round(255 * blue):02X}")
    return [*PALETTE, *made][:count]


def class_set_names(db: Database) -> list[str]:
    """Return the names of all class sets: first the bundled class sets, then custom class sets in order of creation."""
    return list(dict.fromkeys([*SHIPPED, *(event["class_set"] for event in labels.class_events(db))]))


def make_class_set(db: Database, wanted: NewClassSet, *, annotator: str) -> ClassSet:
    """Create a custom set of pattern classes in the database.

    Raises InputError, and stores nothing, if the name is empty or in use, `describes` is invalid, or the classes are
    too few, too many or too similar.
    """
    db.person.must("admin", "change classes")
    with db.write():  # so that only one of two simultaneous creations succeeds
        name = wanted.name.strip()
        taken = class_set_names(db)
        if not looks_like(name) or looks_like(name) in map(looks_like, taken):
            raise InputError(
                f"The name of a class set must not be empty or already in use; got {name[:60]!r} (names in use: "
                f"{', '.join(taken)[:200]}). Choose another name."
            )
        if wanted.describes not in CAUSAL:
            raise InputError(
                f"The kind of maps that a class set describes must be one of {', '.join(CAUSAL)}; got "
                f"{wanted.describes[:40]!r}. Choose one of them."
            )
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
    """Raise InputError if pattern classes cannot form a class set, for example because two of them are too similar."""
    if not FEWEST <= len(classes) <= MOST:
        raise InputError(
            f"A class set must have {FEWEST} to {MOST} classes; got {len(classes)}. "
            f"{'Add another' if len(classes) < FEWEST else 'Remove some'}."
        )
    for k, entry in enumerate(classes):
        check_unlike(entry, classes[:k])


def check_unlike(new: PatternClass, others: Sequence[PatternClass]) -> None:
    """Raise InputError if a new pattern class has no name, title or description, or is too similar to another class."""
    for part, is_given in (
        ("name", looks_like(new.name)),
        ("title", looks_like(new.title)),
        ("description", new.eye.strip()),
    ):
        if not is_given:
            raise InputError(
                f"A class must have a name, a title and a description; the class {new.name[:60]!r} has no {part}. Add "
                f"a {part}."
            )
    for what, read in UNLIKE.items():
        same = next((other for other in others if read(new) and read(other) == read(new)), None)
        if same is not None:
            raise InputError(
                f"The {what} of each class in a set must be different; {new.name[:60]!r} has "
                f"{getattr(new, what)[:60]!r} and {same.name[:60]!r} has {getattr(same, what)[:60]!r}. Change one of "
                "them."
            )


def add_class(db: Database, classes: ClassSet, new: PatternClass, *, annotator: str) -> None:
    """Add a class to a class set. Raises InputError if the class set is full or already has a similar class."""
    db.person.must("admin", "change classes")
    with db.write():  # so that only one of two simultaneous additions succeeds
        classes = known_class_set(db, classes.name)
        check_unlike(new, classes.classes)
        if new.name in dict(classes.merged):
            raise InputError(
                f"The name of a new class must not belong to a merged class; {new.name[:60]!r} was merged into "
                f"{classes.named(new.name).name[:60]!r}. Choose another name."
            )
        if len(classes) >= MOST:
            raise InputError(
                f"A class set must have at most {MOST} classes; this class set already has {MOST}. Merge or delete a "
                "class first."
            )
        change = ClassChange("add", new.name, title=new.title, eye=new.eye, colour=new.colour, key=new.key)
        labels.change_class(db, classes.name, change, annotator=annotator, taken=classes.names)


def edit_class(db: Database, classes: ClassSet, name: str, *, annotator: str, **told: str) -> None:
    """Change the title, description, colour or key of a pattern class. A field whose new value is empty is not changed.

    Raises InputError if the class would be too similar to another.
    """
    db.person.must("admin", "change classes")
    with db.write():
        classes = known_class_set(db, classes.name)
        before = classes.named(name)
        after = replace(before, **{what: value for what, value in told.items() if value.strip()})
        check_unlike(after, [pattern_class for pattern_class in classes.classes if pattern_class.name != before.name])
        change = ClassChange(
            "rename", before.name, title=after.title, eye=after.eye, colour=after.colour, key=after.key
        )
        labels.change_class(db, classes.name, change, annotator=annotator, taken=classes.names)


def labels_of(db: Database, class_set: str, name: str) -> int:
    """Count the current labels with a pattern class, including labels of classes that were merged into it."""
    counted = labels.class_counts(db, class_set)
    return sum(counted.get(name_then, 0) for name_then in _names_of(db, class_set, name))


def delete_class(db: Database, classes: ClassSet, name: str, *, annotator: str, into: str | None = None) -> int:
    """Delete a pattern class from a class set, and return the number of labels with this class.

    The class `into` gets its labels; None retracts them, so that earlier labels become current again. Raises InputError
    if fewer than two classes would remain, or, without `into`, if a project that is not archived uses maps of this
    class as gold or exemplars; RightsError unless the user is an admin.
    """
    db.person.must("admin", "change classes")
    with db.write():
        classes = known_class_set(db, classes.name)
        if len(classes) <= FEWEST:
            raise InputError(
                f"A class set must keep at least {FEWEST} classes; {classes.title[:60]!r} has only {FEWEST}. Add "
                "another class before you delete one."
            )
        count = labels_of(db, classes.name, name)
        if into is not None:
            change = ClassChange("merge", name, into=into, title=classes.named(name).title)
            labels.change_class(db, classes.name, change, annotator=annotator, taken=classes.names)
            return count
        names = _names_of(db, classes.name, name)
        for project in projects.projects(db):
            if project.class_set != classes.name or project.state == "archived":
                continue
            if any(entry.given in names for entry in projects.project_maps(db, project.project)):
                raise InputError(
                    "A class can only be deleted if no gold map or exemplar has it; the project "
                    f"{project.title[:60]!r} has such maps. Merge the class into another class instead."
                )
        retired = 0
        while events := labels.of_classes(db, classes.name, names):
            retired += labels.retire(db, events, annotator=annotator, why=f"its class {name} was deleted").new
        labels.change_class(db, classes.name, ClassChange("delete", name), annotator=annotator, taken=classes.names)
        return retired


def _names_of(db: Database, class_set: str, name: str) -> list[str]:
    """Return every name of a class, including classes merged into it."""
    return [name_then for name_then, present in present_names(db, class_set).items() if present == name]
