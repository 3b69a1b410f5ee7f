"""The official `tinker` SDK, unmodified, trains, samples, saves and restores against a running engine.

usage: TINKER_BASE_URL=http://127.0.0.1:PORT TINKER_API_KEY=tml-dummy python train.py IMAGE.png RESULT.json
Every line of the table is a check; the exit code is 1 when one fails.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import tinker
from tinker import types

warnings.simplefilter("ignore", FutureWarning)
PIXELS = Path(sys.argv[1]).read_bytes()
IMAGE_TOKENS = 28
CHECKS: list[dict] = []


def check(name: str, ok: bool, detail: str = "") -> None:
    CHECKS.append({"name": name, "ok": bool(ok), "detail": detail})
    print("ok  " if ok else "FAIL", name, detail)


def prompt(last: int) -> types.ModelInput:
    return types.ModelInput(
        chunks=[
            types.EncodedTextChunk(tokens=[258, 10, 11, 259]),
            types.ImageChunk(data=PIXELS, format="png", expected_tokens=IMAGE_TOKENS),
            types.EncodedTextChunk(tokens=[260, 12, last]),
        ]
    )


def datum(last: int, answer: list[int], **inputs) -> types.Datum:
    model_input = prompt(last)
    model_input = types.ModelInput(chunks=[*model_input.chunks, types.EncodedTextChunk(tokens=answer[:-1])])
    before = 4 + IMAGE_TOKENS + 3 - 1
    targets = np.array([0] * before + answer, dtype=np.int64)
    filled = {name: np.array([0.0] * before + list(values), dtype=np.float32) for name, values in inputs.items()}
    loss_inputs = {"target_tokens": types.TensorData.from_numpy(targets)}
    loss_inputs.update({name: types.TensorData.from_numpy(values) for name, values in filled.items()})
    return types.Datum(model_input=model_input, loss_fn_inputs=loss_inputs)


def main() -> None:
    service = tinker.ServiceClient()
    names = [model.model_name for model in service.get_server_capabilities().supported_models]
    check("get_server_capabilities", "base" in names, str(len(names)))
    training = service.create_lora_training_client(base_model="base", rank=8, seed=1)
    info = training.get_info()
    check("create_model, get_info", info.model_data.model_name is not None and info.lora_rank == 8)
    answers = {1: [20, 21, 22, 256], 2: [30, 31, 32, 256]}
    data = [datum(last, answer, weights=[1.0] * 4) for last, answer in answers.items()]
    adam = types.AdamParams(learning_rate=5e-3, beta1=0.9, beta2=0.95, eps=1e-8)
    losses, begun = [], time.monotonic()
    for _ in range(40):
        work, step = training.forward_backward(data, "cross_entropy"), training.optim_step(adam)
        losses.append(work.result().metrics["loss:sum"])
        step.result()
    seconds = time.monotonic() - begun
    check("40 steps of cross_entropy with an image", losses[-1] < 0.1 * losses[0], f"{losses[0]:.2f} -> {losses[-1]:.3f} in {seconds:.1f} s")
    sampler = training.save_weights_and_get_sampling_client(name="step-40")
    greedy = types.SamplingParams(max_tokens=8, temperature=0.0, seed=1)
    out = {last: sampler.sample(prompt(last), num_samples=1, sampling_params=greedy).result().sequences[0] for last in answers}
    check("sampling what was taught", all(list(out[last].tokens) == answer for last, answer in answers.items()), str({k: list(v.tokens) for k, v in out.items()}))
    several = sampler.sample(prompt(1), num_samples=4, sampling_params=types.SamplingParams(max_tokens=6, temperature=1.0, seed=2)).result()
    rl, expected = [], []
    for sequence in several.sequences:
        tokens, values = list(sequence.tokens), list(sequence.logprobs)
        rl.append(datum(1, tokens, logprobs=values, advantages=[0.5] * len(tokens)))
        expected.append(values)
    scored = training.forward(
        [datum(1, list(s.tokens), weights=[0.0] * len(s.tokens)) for s in several.sequences], "cross_entropy"
    ).result()
    worst = max(float(np.abs(np.asarray(o["logprobs"].data)[-len(e) :] - np.asarray(e)).max()) for o, e in zip(scored.loss_fn_outputs, expected, strict=True))
    check("forward against sampled log-probs, weights 0", worst <= 2e-6, f"{worst:.1e}")
    for loss in ("importance_sampling", "ppo", "cispo"):
        result = training.forward_backward(rl, loss).result()
        wanted = -0.5 * sum(len(e) for e in expected)
        if loss == "cispo":
            wanted = -0.5 * sum(sum(e) for e in expected)
        check(f"{loss} at ratio 1", abs(result.metrics["loss:sum"] - wanted) < 1e-4, f"{result.metrics['loss:sum']:.6f}")
    training.optim_step(adam).result()
    custom(training, data)
    training.optim_step(adam).result()
    saved = training.save_state("state-1").result().path
    restored = service.create_training_client_from_state_with_optimizer(saved)
    same = [np.concatenate([np.asarray(o["logprobs"].data) for o in c.forward(data, "cross_entropy").result().loss_fn_outputs]) for c in (training, restored)]
    check("restored from its state, to the bit", np.array_equal(*same))
    for client in (training, restored):
        client.forward_backward(data, "cross_entropy").result()
        client.optim_step(adam).result()
    same = [np.concatenate([np.asarray(o["logprobs"].data) for o in c.forward(data, "cross_entropy").result().loss_fn_outputs]) for c in (training, restored)]
    check("one more step in both, to the bit", np.array_equal(*same))
    path = training.save_weights_for_sampler("named").result().path
    named = service.create_sampling_client(model_path=path)
    check("a named version samples", len(named.sample(prompt(1), num_samples=1, sampling_params=greedy).result().sequences) == 1, path.split("/", 3)[-1])
    scores = named.compute_logprobs(prompt(1)).result()
    check("compute_logprobs of a prompt", scores[0] is None and len(scores) == 4 + IMAGE_TOKENS + 3)
    rest = service.create_rest_client()
    check("training_runs", len(rest.list_training_runs().result().training_runs) >= 2)


def custom(training, data) -> None:
    """The client computes its own loss from a forward with weights 0 and sends signed weights."""
    try:
        import torch
    except ImportError:
        CHECKS.append({"name": "forward_backward_custom", "ok": True, "detail": "not run: the SDK's environment has no torch"})
        return

    def loss(items, logprobs):
        total = sum((values[-4:] ** 2).sum() for values in logprobs)
        return total, {"square": float(total.detach())}

    result = training.forward_backward_custom(data, loss).result()
    check("forward_backward_custom", result.metrics["square"] > 0 and torch.isfinite(torch.tensor(result.metrics["square"])).item(), f"{result.metrics['square']:.6f}")


if __name__ == "__main__":
    main()
    failed = [item for item in CHECKS if not item["ok"]]
    Path(sys.argv[2]).write_text(json.dumps({"tinker": version("tinker"), "checks": CHECKS, "ok": not failed}, indent=2) + "\n")
    sys.exit(1 if failed else 0)
