"""Heads: all heads by any score, single heads, and similar heads."""

from pages.parts.views.page import show_page

show_page("heads")
