"""What a person may give llama-server beside a load's own fields."""

import re
from collections.abc import Sequence

from eloquio.errors import InvalidRequest

# What a person may tune by `extra_args`; all else could move the engine's socket, keys, files or
# model, fetch something, or run something.
_TUNING_FLAGS = """
    -t --threads -tb --threads-batch -C --cpu-mask -Cr --cpu-range --cpu-strict --prio --poll
    -Cb --cpu-mask-batch -Crb --cpu-range-batch --cpu-strict-batch --prio-batch --poll-batch
    -b --batch-size -ub --ubatch-size --keep --swa-full -fa --flash-attn -lv --verbosity
    --rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx
    --yarn-ext-factor --yarn-attn-factor --yarn-beta-slow --yarn-beta-fast
    -kvo --kv-offload -nkvo --no-kv-offload -ctk --cache-type-k -ctv --cache-type-v
    --repack -nr --no-repack --no-host --mlock --mmap --no-mmap -lm --load-mode --numa
    -dev --device -ot --override-tensor --override-kv --op-offload --no-op-offload
    -cmoe --cpu-moe -ncmoe --n-cpu-moe -ngl --gpu-layers --n-gpu-layers -sm --split-mode
    -mg --main-gpu -fit --fit -fitt --fit-target -fitc --fit-ctx --check-tensors
    --warmup --no-warmup --cache-prompt --no-cache-prompt --cache-reuse -cram --cache-ram
    -ctxcp --ctx-checkpoints -kvu --kv-unified -no-kvu --no-kv-unified -cb --cont-batching
    -nocb --no-cont-batching --context-shift --no-context-shift --pooling
    -sps --slot-prompt-similarity --image-min-tokens --image-max-tokens
    --mmproj-offload --no-mmproj-offload --draft-max --draft-min --draft-p-min
    --spec-draft-n-max --spec-draft-n-min --spec-draft-p-min
    --reasoning-format -rea --reasoning --reasoning-effort --reasoning-budget
    --reasoning-preserve --no-reasoning-preserve --chat-template-kwargs --skip-chat-parsing
    --no-skip-chat-parsing --prefill-assistant --no-prefill-assistant
    --samplers --sampling-seq -s --seed --ignore-eos --temp --temperature --top-k --top-p --min-p
    --top-nsigma --xtc-probability --xtc-threshold --typical --repeat-last-n --repeat-penalty
    --presence-penalty --frequency-penalty --dry-multiplier --dry-base --dry-allowed-length
    --dry-penalty-last-n --dynatemp-range --dynatemp-exp --mirostat --mirostat-lr --mirostat-ent
    -n --predict --n-predict --threads-http --timeout -to
"""


def refuse_untunable(arguments: Sequence[str]) -> None:
    """InvalidRequest for an extra argument that doesn't only tune the engine."""
    for argument in arguments:
        if not argument.isprintable():
            raise InvalidRequest("extra_args may hold printable text only.", param="extra_args")
        # llama-server takes --top_k for --top-k.
        name = argument.partition("=")[0].replace("_", "-")
        is_flag = name.startswith("-") and not re.match(r"-[\d.]", name)
        if is_flag and name not in _TUNING_FLAGS.split():
            raise InvalidRequest(
                f"extra_args may not hold {name}: only options that tune the engine are taken.",
                param="extra_args",
                next_step="Leave it out; a load's own fields name the model, files and servers.",
            )
