from . import hypothesis as hypothesis
from . import joint_job as joint_job
from . import measure_heads as measure_heads
from . import predicates as predicates
from . import readings as readings
from . import records as records
from . import registering as registering
