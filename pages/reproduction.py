"""Reproduction: the papers' figures, tables and claims beside what this app measures."""

from pages.parts.views.page import show_page

show_page("reproduction")
