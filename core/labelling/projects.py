"""Creation of labelling projects: selection and order of their maps, gold maps and exemplars."""

import hashlib
from collections.abc import Collection
from dataclasses import asdict, dataclass

import pandas as pd

from ..codebook.measures import NEARLY_UNIFORM
from ..errors import InputError, check_choice, check_range
from ..patterns.snapshot import current_labels, known_class_set
from ..store import labels, projects
from ..store.database import Database
from . import assignment_service
from .assignment import ORDERS, Rules
from .queue import Hints, alike_maps

MOST_K = 25  # annotators of a map


@dataclass(frozen=True)
class ProjectRecipe:
    """How stored maps are selected for a labelling project. The selection is balanced over checkpoints and heads.

    Attributes:
        checkpoints, tasks, layers: filters; empty for all. Layers are zero-based.
        gold, exemplars: number of maps with a known class, balanced over classes.
        known_from: annotator whose labels are the known classes; "" for adjudicated labels.
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
    """Sample attention maps for a labelling project, store the project, and return its ID.

    `people_there` are the people who could label (None: unknown), and `hints` suggestions of a classifier for the order
    "uncertain". Raises InputError if the rules cannot be met, the order needs a missing classifier, or no map matches;
    RightsError unless the user is an admin.
    """
    db.person.must("admin", "make a project")
    check_rules(rules, people_there)
    known_class_set(db, heading.class_set)
    facts = labels.map_facts(db)
    for column, choices in (("checkpoint", recipe.checkpoints), ("task", recipe.tasks), ("layer", recipe.layers)):
        if choices:
            facts = facts[facts[column].isin(choices)]
    facts = facts[facts.maximum >= NEARLY_UNIFORM] if recipe.leave_out_uniform else facts
    class_of_map = known_classes(db, heading.class_set, recipe.known_from) if recipe.gold or recipe.exemplars else {}
    count = recipe.exemplars + recipe.gold
    if count > len(class_of_map):
        source = f"labels by {recipe.known_from[:60]!r}" if recipe.known_from else "adjudicated labels"
        raise InputError(
            f"Exemplars and gold maps must have known classes (from {source}); {count} such maps were requested, but "
            f"only {len(class_of_map)} exist. Request fewer exemplars and gold maps, or "
            f"{'label' if recipe.known_from else 'adjudicate'} more maps."
        )
    by_class: dict[str, list[str]] = {}
    for name in sorted(class_of_map, key=lambda map_id: shuffled(recipe.seed, map_id)):
        by_class.setdefault(class_of_map[name], []).append(name)
    columns = [by_class[name] for name in sorted(by_class)]
    deepest = max(map(len, columns), default=0)
    mixed = [column[row] for row in range(deepest) for column in columns if row < len(column)]
    exemplars, gold = mixed[: recipe.exemplars], mixed[recipe.exemplars : count]
    ordinary = sampled(facts[~facts.map_id.isin({*exemplars, *gold})], recipe)
    if not ordinary:
        raise InputError(
            f"A project must have maps to label; got none. Number of maps that match the filters: {len(facts)}; of "
            f"exemplars and gold maps: {len(exemplars) + len(gold)}. Sample more maps, change the filters, or request "
            "fewer exemplars and gold maps."
        )
    if rules.order == "uncertain":
        ordinary = by_uncertainty(facts, ordinary, hints)
    if rules.order == "clusters":
        ordinary = [name for group in alike_maps(db, ordinary) for name in group]
    maps = [projects.ProjectMap(name, "label") for name in ordinary]
    maps += [projects.ProjectMap(name, "gold", class_of_map[name]) for name in gold]
    maps += [projects.ProjectMap(name, "exemplar", class_of_map[name]) for name in exemplars]
    return projects.add_project(db, heading, recipe=asdict(recipe), rules=asdict(rules), maps=maps)


def check_rules(rules: Rules, people_there: Collection[str] | None = None) -> None:
    """Raise InputError if the rules of a labelling project cannot be fulfilled."""
    people = set(rules.people) or (set(people_there) if people_there is not None else None)
    if not 1 <= rules.k <= MOST_K:
        raise InputError(
            f"The number of annotators per map must be from 1 to {MOST_K}; got {rules.k}. Choose a number in this "
            "range."
        )
    if people is not None and rules.k > len(people):
        raise InputError(
            f"The number of annotators per map must not exceed the number of people who may label; got {rules.k} "
            f"annotators and {len(people)} people ({', '.join(sorted(people))[:120] or 'nobody'}). Request fewer "
            "annotators, or add people."
        )
    check_range("The share of gold maps", rules.gold_rate, 0, 0.5)
    check_range("The share of repeated maps", rules.repeat_rate, 0, 0.5)
    check_range("The share of exemplars labelled correctly to pass the entry test", rules.pass_mark, 0, 1)
    check_range("The accuracy on gold maps below which an annotator is paused", rules.threshold, 0, 1)
    check_range("The time for which maps are reserved (in seconds)", rules.lapse, 10, 7 * 86_400)
    check_range("The number of maps reserved at a time", rules.ahead, 1, 48)
    check_choice("The order of maps", rules.order, ORDERS)


def known_classes(db: Database, class_set: str, source: str) -> dict[str, str]:
    """Return the known class of each attention map, by map ID. Known classes are the labels by `source` or, if `source`
    is "", the adjudicated classes."""
    labels = current_labels(db, class_set)
    if source:
        labels = labels[(labels.annotator == source) & (labels["pass"] == 1)]
    else:
        labels = labels[labels.queue_order == "adjudication"]
    return dict(zip(labels.map_id, labels["class"], strict=True))


def shuffled(seed: int, map_id: str) -> bytes:
    """Return a sort key for putting maps in random order. The key depends only on the seed and the map."""
    return hashlib.sha256(f"{seed}:{map_id}".encode()).digest()


def sampled(facts: pd.DataFrame, recipe: ProjectRecipe) -> list[str]:
    """Return a random sample of maps, balanced over checkpoints and heads."""
    keys = pd.Series({name: shuffled(recipe.seed, name) for name in facts.map_id}, dtype=object)
    return spread(facts, keys)[: max(0, recipe.count)]


def spread(facts: pd.DataFrame, keys: pd.Series) -> list[str]:
    """Order map IDs so that every prefix of the list is balanced over heads and checkpoints.

    `facts` has map_id, checkpoint, layer, head; `keys` is the sort key within a head by map ID.
    """
    if facts.empty:
        return []
    sorted_ = facts.assign(key=facts.map_id.map(keys)).sort_values(["key", "map_id"])
    in_head = sorted_.groupby(["checkpoint", "layer", "head"], sort=False).cumcount()
    by_head = sorted_.assign(round=in_head).sort_values(["round", "key", "map_id"])
    in_checkpoint = by_head.groupby("checkpoint", sort=False).cumcount()
    return list(by_head.assign(turn=in_checkpoint).sort_values(["turn", "key", "map_id"])["map_id"])


def order_anew(db: Database, project: str, hints: Hints | None, *, annotator: str = "") -> int:
    """Reorder the maps of a project that still need labels, so that maps on which the classifier is most uncertain come
    first. Return the number of these maps.

    Raises InputError without a classifier, or if every map has all its labels; RightsError unless the user is an admin.
    """
    db.person.must("admin", "order the maps of a project")
    names = assignment_service.board_of(db, project).open_maps
    if not names:
        raise InputError(
            "Only a project with maps left to label can be reordered; in this project every map has all its "
            "labels. Create another project."
        )
    ordered = by_uncertainty(labels.map_facts(db), names, hints)
    projects.order_maps(db, project, ordered, annotator=annotator)
    return len(ordered)


def by_uncertainty(facts: pd.DataFrame, names: list[str], hints: Hints | None) -> list[str]:
    """Order maps by the uncertainty of the classifier (smallest margin first), balanced over heads and checkpoints."""
    if hints is None:
        raise InputError(
            'The order "uncertain" needs a classifier that suggests classes; none is chosen. Choose one on the '
            "Classifier page, or choose another order."
        )
    suggested = hints(names)
    margins = pd.Series({name: suggested[name][2] for name in names}, dtype=float)
    return spread(facts[facts.map_id.isin(set(names))], margins)
