from . import batches as batches
from . import model as model
from . import recipe as recipe
from . import saved_checkpoints as saved_checkpoints
from . import training as training
