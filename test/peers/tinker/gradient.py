"""gradient.py MODEL_DIR BEFORE AFTER ORDER.json: what gradient a server had, against autograd.

BEFORE and AFTER are LoRA adapters as the server saved them, one optimizer step apart; the step was plain descent, so
their difference is the gradient. The objective is written down here a second time, from its formula
(ppo at ratio 1 with token-level truncated importance weights), in double precision.
"""

import json
import sys
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

model_dir, before, after, order = sys.argv[1:5]
asked = json.loads(Path(order).read_text())


def tensors(folder: str) -> dict[str, torch.Tensor]:
    return {k: v.double() for k, v in load_file(Path(folder) / "adapter_model.safetensors").items()}


first, last = tensors(before), tensors(after)
saved = json.loads((Path(before) / "adapter_config.json").read_text())
# Not every server writes down which modules it adapts; their names are in the weights.
modules = {name.removeprefix("base_model.model.").partition(".lora_")[0] for name in first}
config = LoraConfig(r=saved["r"], lora_alpha=saved["lora_alpha"], target_modules=sorted(modules))
base = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float64, attn_implementation="eager")
model = get_peft_model(base, config)
parameters = {n.replace(".default.", "."): p for n, p in model.named_parameters() if p.requires_grad}
missing = sorted(set(first) ^ set(parameters))
if missing:
    sys.exit(f"these weights are in one of the two alone: {missing[:4]} of {len(missing)}")
with torch.no_grad():
    for name, p in parameters.items():
        p.copy_(first[name])

loss = torch.zeros((), dtype=torch.float64)
everything = sum(s["weight"] for s in asked["samples"])
for s in asked["samples"]:
    tokens = torch.tensor([s["prompt"] + s["answer"]])
    logits = model(tokens[:, :-1]).logits[0, len(s["prompt"]) - 1 :]
    now = torch.log_softmax(logits, -1).gather(-1, tokens[0, len(s["prompt"]) :, None])[:, 0]
    rollout = torch.tensor(s["logprobs"], dtype=torch.float64)
    importance = (now.detach() - rollout).exp().clamp(max=asked["cap"])
    ratio = (now - now.detach()).exp()
    loss = loss - s["weight"] / everything * (importance * s["advantage"] * ratio).mean()
loss.backward()

# SkyRL has one lora_A for query, key and value, and writes it out three times: its gradient is the sum of theirs.
shared: dict[bytes, list[str]] = {}
for name, tensor in first.items():
    shared.setdefault(tensor.numpy().tobytes() + last[name].numpy().tobytes(), []).append(name)
groups = list(shared.values())
theirs = torch.cat([(first[names[0]] - last[names[0]]).flatten() for names in groups])
exact = torch.cat([sum(parameters[n].grad for n in names).flatten() for names in groups])
print(
    json.dumps(
        {
            "parameters": exact.numel(),
            "norm": exact.norm().item(),
            "relativeError": ((theirs - exact).norm() / exact.norm()).item(),
            "cosine": torch.nn.functional.cosine_similarity(theirs, exact, dim=0).item(),
        }
    )
)
