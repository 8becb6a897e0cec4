from . import circuit as circuit
from . import edge_effects as edge_effects
from . import gates as gates
from . import pairs as pairs
from . import records as records
from . import shapley as shapley
