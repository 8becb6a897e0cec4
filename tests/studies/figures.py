"""What a sentence says, whatever its words: its numbers, its heads, and words that turn a finding around."""

import re

TURNS = re.compile(r"\b(?:not|no|none|neither|undecided|higher|lower|increases?|decreases?)\b", re.IGNORECASE)


def figures(text: str) -> list[str]:
    """Numbers, names such as L1H2 or L3, and words such as *not*, sorted."""
    found = re.findall(r"L\d+(?:H\d+)?\b|[-+]?\d[\d,]*(?:\.\d+)?", text.replace("\u2212", "-"))
    return sorted([*(figure.rstrip(",") for figure in found), *(word.lower() for word in TURNS.findall(text))])
