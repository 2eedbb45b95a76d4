"""strace logs: every option set, unfinished and resumed halves, shared streams, split files."""

from mcpdetect.ingest.strace.log import StraceLog
from mcpdetect.ingest.strace.split import StraceFiles

__all__ = ["StraceFiles", "StraceLog"]
