from . import distance_null as distance_null
from . import frame_heads as frame_heads
from . import frame_lookup as frame_lookup
from . import frame_partials as frame_partials
from . import index_frames as index_frames
from . import records as records
