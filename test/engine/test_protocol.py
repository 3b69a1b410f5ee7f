"""The Tinker protocol over HTTP, in protobuf and JSON."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest
import zstandard
from dart_engine import wire
from helpers import ADAM, Client, HttpError, datum, held, image, image_tokens, logprobs, png, served, signed_weights, tensor, text, to_proto, until


def test_service_routes(client):
    assert client.get("/api/v1/healthz")["status"] == "ok"
    assert "base" in [model["model_name"] for model in client.get("/api/v1/get_server_capabilities")["supported_models"]]
    assert client.post("/api/v1/client/config", {"sdk_version": "0.38.0"})["pjwt_auth_enabled"] is False
    assert client.post("/api/v1/client/dynamic_config", {}) == {}
    client.post("/api/v1/telemetry", {"events": []})
    session = client.post("/api/v1/create_session", {"tags": [], "sdk_version": "x"})["session_id"]
    client.post("/api/v1/session_heartbeat", {"session_id": session})
    assert client.post(f"/api/v1/sessions/{session}/finish", {})["session_id"] == session


def test_proto_and_json_agree_to_the_bit(client):
    data = [datum(seed, images=1 + seed % 2, weights=signed_weights) for seed in range(3)]
    one, two, three = client.model(seed=4), client.model(seed=4), client.model(seed=4)
    plain = client.train(one, 1, data)
    message = wire.MESSAGES["ForwardBackwardOutput"]
    raw = to_proto(two, 1, data, "cross_entropy")
    answers = []
    for model, body, more in (
        (two, raw, {}),
        (three, zstandard.compress(to_proto(three, 1, data, "cross_entropy")), {"Content-Encoding": "zstd"}),
    ):
        headers = {"Content-Type": "application/x-protobuf", **more}
        status, submitted = client.raw("POST", "/api/v1/forward_backward", body, headers)
        assert status == 200, submitted
        answers.append(message.FromString(client.wait(json.loads(submitted)["request_id"], proto=True)))
    for answer in answers:
        assert answer.metrics["loss:sum"] == plain["metrics"]["loss:sum"]
        field = answer.loss_fn_outputs[0].fields["logprobs"]
        assert np.array_equal(np.frombuffer(field.data, "<f4"), np.concatenate(logprobs(plain)))
        assert np.frombuffer(field.offsets, "<i8")[-1] == len(field.data)
    norms = {client.step(model, 2)["metrics"]["grad_norm"] for model in (one, two, three)}
    assert len(norms) == 1
    after = [np.concatenate(logprobs(client.train(model, 3, data, forward=True))) for model in (one, two, three)]
    assert np.array_equal(after[0], after[1]) and np.array_equal(after[0], after[2])


def test_every_target_is_scored_whatever_its_weight(client):
    model = client.model()
    zero = [datum(1, weights=lambda random, n: np.zeros(n))]
    ones = [datum(1, weights=lambda random, n: np.ones(n))]
    first, second = logprobs(client.train(model, 1, zero, forward=True))[0], logprobs(client.train(model, 2, ones))[0]
    assert (first < -1e-3).all()
    assert np.abs(first - second).max() <= 2e-6
    assert logprobs(client.train(model, 3, zero))[0] == pytest.approx(first, abs=2e-6)


def test_forward_only_in_proto_leaves_no_gradient(client):
    model, data = client.model(), [datum(2, weights=signed_weights)]
    headers = {"Content-Type": "application/x-protobuf"}
    _, raw = client.raw("POST", "/api/v1/forward_backward", to_proto(model, 1, data, "cross_entropy", forward_only=True), headers)
    client.wait(json.loads(raw)["request_id"])
    assert client.step(model, 2)["metrics"]["grad_norm"] == 0


def test_idempotency(client):
    model, data = client.model(), [datum(3, weights=signed_weights)]
    first = client.train(model, 1, data)
    assert client.train(model, 1, data) == first
    alone = client.model()
    client.train(alone, 1, data)
    step = client.step(model, 2)
    assert step["metrics"]["grad_norm"] == client.step(alone, 2)["metrics"]["grad_norm"]  # it was not added twice
    assert client.step(model, 2) == step
    assert step["metrics"]["step"] == 1 and client.step(model, 3)["metrics"]["step"] == 2
    with pytest.raises(HttpError) as refused:
        client.step(model, 3, learning_rate=0.5)
    assert refused.value.status == 400 and "seq_id 3" in refused.value.body["error"]


def test_a_refused_request_leaves_no_gap(client):
    model, data = client.model(), [datum(4, weights=signed_weights)]
    client.train(model, 1, data)
    wrong = [datum(4, weights=signed_weights)]
    wrong[0]["loss_fn_inputs"]["target_tokens"]["data"].pop()
    wrong[0]["loss_fn_inputs"]["target_tokens"]["shape"][0] -= 1
    wrong[0]["loss_fn_inputs"]["weights"] = tensor(np.ones(len(wrong[0]["loss_fn_inputs"]["target_tokens"]["data"])))
    refused = client.train(model, 2, wrong)
    assert refused["category"] == "user" and "one target" in refused["error"]
    assert client.train(model, 2, data)["metrics"]["loss:sum"] != 0
    assert client.step(model, 3)["metrics"]["step"] == 1


def test_optimizer_settings_are_honoured(client):
    """beta 0 and a large eps make AdamW plain SGD, so the change of log p is linear in every setting."""
    data = [datum(5, weights=lambda random, n: np.ones(n))]

    def change(lr: float, weights: float = 1.0, **adam) -> float:
        model = client.model(seed=6)
        scaled = [datum(5, weights=lambda random, n: np.full(n, weights))]
        before = float(np.concatenate(logprobs(client.train(model, 1, scaled))).sum())
        client.step(model, 2, **{"learning_rate": lr, "beta1": 0, "beta2": 0, "eps": 1e4, "weight_decay": 0, "grad_clip_norm": 0, **adam})
        return float(np.concatenate(logprobs(client.train(model, 3, data, forward=True))).sum()) - before

    base = change(2.0)
    assert base > 0
    assert change(4.0) == pytest.approx(2 * base, rel=0.05)
    assert change(2.0, weights=2.0) == pytest.approx(2 * base, rel=0.05)
    assert change(2.0, weights=-1.0) == pytest.approx(-base, rel=0.1)
    assert change(2.0, weights=0.5) == pytest.approx(base / 2, rel=0.05)
    assert abs(change(2.0, grad_clip_norm=1e-3)) < abs(base) / 10
    assert change(2.0, eps=2e4) == pytest.approx(base / 2, rel=0.05)
    decayed = client.model(seed=6)
    client.train(decayed, 1, data)
    client.step(decayed, 2, learning_rate=1e-3, weight_decay=500.0)
    assert client.step(decayed, 3)["metrics"]["step"] == 2


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"loss_fn": "nothing", "data": [datum(6, weights=signed_weights)]}, "not supported"),
        ({"loss_fn": "ppo", "data": [datum(6, weights=signed_weights)]}, "logprobs"),
        ({"loss_fn": "cross_entropy", "data": []}, "no data"),
        ({"loss_fn": "cross_entropy", "data": [datum(6, weights=lambda random, n: np.full(n, 1.0), mask=signed_weights)]}, "mask"),
    ],
)
def test_what_would_be_ignored_is_refused(client, body, words):
    with pytest.raises(HttpError) as refused:
        client.do("forward_backward", {"model_id": client.model(), "seq_id": 1, "forward_backward_input": body})
    assert refused.value.status == 400 and refused.value.body["category"] == "user" and words in refused.value.body["error"]


def test_unknown_names_are_errors(client):
    data = [datum(7, weights=signed_weights)]
    for call in (
        lambda: client.train("session-x:train:0", 1, data),
        lambda: client.post("/api/v1/asample", {"sampling_session_id": "nobody", "prompt": {"chunks": [text([1])]}}),
        lambda: client.post("/api/v1/asample", {"base_model": "other", "prompt": {"chunks": [text([1])]}}),
    ):
        with pytest.raises(HttpError) as refused:
            call()
        assert refused.value.status == 404 and refused.value.body["category"] == "user"
    with pytest.raises(HttpError) as missing:
        client.wait("request-unknown")
    assert missing.value.status == 410
    assert client.train(client.model(), 1, data, config={"clip": 1.0})["category"] == "user"


def test_bad_images_and_tokens_are_user_errors(client):
    model = client.model()
    for chunks, words in (
        ([text([1, 2]), image(b"not an image", None), text([3])], "decoded"),
        ([text([1, 2]), image(png(1), 5), text([3])], "expects 5"),
        ([text([1, 261]), text([3])], "image"),
        ([text([1, 999_999]), text([3])], "outside"),
        ([text([1]), image(png(1)), image(png(2)), text([3])], "between"),
    ):
        data = [{"model_input": {"chunks": chunks}, "loss_fn_inputs": {"target_tokens": tensor([1, 2, 3], "int64")}}]
        answer = client.train(model, 1, data)
        assert answer["category"] == "user" and words in answer["error"], answer


def test_a_token_that_stands_for_a_video_is_text(client):
    """Servers sample it by chance where nobody forbids it: such an answer is scored like any other, and images are seen as before."""
    model, count = client.model(), image_tokens()

    def scored(seq: int, sampled: int) -> np.ndarray:
        chunks = [text([258, 259]), image(png(1), count), text([260, 40, sampled, 41])]
        targets = [0] * (count + 2) + [40, sampled, 41, 42]
        data = [{"model_input": {"chunks": chunks}, "loss_fn_inputs": {"target_tokens": tensor(targets, "int64")}}]
        return logprobs(client.train(model, seq, data, forward=True))[0]

    usual, video = scored(1, 43), scored(2, 262)
    assert np.isfinite(video).all()
    assert np.abs(video[: count + 3] - usual[: count + 3]).max() < 1e-5
    assert np.abs(video[count + 4 :] - usual[count + 4 :]).max() > 1e-4


def test_sampling_by_session_matches_forward(client, figures):
    """Snapshots sample what they froze; forward agrees to 2e-6 in float32."""
    model = client.model(seed=8)
    session = model.split(":")[0]
    train = [datum(8, weights=lambda random, n: np.ones(n))]
    client.train(model, 1, train)
    client.step(model, 2, learning_rate=5e-2)
    made = client.do("save_weights_for_sampler", {"model_id": model, "seq_id": 3, "sampling_session_seq_id": 0, "kind": "snapshot"})
    assert made["path"] is None
    prompts = [train[0]["model_input"]["chunks"][:2] + [text([260, 9, index])] for index in range(3)]
    body = {"sampling_session_id": made["sampling_session_id"], "num_samples": 4, "sampling_params": {"max_tokens": 16, "seed": 3}}
    asked = [client.post("/api/v1/asample", {**body, "seq_id": i, "prompt": {"chunks": c}, "prompt_logprobs": True}) for i, c in enumerate(prompts)]
    assert len(set(asked[0]["sample_sequence_ids"])) == 4
    again = client.post("/api/v1/asample", {**body, "seq_id": 0, "prompt": {"chunks": prompts[0]}})
    assert again["request_id"] == asked[0]["request_id"]
    worst = 0.0
    for seq, (chunks, one) in enumerate(zip(prompts, asked, strict=True)):
        result = client.wait(one["request_id"])
        assert result["prompt_logprobs"][0] is None
        for sequence in result["sequences"]:
            ids = sequence["tokens"]
            whole = [*chunks, text(ids[:-1])] if ids[:-1] else chunks
            targets = [0] * (5 + 28 + 3 - 1) + ids
            data = [{"model_input": {"chunks": whole}, "loss_fn_inputs": {"target_tokens": tensor(targets, "int64")}}]
            scored = logprobs(client.train(model, 100 + 50 * seq + sequence_id(result, sequence), data, forward=True))[0][-len(ids) :]
            worst = max(worst, float(np.abs(scored - np.asarray(sequence["logprobs"])).max()))
    figures["logprob_max_difference"] = worst
    assert worst <= 2e-6
    raw = client.wait(asked[1]["request_id"], proto=True)
    proto = wire.MESSAGES["SampleResponse"].FromString(raw)
    plain = client.wait(asked[1]["request_id"])
    assert np.frombuffer(proto.sequences[0].tokens, "<i4").tolist() == plain["sequences"][0]["tokens"]
    assert np.isnan(np.frombuffer(proto.prompt_logprobs, "<f4")[0])
    client.post(f"/api/v1/sessions/{session}/finish", {})
    with pytest.raises(HttpError) as ended:
        client.post("/api/v1/asample", {**body, "seq_id": 99, "prompt": {"chunks": prompts[0]}})
    assert ended.value.status == 404


def sequence_id(result: dict, sequence: dict) -> int:
    return result["sequences"].index(sequence)


@pytest.mark.parametrize("rank", [8, 0])
def test_restore_is_exact_to_the_bit(client, rank):
    """Saved, changed, loaded again (and loaded into a new model): the same steps give the same numbers."""
    model = client.model(rank=rank, seed=9)
    data = [datum(9, weights=signed_weights), datum(10, weights=signed_weights)]
    for seq in (1, 3):
        client.train(model, seq, data)
        client.step(model, seq + 1)
    path = client.do("save_weights", {"model_id": model, "seq_id": 5, "path": "0001"})["path"]

    def go_on(who: str, seq: int) -> np.ndarray:
        client.train(who, seq, data)
        client.step(who, seq + 1)
        return np.concatenate(logprobs(client.train(who, seq + 2, data, forward=True)))

    expected = go_on(model, 6)
    client.do("load_weights", {"model_id": model, "seq_id": 9, "path": path, "optimizer": True})
    assert np.array_equal(go_on(model, 10), expected)
    session = client.post("/api/v1/create_session", {"tags": []})["session_id"]
    made = client.do("load_weights", {"session_id": session, "model_seq_id": 0, "path": path, "optimizer": True})
    assert made["model_id"] == f"{session}:train:0"
    assert np.array_equal(go_on(made["model_id"], 1), expected)
    fresh = client.do("load_weights", {"session_id": session, "model_seq_id": 1, "path": path, "optimizer": False})
    assert not np.array_equal(go_on(fresh["model_id"], 1), expected)


def test_bookkeeping(client):
    model = client.model(rank=4, train_mlp=False)
    info = client.post("/api/v1/get_info", {"model_id": model})
    assert info["is_lora"] and info["lora_rank"] == 4 and info["model_data"]["tokenizer_id"]
    assert not any("mlp" in target for target in info["lora_config"]["targets"])
    assert any("q_proj" in target for target in info["lora_config"]["targets"])
    path = client.do("save_weights", {"model_id": model, "seq_id": 1, "path": "a"})["path"]
    client.do("save_weights_for_sampler", {"model_id": model, "seq_id": 2, "path": "b"})
    points = client.get(f"/api/v1/training_runs/{model}/checkpoints")["checkpoints"]
    assert {point["checkpoint_id"] for point in points} == {"weights/a", "sampler_weights/b"}
    assert client.get(f"/api/v1/training_runs/{model}")["last_checkpoint"]["tinker_path"] == path
    assert client.get("/api/v1/training_runs?limit=1000")["cursor"]["total_count"] >= 1
    assert client.post("/api/v1/weights_info", {"tinker_path": path})["lora_rank"] == 4
    session = client.post("/api/v1/create_sampling_session", {"session_id": "s", "sampling_session_seq_id": 0, "model_path": path.replace("weights/a", "sampler_weights/b")})
    assert client.get(f"/api/v1/samplers/{session['sampling_session_id']}")["model_path"].endswith("/b")
    client.raw("DELETE", f"/api/v1/training_runs/{model}/checkpoints/weights/a", None, {})
    with pytest.raises(HttpError):
        client.post("/api/v1/weights_info", {"tinker_path": path})
    for bad in ("tinker://../weights/x", "tinker://m/weights/..", "tinker://m/other/x", "/etc"):
        with pytest.raises(HttpError) as refused:
            client.post("/api/v1/load_weights", {"model_id": model, "seq_id": 3, "path": bad, "optimizer": True})
        assert refused.value.body["category"] == "user"


def test_a_gradient_that_is_not_finite_changes_nothing(tiny, tmp_path):
    """It is dropped and said: neither weights nor the number of steps change, and asked again the answer is the same."""
    import torch
    from dart_engine.engine import Engine
    from dart_engine.settings import Settings

    engine = Engine(Settings(model=str(tiny), state=tmp_path / "state", device="cpu", threads=2))
    engine.start()

    def done(request_id: str) -> dict:
        return engine.answers.get(request_id).future.result(60)

    model = done(engine.create_model("s", 0, "base", {"rank": 4}, None))["model_id"]
    trained = engine.slots[model].trained
    step = lambda seq: done(engine.optim_step(model, seq, ADAM))["metrics"]  # noqa: E731
    name, weight = next(iter(trained.weights.tensors.items()))
    trained.grads = {name: torch.ones_like(weight)}
    assert step(1)["step"] == 1
    before = weight.clone()
    for seq, wrong in ((2, torch.nan), (3, torch.inf)):
        trained.grads = {name: torch.full_like(weight, wrong)}
        said = step(seq)
        assert said["grad_norm"] is None and said["step"] == 1
        assert step(seq) == said  # the very same request
        assert torch.equal(weight, before) and trained.grads == {}
    assert json.loads(json.dumps(engine.slots[model].ledger.to_json(), allow_nan=False))
    trained.grads = {name: torch.ones_like(weight)}
    assert step(4)["step"] == 2 and not torch.equal(weight, before)
    engine.stop()


def test_a_sample_is_cancelled_until_it_begins_and_training_never(tiny, tmp_path):
    from dart_engine.engine import Engine
    from dart_engine.settings import Settings

    engine = Engine(Settings(model=str(tiny), state=tmp_path / "state", device="cpu", threads=2))
    sequence, gate, prompt = engine.policy.sequence, threading.Event(), {"chunks": [text([258, 40, 41])]}

    def slow(parts):
        gate.wait(60)
        return sequence(parts)

    with served(engine) as url:
        client = Client(url)
        cancelled = lambda request_id: client.post("/api/v1/cancel_future", {"request_id": request_id})["cancelled"]  # noqa: E731
        asked = lambda: client.post("/api/v1/asample", {"base_model": "base", "prompt": prompt})["request_id"]  # noqa: E731
        model = client.model()
        with held(engine.worker):
            inner = {"data": [datum(2, weights=signed_weights)], "loss_fn": "cross_entropy"}
            body = {"model_id": model, "seq_id": 1, "forward_backward_input": inner}
            trained, waits = client.post("/api/v1/forward_backward", body)["request_id"], asked()
            until(lambda: client.metric("vllm:num_requests_waiting") == 1)
            engine.policy.sequence = slow
            prepared = asked()
            assert (cancelled(waits), cancelled(prepared), cancelled(trained), cancelled("nothing")) == (True, True, False, False)
            assert client.metric("vllm:num_requests_waiting") == 0
            gate.set()
        assert client.wait(trained)["loss_fn_outputs"]
        for request_id in (waits, prepared):
            assert "cancelled" in client.wait(request_id)["error"] and not cancelled(request_id)
        assert engine.sampler.generated_tokens == 0


def test_adam_params_are_checked(client: Client):
    model = client.model()
    for wrong in ({"learning_rate": -1.0}, {"beta1": 1.0}, {"momentum": 0.5}, {"eps": "x"}):
        with pytest.raises(HttpError) as refused:
            client.step(model, 1, **wrong)
        assert refused.value.status == 400
    assert client.do("optim_step", {"model_id": model, "seq_id": 1, "adam_params": ADAM})["metrics"]["step"] == 1
