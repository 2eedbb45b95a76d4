"""strace logs: every option set, unfinished and resumed halves, shared streams, split files."""

from mcpdetect.ingest.strace.log import StraceLog

__all__ = ["StraceLog"]
