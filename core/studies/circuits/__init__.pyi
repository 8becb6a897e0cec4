from . import gate_table as gate_table
from . import gates as gates
from . import logit_differences as logit_differences
from . import pairs as pairs
from . import records as records
from . import shapley as shapley
from . import shapley_table as shapley_table
