"""Linguistics: the words and relations that heads attend to, and what probes can decode from layers."""

from pages.parts.views.page import show_page

show_page("linguistics")
