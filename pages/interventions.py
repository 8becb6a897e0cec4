"""Interventions: what a checkpoint does without some of its parts, or with parts of another input."""

from pages.parts.views.page import show_page

show_page("interventions")
