"""The fake internet: every name has an address, every address answers, and all that arrives is written down.

``names`` knows what names answer, ``sinks`` and ``datagrams`` answer on every port in the protocol the client speaks,
``authority`` signs certificates that the room trusts, ``journal`` keeps what was received: ground truth for labels,
never evidence.
"""

from controls.recorder.internet.settings import DNS_MODES, DNS_PORT, SINK_PORT, Settings

__all__ = ["DNS_MODES", "DNS_PORT", "SINK_PORT", "Settings"]
