"""Interventions: effects of ablating components, or of patching them from another input."""

from pages.parts.views.page import show_page

show_page("interventions")
