"""Start: what this is, all heads of a sentence, and the ways in."""

from pages.parts.views.page import show_page

show_page("start")
