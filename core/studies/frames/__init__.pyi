from . import frame_heads as frame_heads
from . import frame_lookup as frame_lookup
from . import index_frames as index_frames
from . import records as records
