"""Many streams over one copy of a model: `StreamPool`."""

from slimrnn.serving.pool_stats import PoolStats
from slimrnn.serving.stream_pool import StreamPool
from slimrnn.serving.ticket import Ticket

__all__ = ["PoolStats", "StreamPool", "Ticket"]
