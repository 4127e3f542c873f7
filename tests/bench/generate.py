"""Plain `model.generate`: for each line of stdin, the seconds that an answer to it took.

python -m bench.generate FOLDER TOKENS
"""

import sys
import time


def main(folder: str, tokens: int) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    for line in sys.stdin:
        started = time.perf_counter()
        messages = [{"role": "user", "content": line.strip()}]
        inputs = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        answer = model.generate(**inputs, do_sample=False, max_new_tokens=tokens)
        made = answer.shape[1] - inputs["input_ids"].shape[1]
        assert made == tokens, f"the answer ended after {made} tokens"
        print(time.perf_counter() - started, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
