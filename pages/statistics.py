"""Statistics of every head, effective attention, and pattern classes."""

from pages.parts.views.page import show_page

show_page("statistics")
