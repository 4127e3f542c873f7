"""The machine's memory, as loads are measured against it."""

from dataclasses import dataclass

from eloquio.engines.devices import Device, MainMemory

# Left to the system and to what else runs, so that a load doesn't push the desktop into swap.
RESERVE_BYTES = 512 * 1024 * 1024


@dataclass(frozen=True)
class Ledger:
    """Main memory and the accelerators' own, which one model may fill together."""

    main: MainMemory
    devices: tuple[Device, ...] = ()
    promised_bytes: int = 0
    """Of what resident models were planned with, the part that the system still counts as free.

    A context that nobody has filled yet, and weights that are mapped from their file.
    """

    @property
    def total_bytes(self) -> int:
        return self.main.total_bytes + sum(device.total_bytes for device in self._own)

    @property
    def free_bytes(self) -> int:
        """What a load can still get."""
        measured = self.main.available_bytes + sum(device.free_bytes for device in self._own)
        return max(0, measured - self.promised_bytes - RESERVE_BYTES)

    @property
    def _own(self) -> list[Device]:
        # Metal's memory is main memory: it counts once.
        return [device for device in self.devices if device.kind != "metal"]
