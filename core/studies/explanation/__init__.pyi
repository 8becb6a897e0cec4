from . import cell_parts as cell_parts
from . import why as why
from . import writes as writes
