"""``trace.json`` and ``trace.jsonl``: one normalized run on disk, written and read as a stream."""

from mcpdetect.ingest.tracefile.reader import TraceFile
from mcpdetect.ingest.tracefile.write import write_trace

__all__ = ["TraceFile", "write_trace"]
