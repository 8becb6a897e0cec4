from . import change as change
from . import finetune as finetune
from . import finetuning_results as finetuning_results
from . import finetuning_run as finetuning_run
from . import learned as learned
from . import map_comparison as map_comparison
from . import records as records
