"""How far a load has come."""

from dataclasses import dataclass


@dataclass
class Progress:
    """Bytes of the weights; written by the thread that loads, read by whoever is asked."""

    total_bytes: int
    loaded_bytes: int = 0
