"""Making a labelling project: which maps it has, in what order, and which of them are gold or exemplars."""

import hashlib
from collections.abc import Collection
from dataclasses import asdict, dataclass

import pandas as pd

from ..errors import InputError
from ..patterns.snapshot import known_class_set, standing_labels
from ..store import labels, projects
from ..store.database import Database
from . import assignment_service
from .assignment import ORDERS, Rules
from .queue import NEARLY_UNIFORM, Hints

MOST_K = 25  # people a map


@dataclass(frozen=True)
class ProjectRecipe:
    """Which stored maps a project has, alike many of every checkpoint and head.

    Attributes:
        checkpoints, tasks, layers: whose maps fit; empty for all. Layers are zero-based.
        gold, exemplars: how many maps of known class, alike many of every class.
        known_from: whose labels say the class; "" for adjudicated ones.
    """

    checkpoints: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    layers: tuple[int, ...] = ()
    count: int = 300
    seed: int = 0
    leave_out_uniform: bool = False
    gold: int = 0
    exemplars: int = 0
    known_from: str = ""


def make_project(
    db: Database,
    heading: projects.Heading,
    recipe: ProjectRecipe,
    rules: Rules,
    *,
    people_there: Collection[str] | None = None,
    hints: Hints | None = None,
) -> str:
    """Draw a project's maps and store it.

    Args:
        db: where maps, labels and projects are stored.
        heading: title, class set and what else names it.
        people_there: who could label; None where that is not known.
        hints: what a classifier says of maps, for the order "uncertain"; None where none suggests.

    Raises:
        InputError: the rules cannot be met, the order wants a classifier that is not there, or the recipe finds no map.
        RightsError: one who is no admin asks.
    """
    db.person.must("admin", "make a project")
    check_rules(rules, people_there)
    known_class_set(db, heading.class_set)
    facts = _fitting(labels.map_facts(db), recipe)
    class_of_map = known_classes(db, heading.class_set, recipe.known_from) if recipe.gold or recipe.exemplars else {}
    exemplars, gold = _known_maps(class_of_map, recipe)
    ordinary = sampled(facts[~facts.map_id.isin({*exemplars, *gold})], recipe)
    if not ordinary:
        raise InputError(
            f"A project needs maps to label; its recipe finds none ({len(facts)} maps fit its checkpoints, tasks and "
            f"layers, {len(exemplars) + len(gold)} are gold or exemplars): draw maps on the Label page or ask for less."
        )
    if rules.order == "uncertain":
        ordinary = by_uncertainty(facts, ordinary, hints)
    maps = [projects.ProjectMap(name, "label") for name in ordinary]
    maps += [projects.ProjectMap(name, "gold", class_of_map[name]) for name in gold]
    maps += [projects.ProjectMap(name, "exemplar", class_of_map[name]) for name in exemplars]
    return projects.add_project(db, heading, recipe=asdict(recipe), rules=asdict(rules), maps=maps)


def check_rules(rules: Rules, people_there: Collection[str] | None = None) -> None:
    """InputError, naming what is wrong, unless the rules can be met by the people there."""
    people = set(rules.people) or (set(people_there) if people_there is not None else None)
    if not 1 <= rules.k <= MOST_K:
        raise InputError(f"Each map is labelled by 1 to {MOST_K} people; {rules.k} were asked for: change the number.")
    if people is not None and rules.k > len(people):
        raise InputError(
            f"Each map is to be labelled by {rules.k} different people, but only {len(people)} may label here "
            f"({', '.join(sorted(people))[:120] or 'nobody'}): ask for fewer labels a map or let more people in."
        )
    rates = (rules.gold_rate, rules.repeat_rate)
    if not all(0 <= rate <= 0.5 for rate in rates) or not all(
        0 <= share <= 1 for share in (rules.pass_mark, rules.threshold)
    ):
        raise InputError(
            "Gold and repeats are each at most half of what is handed out, and thresholds lie between 0 and 1; seen "
            f"{rates[0]}, {rates[1]}, {rules.pass_mark} and {rules.threshold}: change them."
        )
    if not 10 <= rules.lapse <= 7 * 86_400 or not 1 <= rules.ahead <= 48 or rules.order not in ORDERS:
        raise InputError(
            "A claim holds for 10 seconds to a week, a person holds 1 to 48 maps at once, and the order is one of "
            f"{', '.join(ORDERS)}; seen {rules.lapse}, {rules.ahead} and {rules.order!r}: change them."
        )


