"""What a strict client may rely on, asked of whatever serves at an address.

`python -m conformance --base-url http://127.0.0.1:8642 --model …` runs every case there is and
tells which failed; the same cases are tests of this repository's own engines.
"""
