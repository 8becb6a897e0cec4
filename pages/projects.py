"""Projects: maps that several people label, from setting up to one class per map."""

from pages.parts.views.page import show_page

show_page("projects")
