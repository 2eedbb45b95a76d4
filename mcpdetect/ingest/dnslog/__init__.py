"""Logs of DNS resolvers made into questions and answers, one module a format."""

from mcpdetect.ingest.dnslog.bind import BindLog
from mcpdetect.ingest.dnslog.choose import open_dns_log
from mcpdetect.ingest.dnslog.coredns import CoreDnsLog
from mcpdetect.ingest.dnslog.dnsmasq import DnsmasqLog
from mcpdetect.ingest.dnslog.resolved import ResolvedLog
from mcpdetect.ingest.dnslog.unbound import UnboundLog
from mcpdetect.ingest.dnslog.zeek import ZeekLog

__all__ = ["BindLog", "CoreDnsLog", "DnsmasqLog", "ResolvedLog", "UnboundLog", "ZeekLog", "open_dns_log"]
