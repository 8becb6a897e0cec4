"""Reproduction: published figures, tables and claims compared with measurements."""

from pages.parts.views.page import show_page

show_page("reproduction")
