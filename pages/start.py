"""Start: what the app is, all heads for a sentence, and entry points."""

from pages.parts.views.page import show_page

show_page("start")
