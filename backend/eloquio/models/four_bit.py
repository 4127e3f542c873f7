"""Whether a model's weights are held in 4 bits, and what a person should know of that."""

from eloquio.models.entry import AdapterFolder, ModelEntry, SafetensorsFolder
from eloquio.models.schema import LoadRequest

_OWN = "in its own precision"


def in_4bit(request: LoadRequest, entry: ModelEntry, device: str) -> tuple[bool, tuple[str, ...]]:
    """The choice, and sentences on it.

    `load_in_4bit` is true by default, which means: where it is possible and does some good. Only
    who sent it is told that it has no effect. Of an adapter its own training decides, unless the
    request says otherwise.
    """
    files = entry.files
    assert isinstance(files, SafetensorsFolder | AdapterFolder)
    was_sent = "load_in_4bit" in request.model_fields_set
    model = files.model if isinstance(files, AdapterFolder) else files
    if (method := model.config.quantization) is not None:
        told = f"Its weights are quantized already ({method}), and are loaded as they are."
        return False, (told,) if was_sent or isinstance(files, AdapterFolder) else ()
    if model.kind in ("transcription", "embedding"):
        has_no_effect = was_sent and request.load_in_4bit
        told = "load_in_4bit has no effect: only models that write are held in 4 bits."
        return False, (told,) if has_no_effect else ()
    if isinstance(files, AdapterFolder):
        return _of_adapter(request, files, was_sent, device)
    if request.load_in_4bit and device == "cpu":
        told = f"4-bit weights need a GPU that bitsandbytes supports: the model is loaded {_OWN}."
        return False, (told,) if was_sent else ()
    if request.load_in_4bit and not was_sent:
        return True, (f"Its weights are held in 4 bits; load_in_4bit: false loads it {_OWN}.",)
    return request.load_in_4bit, ()


def _of_adapter(
    request: LoadRequest, files: AdapterFolder, was_sent: bool, device: str
) -> tuple[bool, tuple[str, ...]]:
    config = files.config
    wanted = request.load_in_4bit if was_sent else config.was_trained_in_4bit
    as_trained = "in 4 bits" if config.was_trained_in_4bit else _OWN
    if wanted and device == "cpu":
        return False, (
            f"The adapter's base is loaded {_OWN}: 4-bit weights, as it was asked for or trained"
            f" with, need a GPU that bitsandbytes supports.",
        )
    chosen = "in 4 bits" if wanted else _OWN
    if wanted != config.was_trained_in_4bit:
        return wanted, (
            f"The adapter's base is loaded {chosen}, as asked; it was trained on it {as_trained}"
            f" ({config.reason}).",
        )
    return wanted, (f"The adapter's base is loaded {chosen}: {config.reason}.",)
