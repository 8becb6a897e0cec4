"""Attention maps: every head of a checkpoint on one sentence or pair; generation; norms, rollout and flow."""

from pages.parts.views.page import show_page

show_page("maps")
