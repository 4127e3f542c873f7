"""A prompt with pictures or sounds in it, prepared by the model's own processor."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from PIL import Image
from torchaudio.functional import resample

from eloquio.worker import sound
from eloquio.worker.failures import RequestFailed
from eloquio.worker.generator import Prompt
from eloquio.worker.load import Loaded
from eloquio.worker.sound import Samples

# By which processors say how much of what they return was heard.
_HEARD = ("feature_attention_mask", "input_features_mask", "audio_attention_mask")
# A little of a sound's end may not fill a step of the ear.
_LEAST_HEARD = 0.98


def prepared(
    loaded: Loaded, text: str, pictures: Sequence[Image.Image], sounds: Sequence[Samples]
) -> Prompt:
    """The tokens of a rendered prompt, its pictures' and sounds' own among them, and their values.

    Pictures have the size that the processor itself gives them. `text` is rendered already, so the
    token that begins it isn't put there twice. Seconds, at worst; belongs in a thread. Raises a
    RequestFailed for what the model can't see or hear.
    """
    processor, model = loaded.processor, loaded.model
    _refuse_what_it_lacks(loaded, pictures, sounds)
    media: dict[str, Any] = {}
    if pictures:
        media["images"] = list(pictures)
    if sounds:
        ear = processor.feature_extractor
        rate = getattr(ear, "sampling_rate", sound.RATE)
        media["audio"] = [_at_rate(each, rate) for each in sounds]
        media["sampling_rate"] = rate
    begins = loaded.tokenizer.bos_token
    try:
        made = processor(
            text=[text],
            **media,
            add_special_tokens=not (begins and text.startswith(begins)),
            return_tensors="pt",
        )
    except (ValueError, IndexError, TypeError, RuntimeError) as error:
        raise RequestFailed(
            f"the model's processor refuses what it is to see or hear: {error}", param="messages"
        ) from error
    inputs = {name: _as_in(value, model) for name, value in made.items()}
    _refuse_cut(loaded, inputs, sounds)
    ids = inputs.pop("input_ids")[0].tolist()
    return Prompt(ids, inputs)


def _refuse_what_it_lacks(
    loaded: Loaded, pictures: Sequence[Image.Image], sounds: Sequence[Samples]
) -> None:
    for there, part, what in (
        (pictures, "image_processor", "see pictures"),
        (sounds, "feature_extractor", "hear sounds"),
    ):
        if there and getattr(loaded.processor, part, None) is None:
            raise RequestFailed(f"{loaded.plan.model} can't {what}", param="messages")


def _refuse_cut(loaded: Loaded, inputs: Mapping[str, Any], sounds: Sequence[Samples]) -> None:
    """Some processors leave out, without a word, what comes after their first half minute."""
    ear = getattr(loaded.processor, "feature_extractor", None)
    mask = next((inputs[name] for name in _HEARD if name in inputs), None)
    step = getattr(ear, "hop_length", None)
    if not sounds or mask is None or step is None:
        return
    rate = getattr(ear, "sampling_rate", sound.RATE)
    there = sum(len(each) for each in sounds) / sound.RATE
    heard = float(mask.sum()) * step / rate
    if heard < there * _LEAST_HEARD - 0.1:
        raise RequestFailed(
            f"{loaded.plan.model} hears {heard:.0f} of {there:.0f} seconds: "
            "send shorter sounds, or the text of them",
            param="messages",
        )


def _at_rate(samples: Samples, rate: int) -> Samples:
    if rate == sound.RATE:
        return samples
    resampled: Samples = resample(torch.from_numpy(samples), sound.RATE, rate).numpy()
    return resampled


def _as_in(value: Any, model: Any) -> Any:
    """Numbers of the kind that the model computes with."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    return value.to(model.dtype)
