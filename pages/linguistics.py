"""Linguistics: which heads attend to what words, along which relations, and what can be read from them."""

from pages.parts.views.page import show_page

show_page("linguistics")
