from . import attention as attention
from . import layers as layers
from . import ragged as ragged
