"""What of the machine's memory a load may count on."""

from eloquio.engines.devices import Device, MainMemory
from eloquio.engines.ledger import RESERVE_BYTES, Ledger

GIB = 1024**3


def test_what_is_promised_and_a_reserve_are_not_free():
    ledger = Ledger(MainMemory(16 * GIB, 10 * GIB), promised_bytes=3 * GIB)
    assert ledger.free_bytes == 7 * GIB - RESERVE_BYTES


def test_an_accelerators_own_memory_counts_beside_main_memory():
    card = Device("CUDA0", "L4", total_bytes=24 * GIB, free_bytes=20 * GIB)
    ledger = Ledger(MainMemory(16 * GIB, 10 * GIB), (card,))
    assert ledger.total_bytes == 40 * GIB
    assert ledger.free_bytes == 30 * GIB - RESERVE_BYTES


def test_memory_that_an_accelerator_shares_with_the_processor_counts_once():
    metal = Device("MTL0", "M3", total_bytes=12 * GIB, free_bytes=12 * GIB)
    assert Ledger(MainMemory(16 * GIB, 10 * GIB), (metal,)).total_bytes == 16 * GIB


def test_more_promised_than_there_is_leaves_nothing():
    assert Ledger(MainMemory(GIB, GIB), promised_bytes=5 * GIB).free_bytes == 0
