"""Logs of DNS resolvers made into questions and answers, one module a format.

The adapters of the rarer formats are imported from their modules: nobody should wait for patterns that are not used.
"""

from mcpdetect.ingest.dnslog.choose import open_dns_log
from mcpdetect.ingest.dnslog.dnsmasq import DnsmasqLog

__all__ = ["DnsmasqLog", "open_dns_log"]
