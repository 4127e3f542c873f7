"""The worker: one model run by transformers, in a process and an environment of its own.

It speaks to the backend as llama-server does. Nothing else imports this package, and it imports
nothing else of Eloquio but what both ends have to agree on.
"""
