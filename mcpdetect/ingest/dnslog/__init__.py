"""Logs of DNS resolvers made into questions and answers, one module a format."""

from mcpdetect.ingest.dnslog.dnsmasq import DnsmasqLog

__all__ = ["DnsmasqLog"]
