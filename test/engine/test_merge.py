"""A checkpoint written as a whole model says the same as the engine that trained it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import Client, Server, datum, logprobs, signed_weights

DATA = [datum(30, images=1, weights=signed_weights), datum(31, weights=signed_weights)]


def merged(tiny: Path, weights: Path, out: Path) -> dict:
    command = [sys.executable, "-m", "dart_engine", "merge", f"--model={tiny}", f"--weights={weights}", f"--out={out}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("rank", [8, 0])
def test_a_merged_checkpoint_has_the_log_probs_of_the_trained_model(tiny, tmp_path, rank, figures):
    trained = Server(tiny, tmp_path / "state")
    client = Client(trained.url)
    model = client.model(rank=rank)
    for seq in (1, 3):
        client.train(model, seq, DATA)
        client.step(model, seq + 1, learning_rate=1e-2)
    saved = client.do("save_weights", {"model_id": model, "seq_id": 5, "path": "end"})
    before = np.concatenate(logprobs(client.train(model, 6, DATA, forward=True)))
    trained.stop()
    assert saved["path"].endswith("/weights/end")
    [weights] = (tmp_path / "state" / "models").glob("*/weights/end")
    said = merged(tiny, weights, tmp_path / "merged")
    assert said["layers"] > 0

    whole = Server(tmp_path / "merged", tmp_path / "other")
    client = Client(whole.url)
    after = np.concatenate(logprobs(client.train(client.model(rank=8), 1, DATA, forward=True)))
    whole.stop()
    base = Server(tiny, tmp_path / "base")
    client = Client(base.url)
    untrained = np.concatenate(logprobs(client.train(client.model(rank=8), 1, DATA, forward=True)))
    base.stop()
    difference = float(np.abs(after - before).max())
    figures[f"merged_logprob_max_difference_rank_{rank}"] = difference
    assert difference < 2e-5
    assert float(np.abs(untrained - before).max()) > 0.05
    if rank:
        from safetensors.torch import load_file

        # The head was trained and the embedding was not, though they were one weight.
        tensors = load_file(tmp_path / "merged" / "model.safetensors")
        head = next(t for n, t in tensors.items() if n.endswith("lm_head.weight"))
        embedding = next(t for n, t in tensors.items() if n.endswith("embed_tokens.weight"))
        assert not torch.equal(head, embedding)


def test_an_adapter_of_another_model_is_refused(tiny, tmp_path):
    from dart_engine.checkpoints import save_adapter
    from dart_engine.errors import EngineError
    from dart_engine.lora import LoraSpec
    from dart_engine.merge import merge

    folder = tmp_path / "adapter"
    folder.mkdir()
    spec = LoraSpec(2, 4.0, ("model.somewhere.q_proj",))
    save_adapter(folder, spec, {"model.somewhere.q_proj.lora_A.weight": torch.ones(2, 4), "model.somewhere.q_proj.lora_B.weight": torch.ones(4, 2)}, "x")
    with pytest.raises(EngineError, match="another model"):
        merge(str(tiny), folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()
