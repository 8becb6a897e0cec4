from . import cell_parts as cell_parts
from . import records as records
from . import why as why
from . import writes as writes
