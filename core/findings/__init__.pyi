from . import export as export
from . import figures as figures
from . import hypothesis_crate as hypothesis_crate
from . import pinning as pinning
