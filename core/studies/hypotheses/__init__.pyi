from . import criteria as criteria
from . import hypothesis as hypothesis
from . import predicates as predicates
from . import readings as readings
from . import records as records
from . import registering as registering
from . import row_choice as row_choice
from . import runs as runs
