"""Worlds of effects: what studies say of components that were taken away when it is known. Cases for `registry`."""

from tests.simulations.registry import Case

CASES: tuple[Case, ...] = ()
