"""Whisper and its kin: half a minute of sound at once, by the model's own `generate`."""

import math
import threading
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.whisper.tokenization_whisper import (
    LANGUAGES,
    TO_LANGUAGE_CODE,
    _combine_tokens_into_words,
)

from eloquio.worker.failures import RequestFailed
from eloquio.worker.left import once_left
from eloquio.worker.listen import Heard, Segment, Wishes, Word
from eloquio.worker.load import Loaded
from eloquio.worker.sound import Samples

# As OpenAI's own: what is tried where the likeliest text repeats itself or is a guess.
_WARMER = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_MOST_COMPRESSION = 2.4
_LEAST_LOGPROB = -1.0
_SILENCE = 0.6


@dataclass(frozen=True)
class _Draft:
    """What one temperature makes of a piece of sound."""

    segments: Sequence[Mapping[str, Any]]
    temperature: float
    avg_logprob: float
    compression_ratio: float

    @property
    def makes_sense(self) -> bool:
        return self.compression_ratio <= _MOST_COMPRESSION and self.avg_logprob >= _LEAST_LOGPROB


class WhisperListener:
    """One request's. RequestFailed for what this model has no way to do."""

    def __init__(self, loaded: Loaded, wishes: Wishes) -> None:
        self._model = loaded.model
        self._tokenizer = loaded.tokenizer
        self._ear = loaded.processor.feature_extractor
        self._meaning = loaded.model.generation_config
        self._name = loaded.plan.model
        self._wishes = wishes
        self.rate: int = self._ear.sampling_rate
        self.seconds: float = self._ear.n_samples / self.rate
        self._languages: dict[str, int] = getattr(self._meaning, "lang_to_id", None) or {}
        self._is_multilingual = bool(
            self._languages and getattr(self._meaning, "is_multilingual", True)
        )
        self._language = self._asked_language(wishes.language)
        self._refuse_impossible()
        self._prompt = self._prompt_ids(wishes.prompt)

    def hear(self, samples: Samples, is_left: threading.Event) -> Heard:
        seconds = len(samples) / self.rate
        features = self._ear(
            samples,
            sampling_rate=self.rate,
            return_tensors="pt",
            return_attention_mask=True,
            device="cpu",
        )
        sounds = features.input_features.to(self._model.device, self._model.dtype)
        ear = self._model.get_encoder()(sounds)
        encoded = BaseModelOutput(last_hidden_state=ear.last_hidden_state)
        no_speech = self._first_look(encoded)
        draft = self._best_draft(encoded, features.attention_mask, is_left)
        language = LANGUAGES.get(self._language or "en", self._language)
        if is_left.is_set():
            return Heard((), seconds, language)
        if no_speech > _SILENCE and draft.avg_logprob < _LEAST_LOGPROB:
            return Heard((), seconds, language)
        made = [self._segment(each, draft, no_speech, seconds) for each in draft.segments]
        segments = tuple(each for each in made if each.text.strip() and each.end > each.start)
        return Heard(segments, self._end_of(draft.segments, seconds), language)

    def _first_look(self, encoded: BaseModelOutput) -> float:
        """How likely nothing is said; and the language, where it isn't known yet."""
        start = torch.tensor([[self._meaning.decoder_start_token_id]], device=self._model.device)
        scores = self._model(
            encoder_outputs=encoded, decoder_input_ids=start, use_cache=False
        ).logits[0, -1]
        if self._language is None and self._is_multilingual:
            self._language = max(self._languages, key=lambda name: scores[self._languages[name]])
            self._language = self._language.strip("<|>")
        no_timestamps = getattr(self._meaning, "no_timestamps_token_id", None)
        if no_timestamps is None:
            return 0.0
        return float(scores.float().softmax(-1)[no_timestamps - 1])

    def _best_draft(
        self, encoded: BaseModelOutput, mask: torch.Tensor, is_left: threading.Event
    ) -> _Draft:
        """The first that makes sense; the last, where none does."""
        asked = self._wishes.temperature
        for temperature in (asked,) if asked else _WARMER:
            draft = self._draft(encoded, mask, temperature, is_left)
            if draft.makes_sense or is_left.is_set():
                break
        return draft

    def _draft(
        self,
        encoded: BaseModelOutput,
        mask: torch.Tensor,
        temperature: float,
        is_left: threading.Event,
    ) -> _Draft:
        words = {"return_token_timestamps": True} if self._wishes.wants_words else {}
        language = {"language": self._language, "task": self._wishes.task}
        config = self._model.model.config
        attention = config._attn_implementation
        try:
            made = self._model.generate(
                encoder_outputs=encoded,
                attention_mask=mask,
                prompt_ids=self._prompt,
                temperature=temperature,
                return_timestamps=self._has_timestamps,
                return_segments=True,
                # Where there is a threshold the scores are kept. What makes sense is decided here.
                logprob_threshold=-math.inf,
                # What is left of the piece after a cut is heard with what follows it.
                force_unique_generate_call=True,
                max_length=self._model.config.max_target_positions,
                stopping_criteria=once_left(is_left),
                **(language if self._is_multilingual else {}),
                **words,
            )
        finally:
            # It is changed for the times of words, and never back.
            config._attn_implementation = attention
        segments = made["segments"][0]
        text = "".join(self._text(segment["tokens"]) for segment in segments)
        return _Draft(
            segments,
            temperature,
            _average_logprob(segments[0]["result"], temperature) if segments else 0.0,
            _compression_ratio(text),
        )

    def _segment(
        self, made: Mapping[str, Any], draft: _Draft, no_speech: float, seconds: float
    ) -> Segment:
        end = min(float(made["end"]), seconds)
        return Segment(
            text=self._text(made["tokens"]),
            start=min(float(made["start"]), end),
            end=end,
            tokens=tuple(made["tokens"].tolist()),
            temperature=draft.temperature,
            avg_logprob=draft.avg_logprob,
            compression_ratio=draft.compression_ratio,
            no_speech_prob=no_speech,
            words=self._words(made, end) if self._wishes.wants_words else (),
        )

    def _words(self, made: Mapping[str, Any], end: float) -> tuple[Word, ...]:
        """Each begins with its first token, and ends where the next one begins."""
        tokens, times = made["tokens"].tolist(), made["token_timestamps"].tolist()
        text = [at for at, token in enumerate(tokens) if token < self._meaning.eos_token_id]
        begins = [times[at] for at in text]
        ends = [*(times[at + 1] if at + 1 < len(times) else end for at in text)]
        words, _, places = _combine_tokens_into_words(
            self._tokenizer, [tokens[at] for at in text], LANGUAGES.get(self._language or "en")
        )
        return tuple(
            Word(word.strip(), min(begins[place[0]], end), min(ends[place[-1]], end))
            for word, place in zip(words, places, strict=True)
            if word.strip()
        )

    def _end_of(self, segments: Sequence[Mapping[str, Any]], seconds: float) -> float:
        """How far the sound was heard: a segment that begins before its end is heard anew."""
        if not segments or not self._has_timestamps:
            return seconds
        first_time = self._meaning.no_timestamps_token_id + 1
        is_cut = segments[-1]["tokens"][-2:].ge(first_time).tolist() == [True, True]
        end = float(segments[-1]["end"])
        return end if is_cut and 0.0 < end < seconds else seconds

    def _text(self, tokens: torch.Tensor) -> str:
        ids = [token for token in tokens.tolist() if token < self._meaning.eos_token_id]
        text: str = self._tokenizer.decode(ids, skip_special_tokens=True)
        return text

    # What can be had ------------------------------------------------------------------------

    @property
    def _has_timestamps(self) -> bool:
        return getattr(self._meaning, "no_timestamps_token_id", None) is not None

    def _asked_language(self, asked: str | None) -> str | None:
        """By its code; None: to be found."""
        if asked is None:
            return None
        name = asked.strip().lower().strip("<|>")
        code = TO_LANGUAGE_CODE.get(name, name)
        known = [each.strip("<|>") for each in self._languages] if self._is_multilingual else ["en"]
        if code not in known:
            hears = ", ".join(sorted(known)) if self._is_multilingual else "English only"
            raise RequestFailed(
                f"{self._name} doesn't know the language {asked}; it knows {hears}",
                param="language",
            )
        return code

    def _refuse_impossible(self) -> None:
        if self._wishes.task == "translate" and not (
            self._is_multilingual and getattr(self._meaning, "task_to_id", None)
        ):
            raise RequestFailed(
                f"{self._name} hears English only, so it has nothing to translate", param="model"
            )
        if self._wishes.wants_words and not (
            self._has_timestamps and getattr(self._meaning, "alignment_heads", None)
        ):
            raise RequestFailed(
                f"{self._name} can't tell when a word is said: it has no alignment heads",
                param="timestamp_granularities",
            )

    def _prompt_ids(self, prompt: str) -> torch.Tensor | None:
        """The end of it, where it is longer than the half that the model has for what came before.

        Every piece of a sound gets it: names are spelled alike in all of them.
        """
        if not prompt.strip():
            return None
        try:
            ids = self._tokenizer.get_prompt_ids(prompt, return_tensors="pt")
        except ValueError as error:
            raise RequestFailed(
                f"prompt holds one of the model's own tokens: {error}", param="prompt"
            ) from error
        most = self._model.config.max_target_positions // 2 - 2
        kept = torch.cat([ids[:1], ids[1:][-most:]])
        return kept.to(self._model.device)


def _average_logprob(result: Mapping[str, Any], temperature: float) -> float:
    """Of the tokens of a piece, its end's among them, at temperature 1."""
    scores = result["scores"]
    chosen = result["sequences"][-len(scores) :].tolist()
    warmth = temperature or 1.0
    total = sum(
        float((score.float() * warmth).log_softmax(-1)[token])
        for score, token in zip(scores, chosen, strict=True)
    )
    return total / len(chosen)


def _compression_ratio(text: str) -> float:
    """High where it repeats itself."""
    data = text.encode()
    return len(data) / len(zlib.compress(data)) if data else 1.0
