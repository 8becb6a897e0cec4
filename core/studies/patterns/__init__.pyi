from . import discover as discover
from . import draw_maps as draw_maps
from . import map_classification as map_classification
from . import pattern_shares as pattern_shares
from . import records as records
from . import train_patterns as train_patterns
