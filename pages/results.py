"""Results: everything stored, what was pinned, and jobs."""

from pages.parts.views.page import show_page

show_page("results")
