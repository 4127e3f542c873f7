"""Which models there are."""

import openai

from conformance.case import Cases
from conformance.target import Target, refused, valid

cases = Cases("models")
case = cases.case


@case()
def the_model_is_among_those_listed(target: Target) -> None:
    page = target.openai.models.list()
    models = {model.id: model for model in page}
    assert page.object == "list"
    assert valid(models[target.model]).object == "model"


@case()
def one_model_is_described_as_in_the_list(target: Target) -> None:
    model = target.openai.models.retrieve(target.model)
    [listed] = [each for each in target.openai.models.list() if each.id == target.model]
    assert model.to_dict() == listed.to_dict()


@case()
def a_model_says_since_when_it_is_there_and_whose_it_is(target: Target) -> None:
    model = target.openai.models.retrieve(target.model)
    assert model.created > 0
    assert model.owned_by


@case()
def a_model_that_is_not_there_is_not_found(target: Target) -> None:
    error = refused(openai.NotFoundError, lambda: target.openai.models.retrieve("org/nothing"))
    assert error.type == "invalid_request_error"
    assert error.code
