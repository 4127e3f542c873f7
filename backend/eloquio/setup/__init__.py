"""Makes a checkout ready, and checks and tests it: what the programs in `scripts` do.

It runs before anything is installed, so it imports the standard library alone, and of Eloquio only
itself.
"""
