"""`python -m core finetune CHECKPOINT --task T` and `python -m core study change BEFORE AFTER`."""

from core.commands.study_commands import command
from core.studies.ablation import crossed_scores as cross_scoring
from core.studies.tuning import change as comparing
from core.studies.tuning import finetune as tuning

finetune = command(tuning.STUDY)
change = command(comparing.STUDY)
crossed_scores = command(cross_scoring.STUDY)
