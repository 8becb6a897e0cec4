"""How much of each labelling project is done, read for all of them at once."""

from dataclasses import dataclass

from .database import Database
from .projects import ANSWERS


@dataclass(frozen=True)
class ProjectCounts:
    """How much of a project is done. maps: to label, without gold and exemplars; counted: labels that take a place;
    people: who was handed a map, let in or excluded."""

    maps: int
    counted: int
    people: int


def project_counts(db: Database) -> dict[str, ProjectCounts]:
    """How much of every project is done, in one statement for all of them."""
    rows = db.cursor().execute(
        f"""{ANSWERS}, label_maps AS (SELECT project, count(*) AS n FROM project_map WHERE kind = 'label' GROUP BY ALL),
                labels AS (SELECT project, count(*) AS n FROM newest_answers
                           WHERE purpose = 'label' AND counted AND kind = 'label' GROUP BY ALL),
                people AS (SELECT project, count(DISTINCT person) AS n FROM (
                               SELECT project, annotator AS person FROM claim UNION ALL
                               SELECT project, person FROM project_event WHERE kind IN ('admit', 'exclude'))
                           GROUP BY ALL)
           SELECT project, label_maps.n, coalesce(labels.n, 0), coalesce(people.n, 0)
           FROM label_maps LEFT JOIN labels USING (project) LEFT JOIN people USING (project)"""  # noqa: S608 - ours
    )
    return {project: ProjectCounts(*counts) for project, *counts in rows.fetchall()}
