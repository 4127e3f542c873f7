"""Every case there is, of every group, in the order in which they are tried."""

from collections.abc import Sequence

from conformance import node
from conformance.case import Case
from conformance.cases import (
    agents,
    chat,
    completions,
    embeddings,
    endings,
    formats,
    messages,
    models,
    refusals,
    responses,
    sampling,
    streams,
    tools,
)

_GROUPS = (
    models,
    chat,
    sampling,
    streams,
    formats,
    tools,
    completions,
    embeddings,
    responses,
    messages,
    agents,
    refusals,
    endings,
    node,
)

CASES: Sequence[Case] = [case for group in _GROUPS for case in group.cases.all]
