"""Firewall evidence: kernel LOG lines of iptables and nftables, and the counters of nftables listings."""

from mcpdetect.ingest.firewall.counters import NftCounters
from mcpdetect.ingest.firewall.log import FirewallLog

__all__ = ["FirewallLog", "NftCounters"]
