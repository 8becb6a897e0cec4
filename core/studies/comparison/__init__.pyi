from . import counterparts as counterparts
from . import development as development
from . import head_similarity as head_similarity
from . import records as records
