"""Prompts by transformers' own renderer, of templates written as the families publish theirs."""

from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from eloquio.worker.reasoning import Tags, reasoning_form
from eloquio.worker.template import Conversation, TemplateRefused, prompt_ids, prompt_text

ALTERNATES = """{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
{%- endif %}"""
GEMMA = (
    """{{ bos_token }}{%- if messages[0]['role'] == 'system' %}
{{- raise_exception('System role not supported') }}{%- endif %}{%- for message in messages %}"""
    + ALTERNATES
    + """{%- set role = 'model' if message['role'] == 'assistant' else message['role'] %}
{{- '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}
{%- endfor %}{%- if add_generation_prompt %}{{- '<start_of_turn>model\\n' }}{%- endif %}"""
)
MISTRAL = (
    """{%- if messages[0]['role'] == 'system' %}{%- set system_message = messages[0]['content'] %}
{%- set loop_messages = messages[1:] %}{%- else %}{%- set loop_messages = messages %}{%- endif %}
{{- bos_token }}{%- for message in loop_messages %}"""
    + ALTERNATES
    + """{%- if message['role'] == 'user' %}{%- if loop.first and system_message is defined %}
{{- '[INST] ' + system_message + '\\n\\n' + message['content'] + '[/INST]' }}{%- else %}
{{- '[INST] ' + message['content'] + '[/INST]' }}{%- endif %}
{%- elif message['role'] == 'assistant' %}
{{- ' ' + message['content'] | trim + eos_token }}{%- endif %}{%- endfor %}"""
)
# Reads the first system message alone, and says nothing of the others.
FORGETFUL = """{%- if messages[0].role == 'system' %}{{- 'system: ' + messages[0].content + '\\n' }}
{%- endif %}{%- for message in messages %}{%- if message.role == 'user' %}
{{- 'user: ' + message.content + '\\n' }}{%- endif %}{%- endfor %}"""
OBEDIENT = """{%- set ns = namespace(thinks=true) %}{%- for message in messages %}
{%- if message.role == 'system' and '/no_think' in message.content %}{%- set ns.thinks = false %}
{%- else %}{{- message.content }}{%- endif %}{%- endfor %}{{- '|thinks' if ns.thinks }}"""
DEEPSEEK = """{%- for message in messages %}{%- if message['role'] == 'assistant' %}
{%- for tool in message['tool_calls'] %}{%- if message['content'] is none %}
{{- '<call>' + tool['function']['name'] + '<sep>' + tool['function']['arguments'] + '</call>' }}
{%- endif %}{%- endfor %}{%- else %}{{- message['content'] }}{%- endif %}{%- endfor %}"""
QWEN = """{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + message.content }}
{%- for tool_call in message.tool_calls %}
{{- '<tool_call>' + tool_call.function.arguments | tojson }}{%- endfor %}
{{- '<|im_end|>\\n' }}{%- endfor %}{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}{%- if enable_thinking is defined and enable_thinking is false %}
{{- '<think>\\n\\n</think>\\n\\n' }}{%- else %}{{- '<think>\\n' }}{%- endif %}{%- endif %}"""

BEGIN, END = "<s>", "</s>"


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    """Each byte is a token; encoding adds the beginning of the text by itself, as Llama's does."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {BEGIN: 0, END: 1} | {letter: at for at, letter in enumerate(alphabet, 2)}
    made = Tokenizer(models.BPE(vocabulary, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A", special_tokens=[(BEGIN, 0)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token=BEGIN, eos_token=END)


def said(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **fields}


STRICT = [
    said("system", "Be brief."),
    said("user", "one"),
    said("user", "two"),
    said("assistant", "three"),
    said("user", "four"),
]


def test_gemma_gets_the_system_message_and_two_turns_of_a_user_in_one(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    assert prompt_text(tokenizer, GEMMA, Conversation(STRICT)) == (
        "<s><start_of_turn>user\nBe brief.\n\none\n\ntwo<end_of_turn>\n"
        "<start_of_turn>model\nthree<end_of_turn>\n"
        "<start_of_turn>user\nfour<end_of_turn>\n<start_of_turn>model\n"
    )


def test_mistral_keeps_its_system_message_and_gets_two_turns_of_a_user_in_one(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    assert prompt_text(tokenizer, MISTRAL, Conversation(STRICT)) == (
        "<s>[INST] Be brief.\n\none\n\ntwo[/INST] three</s>[INST] four[/INST]"
    )


def test_what_can_not_be_mended_is_refused_with_the_templates_own_rule(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    begins_with_answer = Conversation([said("assistant", "hello"), said("user", "hi")])
    with pytest.raises(TemplateRefused, match="roles must alternate user/assistant") as refused:
        prompt_text(tokenizer, GEMMA, begins_with_answer)
    assert refused.value.status == 400


def test_an_error_inside_the_template_is_a_refusal_too(tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(TemplateRefused):
        prompt_text(tokenizer, "{{ messages[0].content + 1 }}", Conversation(STRICT))


def test_a_system_message_that_the_template_would_leave_out_is_put_where_it_is_read(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    later = Conversation([said("system", "a"), said("user", "b"), said("system", "c")])
    assert prompt_text(tokenizer, FORGETFUL, later) == "system: a\n\nc\nuser: b\n"


def test_a_system_message_that_works_without_being_written_stays(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    quiet = Conversation([said("system", "/no_think"), said("user", "hi")])
    assert prompt_text(tokenizer, OBEDIENT, quiet) == "hi"


CALLING = [
    said("user", "weather?"),
    said(
        "assistant",
        None,
        tool_calls=[{"id": "1", "function": {"name": "weather", "arguments": '{"city": "日本"}'}}],
    ),
    said("tool", "sunny", tool_call_id="1"),
]


def test_arguments_are_json_in_templates_that_join_texts_and_in_those_that_write_json(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    joined = prompt_text(tokenizer, DEEPSEEK, Conversation(CALLING))
    assert joined == 'weather?<call>weather<sep>{"city": "日本"}</call>sunny'
    assert '<tool_call>{"city": "日本"}' in prompt_text(tokenizer, QWEN, Conversation(CALLING))


def test_thinking_is_switched_and_its_form_is_seen_in_the_prompt(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    hello = [said("user", "what is <think>?")]
    thinks = prompt_text(tokenizer, QWEN, Conversation(hello))
    assert reasoning_form(QWEN, thinks) == Tags("<think>", "</think>", is_open=True)
    quiet = prompt_text(tokenizer, QWEN, Conversation(hello, enable_thinking=False))
    assert quiet.endswith("<think>\n\n</think>\n\n")
    assert reasoning_form(QWEN, quiet) == Tags("<think>", "</think>")


def test_an_answer_is_continued_where_it_ends(tokenizer: PreTrainedTokenizerFast) -> None:
    begun = [said("user", "capital?"), said("assistant", "The capital ")]
    prompt = prompt_text(tokenizer, QWEN, Conversation(begun, continues=True))
    assert prompt.endswith("<|im_start|>assistant\nThe capital ")


def test_a_continued_answer_that_the_template_cuts_is_refused_without_the_prompt(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    begun = Conversation([said("user", "secret"), said("assistant", "b")], continues=True)
    with pytest.raises(TemplateRefused) as refused:
        prompt_text(tokenizer, FORGETFUL + "{# content #}", begun)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("text", ["<s>hi", "hi"])
def test_the_beginning_of_text_is_there_once(tokenizer: PreTrainedTokenizerFast, text: str) -> None:
    ids = prompt_ids(tokenizer, text)
    assert ids.count(0) == 1
    assert tokenizer.decode(ids) == "<s>hi"
