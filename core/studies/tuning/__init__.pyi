from . import change as change
from . import finetune as finetune
from . import records as records
