"""Worlds of attention: what studies say of where heads look when it is known. Cases for `registry`."""

from tests.simulations.registry import Case

CASES: tuple[Case, ...] = ()
