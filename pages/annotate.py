"""Annotate: label maps, the codebook, the classifier that learns from labels, and class sets."""

from pages.parts.views.page import show_page

show_page("annotate")
