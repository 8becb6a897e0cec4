from . import probe as probe
from . import probe_features as probe_features
from . import records as records
from . import representation as representation
from . import subnetworks as subnetworks
from . import syntax as syntax
from . import transfer as transfer
from . import trials as trials
