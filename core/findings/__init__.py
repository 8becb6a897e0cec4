"""Findings: what was found, pinned with a note, and sent on with the numbers and the command behind it."""