def _fitting(facts: pd.DataFrame, recipe: ProjectRecipe) -> pd.DataFrame:
    for column, choices in (("checkpoint", recipe.checkpoints), ("task", recipe.tasks), ("layer", recipe.layers)):
        if choices:
            facts = facts[facts[column].isin(choices)]
    return facts[facts.maximum >= NEARLY_UNIFORM] if recipe.leave_out_uniform else facts


def known_classes(db: Database, class_set: str, source: str) -> dict[str, str]:
    """Map -> class by one person's first pass, or by adjudication (source "")."""
    labels = standing_labels(db, class_set)
    if source:
        labels = labels[(labels.annotator == source) & (labels["pass"] == 1)]
    else:
        labels = labels[labels.queue_order == "adjudication"]
    return dict(zip(labels.map_id, labels["class"], strict=True))


def _known_maps(class_of_map: dict[str, str], recipe: ProjectRecipe) -> tuple[list[str], list[str]]:
    """Exemplars and gold, apart from each other. InputError when there are too few maps of known class."""
    count = recipe.exemplars + recipe.gold
    if count > len(class_of_map):
        source = f"labels of {recipe.known_from[:60]!r}" if recipe.known_from else "adjudicated labels"
        raise InputError(
            f"{count} exemplars and gold maps were asked for, but only {len(class_of_map)} maps have a class known by "
            f"{source}: ask for fewer, adjudicate more, or name another person whose labels count as known."
        )
    by_class: dict[str, list[str]] = {}
    for name in sorted(class_of_map, key=lambda map_id: shuffled(recipe.seed, map_id)):
        by_class.setdefault(class_of_map[name], []).append(name)
    columns = [by_class[name] for name in sorted(by_class)]
    deepest = max(map(len, columns), default=0)
    mixed = [column[row] for row in range(deepest) for column in columns if row < len(column)]
    return mixed[: recipe.exemplars], mixed[recipe.exemplars : count]


def shuffled(seed: int, map_id: str) -> bytes:
    """What maps are sorted by to come in random order: the same for the same seed, whatever else is there."""
    return hashlib.sha256(f"{seed}:{map_id}".encode()).digest()


def sampled(facts: pd.DataFrame, recipe: ProjectRecipe) -> list[str]:
    """The first `count` maps in an order that goes round checkpoints, and in each round its heads, at random."""
    keys = pd.Series({name: shuffled(recipe.seed, name) for name in facts.map_id}, dtype=object)
    return spread(facts, keys)[: max(0, recipe.count)]


def spread(facts: pd.DataFrame, keys: pd.Series) -> list[str]:
    """Map ids so that early ones cover all heads and checkpoints alike; within a head by `keys` [map], the least first.

    facts: columns map_id, checkpoint, layer, head.
    """
    if facts.empty:
        return []
    sorted_ = facts.assign(key=facts.map_id.map(keys)).sort_values(["key", "map_id"])
    in_head = sorted_.groupby(["checkpoint", "layer", "head"], sort=False).cumcount()
    by_head = sorted_.assign(round=in_head).sort_values(["round", "key", "map_id"])
    in_checkpoint = by_head.groupby("checkpoint", sort=False).cumcount()
    return list(by_head.assign(turn=in_checkpoint).sort_values(["turn", "key", "map_id"])["map_id"])


def order_anew(db: Database, project: str, hints: Hints | None, *, annotator: str = "") -> int:
    """Hand the maps that want labels out by what the classifier is least sure of now.

    Args:
        db: where the project is stored.
        hints: what the classifier says of maps; None where none suggests.
        annotator: who orders them, for the record.

    Raises:
        InputError: no classifier suggests, or every map has its labels.
        RightsError: one who is no admin asks.
    """
    db.person.must("admin", "order the maps of a project")
    names = assignment_service.board_of(db, project).open_maps
    if not names:
        raise InputError("Maps are ordered while some want labels; in this project all have theirs: make another one.")
    ordered = by_uncertainty(labels.map_facts(db), names, hints)
    projects.order_maps(db, project, ordered, annotator=annotator)
    return len(ordered)


def by_uncertainty(facts: pd.DataFrame, names: list[str], hints: Hints | None) -> list[str]:
    """These maps with the smallest margin of the classifier first, still going round heads and checkpoints."""
    if hints is None:
        raise InputError(
            "The most uncertain maps come first only when a classifier suggests; none does: choose one on the Pattern "
            "classifier page, or another order."
        )
    suggested = hints(names)
    margins = pd.Series({name: suggested[name][2] for name in names}, dtype=float)
    return spread(facts[facts.map_id.isin(set(names))], margins)
