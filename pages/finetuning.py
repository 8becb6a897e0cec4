"""Fine-tuning: training on tasks, its effects, and the variation between seeds."""

from pages.parts.views.page import show_page

show_page("finetuning")
