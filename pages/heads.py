"""Heads: all heads by any score, one head, and heads that are alike."""

from pages.parts.views.page import show_page

show_page("heads")
