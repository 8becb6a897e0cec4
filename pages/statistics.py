"""Statistics: of every head, of effective attention, and of pattern classes."""

from pages.parts.views.page import show_page

show_page("statistics")
