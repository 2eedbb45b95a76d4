"""gVisor's own system call log: what ``runsc --strace`` writes, read into the same events as strace's."""

from mcpdetect.ingest.gvisor.log import GvisorLog

__all__ = ["GvisorLog"]
