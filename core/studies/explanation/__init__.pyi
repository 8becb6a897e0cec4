from . import cell_parts as cell_parts
from . import records as records
from . import score_shares as score_shares
from . import why as why
