"""Annotate: labelling of maps, the codebook, the classifier trained on labels, and class sets."""

from pages.parts.views.page import show_page

show_page("annotate")
