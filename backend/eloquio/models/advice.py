"""What a person should know of what they asked for."""

from eloquio.models.schema import LoadRequest


def without_effect(request: LoadRequest) -> list[str]:
    """A sentence for each thing that was set for a GGUF model on this machine, and does nothing.

    `load_in_4bit` isn't one: nobody need have set what is true by default.
    """
    sentences = []
    if request.trust_remote_code:
        sentences.append("trust_remote_code has no effect: a GGUF model brings no code to run.")
    if request.hf_token is not None and request.hf_token.get_secret_value():
        sentences.append("hf_token has no effect: the model is on this machine already.")
    return sentences
