"""The finding of a stored run in one sentence, with n, an interval and a baseline."""

from dataclasses import dataclass

SURE = 0.05  # corrected p below which an effect counts as beyond luck


@dataclass(frozen=True)
class Headline:
    """What a run found.

    Attributes:
        n: of what it was measured on; None where the rows do not say.
        interval, baseline: in words; "" where there is none.
    """

    sentence: str
    n: int | None = None
    of: str = "examples"
    interval: str = ""
    baseline: str = ""


def percent(low: float | None, high: float | None, form: str = "{:+.1f}", times: int = 100) -> str:
    """An interval in words; "" without one."""
    if low is None or high is None:
        return ""
    return f"95 % CI {form.format(times * low)} to {form.format(times * high)}"


def defined(value: float | None) -> float:
    """The value. Raises ValueError where there is none, of which nothing can be said."""
    if value is None:
        raise ValueError("undefined")
    return value


def points_more(share: float, than: str) -> str:
    """A difference of shares as a person says it: "1.7 points more than this", "1.7 points less than this"."""
    points = round(100 * share, 1)
    if not points:
        return f"as much as {than}"
    return f"{abs(points):.1f} points {'more' if points > 0 else 'less'} than {than}"


def plural(count: int, of: int, what: str) -> str:
    """ "3 of 12 changes"."""
    return f"{count} of {of} {what}"
