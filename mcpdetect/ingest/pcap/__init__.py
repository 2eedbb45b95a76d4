"""Packet captures: pcap and pcapng files made into flows, DNS messages, TLS and QUIC hellos, HTTP requests."""

from mcpdetect.ingest.pcap.capture import PacketCapture

__all__ = ["PacketCapture"]
