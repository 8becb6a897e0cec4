"""Fine-tuning: train checkpoints on tasks, see what it changes, and how much seeds vary it."""

from pages.parts.views.page import show_page

show_page("finetuning")
