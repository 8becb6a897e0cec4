from . import change as change
from . import constant_comparison as constant_comparison
from . import finetune as finetune
from . import finetuning_results as finetuning_results
from . import finetuning_run as finetuning_run
from . import map_comparison as map_comparison
from . import records as records
