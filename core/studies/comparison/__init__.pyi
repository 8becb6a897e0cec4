from . import development as development
from . import head_similarity as head_similarity
from . import match as match
from . import records as records
