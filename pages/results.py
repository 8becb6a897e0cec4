"""Results: everything stored, pinned findings, and jobs."""

from pages.parts.views.page import show_page

show_page("results")
