"""What a sentence says, whatever its words: its numbers and heads."""

import re


def figures(text: str) -> list[str]:
    """Numbers and names such as L1H2 or L3, sorted."""
    found = re.findall(r"L\d+(?:H\d+)?\b|[-+]?\d[\d,]*(?:\.\d+)?", text.replace("\u2212", "-"))
    return sorted(figure.rstrip(",") for figure in found)
