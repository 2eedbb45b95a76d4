"""Whose act was it? What the wire shows and no traced process asked for may be somebody else's."""

from __future__ import annotations

from mcpdetect.correlate.contacts import Contacts
from mcpdetect.model.result import Explanation

__all__ = ["unattributed"]


def unattributed(calls_watched: bool, contacts: Contacts) -> list[Explanation]:
    """Return the explanation for something that no system call of the run asked for, empty where it cannot be given.

    Args:
        calls_watched: the calls that would show it were watched, without a loss that touches them.
        contacts: the run's contacts. A raw or packet socket, or a send whose destination is hidden, may be the missing
            call, so nothing is excused then.
    """
    if not calls_watched or contacts.raw_socket is not None or contacts.unknown_destination:
        return []
    return [
        Explanation(
            "unattributed",
            "no traced process made this contact: something else in the sandbox's network may have",
            "the system call trace of this run, which is complete for sockets",
        )
    ]
