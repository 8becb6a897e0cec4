from . import records as records
from . import why as why
