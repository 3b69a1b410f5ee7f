"""Chat completions, adapters by name, health, metrics, keys."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import threading

import numpy as np
import pytest
from helpers import IM_END, IM_START, Client, HttpError, Server, datum, held, image, logprobs, png, served, tensor, text, until


def chat_body(seed: int = 0, images: int = 1, **more) -> dict:
    content = [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(png(seed + i)).decode()}} for i in range(images)]
    content.append({"type": "text", "text": f"click {seed}"})
    body = {"model": "base", "messages": [{"role": "user", "content": content}], "max_tokens": 8, "seed": seed}
    return {**body, "logprobs": True, "top_logprobs": 4, "return_token_ids": True, "temperature": 1, "top_p": 1, "top_k": -1, **more}


def trained_model(client: Client, seed: int, steps: int = 1) -> str:
    model = client.model(seed=seed)
    for step in range(steps):
        client.train(model, 2 * step + 1, [datum(seed, weights=lambda random, n: np.ones(n))])
        client.step(model, 2 * step + 2, learning_rate=3e-2)
    return model


def score(client: Client, model: str, seq: int, answer: dict, seed: int) -> np.ndarray:
    """The trainer's log-probs of an answer: the prompt's image-pad run becomes an image chunk again."""
    prompt, ids = answer["prompt_token_ids"], answer["choices"][0]["token_ids"]
    start, count = prompt.index(261), prompt.count(261)
    assert prompt[start : start + count] == [261] * count
    chunks = [text(prompt[:start]), image(png(seed), count), text(prompt[start + count :] + ids[:-1])]
    targets = [0] * (len(prompt) - 1) + ids
    data = [{"model_input": {"chunks": chunks}, "loss_fn_inputs": {"target_tokens": tensor(targets, "int64")}}]
    return logprobs(client.train(model, seq, data, forward=True))[0][-len(ids) :]


def test_chat_gives_token_ids_and_log_probs(client):
    answer = client.post("/v1/chat/completions", chat_body(1, images=2, n=3))
    assert answer["prompt_token_ids"].count(261) == 56 and len(answer["choices"]) == 3
    for choice in answer["choices"]:
        content = choice["logprobs"]["content"]
        assert len(content) == len(choice["token_ids"]) <= 8
        assert choice["finish_reason"] == ("stop" if choice["token_ids"][-1] in (256, 257) else "length")
        assert all(len(item["top_logprobs"]) == 4 for item in content)
        assert 261 not in choice["token_ids"] and 262 not in choice["token_ids"]
    assert answer["usage"]["prompt_tokens"] == len(answer["prompt_token_ids"])
    assert client.post("/v1/chat/completions", chat_body(1, images=2, n=3))["choices"] == answer["choices"]  # the same seed
    assert client.post("/tokenize", {"messages": chat_body(1, images=2)["messages"]})["tokens"] == answer["prompt_token_ids"]


def test_greedy_top_and_stop(client):
    answer = client.post("/v1/chat/completions", chat_body(2, temperature=0))
    for token, item in zip(answer["choices"][0]["token_ids"], answer["choices"][0]["logprobs"]["content"], strict=True):
        assert item["logprob"] == item["top_logprobs"][0]["logprob"] < 0  # at temperature 1
        assert isinstance(token, int)
    first = answer["choices"][0]["token_ids"][0]
    stopped = client.post("/v1/chat/completions", chat_body(2, temperature=0, stop_token_ids=[first]))
    assert stopped["choices"][0]["token_ids"] == [first] and stopped["choices"][0]["finish_reason"] == "stop"
    biased = client.post("/v1/chat/completions", chat_body(2, temperature=0, logit_bias={str(first): -100}))
    assert biased["choices"][0]["token_ids"][0] != first
    narrow = client.post("/v1/chat/completions", chat_body(2, top_k=1))
    assert narrow["choices"][0]["token_ids"] == answer["choices"][0]["token_ids"]


def test_adapters_load_speak_and_unload(client, figures):
    model = trained_model(client, 11)
    path = client.do("save_weights_for_sampler", {"model_id": model, "seq_id": 3, "path": "v1"})["path"]
    client.post("/v1/load_lora_adapter", {"lora_name": "run@v1", "lora_path": path})
    assert "run@v1" in [card["id"] for card in client.get("/v1/models")["data"]]
    spoken = client.post("/v1/chat/completions", chat_body(3, model="run@v1"))
    base = client.post("/v1/chat/completions", chat_body(3))
    values = np.asarray([item["logprob"] for item in spoken["choices"][0]["logprobs"]["content"]])
    difference = float(np.abs(score(client, model, 10, spoken, 3) - values).max())
    figures["adapter_logprob_max_difference"] = difference
    assert difference <= 2e-6
    assert spoken["choices"][0]["logprobs"] != base["choices"][0]["logprobs"]
    # a version does not move when training goes on
    client.train(model, 11, [datum(11, weights=lambda random, n: np.ones(n))])
    client.step(model, 12, learning_rate=3e-2)
    assert client.post("/v1/chat/completions", chat_body(3, model="run@v1"))["choices"] == spoken["choices"]
    with pytest.raises(HttpError) as taken:
        second = client.do("save_weights_for_sampler", {"model_id": model, "seq_id": 13, "path": "v2"})["path"]
        client.post("/v1/load_lora_adapter", {"lora_name": "run@v1", "lora_path": second})
    assert taken.value.status == 400 and "taken" in taken.value.body["error"]["message"]
    client.post("/v1/unload_lora_adapter", {"lora_name": "run@v1"})
    with pytest.raises(HttpError) as gone:
        client.post("/v1/chat/completions", chat_body(3, model="run@v1"))
    assert gone.value.status == 404
    with pytest.raises(HttpError):
        client.post("/v1/unload_lora_adapter", {"lora_name": "run@v1"})


def test_no_op_and_foreign_adapters_are_found(client, tiny, server, tmp_path):
    import urllib.parse
    from pathlib import Path

    from safetensors.torch import load_file, save_file

    fresh = client.model(seed=12)
    untouched = client.do("save_weights_for_sampler", {"model_id": fresh, "seq_id": 1, "path": "v0"})
    assert "changes nothing" in client.post("/v1/load_lora_adapter", {"lora_name": "noop", "lora_path": untouched["path"]})["text"]
    folder = Path(untouched["folder"])
    tensors = load_file(str(folder / "adapter_model.safetensors"))
    for name, change, words in (
        ("prefix", lambda key: key.replace("base_model.model.", "model."), "begin with"),
        ("layers", lambda key: key.replace("language_model", "language"), "silent no-op"),
    ):
        wrong = folder.parent / name
        wrong.mkdir()
        (wrong / "adapter_config.json").write_text((folder / "adapter_config.json").read_text())
        save_file({change(key): value for key, value in tensors.items()}, str(wrong / "adapter_model.safetensors"))
        with pytest.raises(HttpError) as refused:
            client.post("/v1/load_lora_adapter", {"lora_name": name, "lora_path": str(wrong)})
        assert words in refused.value.body["error"]["message"]
    cut = folder.parent / "cut"
    cut.mkdir()
    (cut / "adapter_config.json").write_text(json.dumps(json.loads((folder / "adapter_config.json").read_text())))
    (cut / "adapter_model.safetensors").write_bytes((folder / "adapter_model.safetensors").read_bytes()[:3000])
    with pytest.raises(HttpError) as damaged:
        client.post("/v1/load_lora_adapter", {"lora_name": "cut", "lora_path": str(cut)})
    assert damaged.value.status == 400 and "damaged" in damaged.value.body["error"]["message"]
    with pytest.raises(HttpError) as outside:
        client.post("/v1/load_lora_adapter", {"lora_name": "out", "lora_path": str(tmp_path)})
    assert outside.value.status == 403
    assert urllib.parse.quote(fresh, safe="") in str(folder)


def test_peft_loads_what_is_saved(client, tiny):
    """The adapter folder in plain transformers and peft gives the log-probs the engine reported."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForImageTextToText

    model = trained_model(client, 13)
    saved = client.do("save_weights_for_sampler", {"model_id": model, "seq_id": 3, "path": "v1"})
    client.post("/v1/load_lora_adapter", {"lora_name": "peft", "lora_path": saved["path"]})
    body = {**chat_body(4, model="peft"), "messages": [{"role": "user", "content": "press"}]}
    answer = client.post("/v1/chat/completions", body)
    peft = PeftModel.from_pretrained(AutoModelForImageTextToText.from_pretrained(str(tiny)), saved["folder"]).eval()
    ids = answer["prompt_token_ids"] + answer["choices"][0]["token_ids"]
    with torch.no_grad():
        scores = torch.log_softmax(peft(input_ids=torch.tensor([ids])).logits[0].float(), -1)
    expected = [float(scores[len(answer["prompt_token_ids"]) + i - 1, token]) for i, token in enumerate(answer["choices"][0]["token_ids"])]
    got = [item["logprob"] for item in answer["choices"][0]["logprobs"]["content"]]
    assert np.abs(np.asarray(expected) - np.asarray(got)).max() <= 1e-5


def test_full_weights_sample_and_are_saved_whole(client, tiny):
    import torch
    from transformers import AutoModelForImageTextToText

    model = client.model(rank=0)
    client.train(model, 1, [datum(14, weights=lambda random, n: np.ones(n))])
    client.step(model, 2, learning_rate=1e-3)
    saved = client.do("save_weights_for_sampler", {"model_id": model, "seq_id": 3, "path": "v1"})
    client.post("/v1/load_lora_adapter", {"lora_name": "full@1", "lora_path": saved["path"]})
    spoken = client.post("/v1/chat/completions", chat_body(5, model="full@1"))
    values = np.asarray([item["logprob"] for item in spoken["choices"][0]["logprobs"]["content"]])
    assert np.abs(score(client, model, 4, spoken, 5) - values).max() <= 2e-6
    assert client.post("/v1/chat/completions", chat_body(5))["choices"] != spoken["choices"]
    before = AutoModelForImageTextToText.from_pretrained(str(tiny)).state_dict()
    after = AutoModelForImageTextToText.from_pretrained(saved["folder"]).state_dict()
    assert set(before) == set(after)
    assert any(not torch.equal(before[name], after[name]) for name in before)
    client.post("/v1/load_lora_adapter", {"lora_name": "full@1-disk", "lora_path": saved["folder"]})
    assert client.post("/v1/chat/completions", chat_body(5, model="full@1-disk"))["choices"] == spoken["choices"]


def test_memory_of_saved_versions_is_bounded_and_freed_with_their_names(tmp_path):
    """Of whole models one is kept beside those that have names; what is unloaded or deleted is not."""
    from types import SimpleNamespace

    from dart_engine.lora import LoraSpec
    from dart_engine.model import Weights
    from dart_engine.versions import Versions

    versions = Versions(SimpleNamespace(settings=SimpleNamespace(model="tiny")), SimpleNamespace(root=tmp_path), [], 8)
    kept = lambda: list(versions._recent)  # noqa: E731
    for index in range(3):
        versions.remember(f"whole{index}", Weights(f"whole{index}"))
        versions.remember(f"adapter{index}", Weights(f"adapter{index}", LoraSpec(8, 16.0, ("q_proj",))))
    assert kept() == ["adapter0", "adapter1", "whole2", "adapter2"]
    for name in ("a", "b"):
        versions.load(name, "whole2")
    versions.unload("a")
    assert "whole2" in kept()
    versions.unload("b")
    versions.forget("adapter1")
    assert kept() == ["adapter0", "adapter2"]


def test_what_is_deleted_cannot_be_loaded_any_more(client):
    model = trained_model(client, 15)
    path = client.do("save_weights_for_sampler", {"model_id": model, "seq_id": 3, "path": "v1"})["path"]
    client.raw("DELETE", f"/api/v1/training_runs/{model}/checkpoints/sampler_weights/v1", None, {})
    with pytest.raises(HttpError) as gone:
        client.post("/v1/load_lora_adapter", {"lora_name": "deleted", "lora_path": path})
    assert gone.value.status == 404


def test_log_probs_are_of_the_distribution_sampled_from():
    """After the temperature, as the trainer weighs them against its own at temperature 1; greedy choices at 1."""
    from types import SimpleNamespace

    import torch
    from dart_engine.sampler import Alive, Row, Sampler, Sampling

    policy = SimpleNamespace(forbidden=[], device="cpu", eos=set())
    logits = torch.randn(4, 50, generator=torch.Generator().manual_seed(3)) * 3
    heats = [1.0, 0.6, 2.0, 0.0]
    rows = [Row(0, Sampling(temperature=heat, max_tokens=1, top_logprobs=3), torch.Generator().manual_seed(7)) for heat in heats]
    alive = Alive(rows, torch.ones(4, 1), torch.tensor(heats)[:, None], torch.zeros(4))
    Sampler(policy, lambda: None)._choose(alive, logits)
    for row, line, heat in zip(rows, logits, heats, strict=True):
        expected = torch.log_softmax(line / (heat or 1.0), dim=-1)
        assert row.logprobs[0] == pytest.approx(float(expected[row.tokens[0]]), abs=1e-6)
        assert [value for _, value in row.top[0]] == pytest.approx(torch.topk(expected, 3).values.tolist(), abs=1e-6)


def test_publishing_beside_clients_fails_no_call(client, figures):
    """Clients take the newest name for each call; older versions are unloaded while calls are in flight."""
    model = trained_model(client, 15)
    names, failures, spoken, stop = ["base"], [], [], threading.Event()

    def talk(index: int) -> None:
        while not stop.is_set():
            name = names[-1]
            try:
                answer = client.post("/v1/chat/completions", chat_body(index, model=name, max_tokens=4))
                spoken.append(answer["model"] == name)
            except HttpError as error:
                if error.status != 404 or name == names[-1]:
                    failures.append(error)

    threads = [threading.Thread(target=talk, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for version in range(6):
        client.train(model, 10 + 3 * version, [datum(15, weights=lambda random, n: np.ones(n))])
        client.step(model, 11 + 3 * version)
        path = client.do("save_weights_for_sampler", {"model_id": model, "seq_id": 12 + 3 * version, "path": f"p{version}"})["path"]
        client.post("/v1/load_lora_adapter", {"lora_name": f"p@{version}", "lora_path": path})
        names.append(f"p@{version}")
        if version:
            client.post("/v1/unload_lora_adapter", {"lora_name": f"p@{version - 1}"})
    stop.set()
    for thread in threads:
        thread.join()
    figures["failed_calls_during_publish"] = len(failures)
    figures["calls_during_publish"] = len(spoken)
    assert not failures and all(spoken) and len(spoken) > 10


def test_completions_score_given_tokens(client):
    """Each as the only one that may be said: the log-prob is the model's own, with and without an adapter."""
    model = trained_model(client, 16)
    path = client.do("save_weights_for_sampler", {"model_id": model, "seq_id": 3, "path": "v1"})["path"]
    client.post("/v1/load_lora_adapter", {"lora_name": "scored", "lora_path": path})
    prompt, answer = [IM_START, 104, 105, IM_END, IM_START], [110, 3, 200, IM_END]
    ask = lambda name, prompt, **more: client.post(  # noqa: E731
        "/v1/completions", {"model": name, "prompt": prompt, "max_tokens": 1, "logprobs": 1, "return_token_ids": True, **more}
    )
    said = []
    for index, token in enumerate(answer):
        body = ask("scored", prompt + answer[:index], allowed_token_ids=[token])
        choice = body["choices"][0]
        assert choice["token_ids"] == [token] and choice["prompt_token_ids"] == prompt + answer[:index]
        assert (body["object"], choice["index"]) == ("text_completion", 0)
        said.append(choice["logprobs"]["token_logprobs"][0])
    inputs = {"model_input": {"chunks": [text(prompt + answer[:-1])]}}
    targets = {"target_tokens": tensor([0] * (len(prompt) - 1) + answer, "int64")}
    trained = logprobs(client.train(model, 20, [{**inputs, "loss_fn_inputs": targets}], forward=True))[0][-len(answer) :]
    assert np.abs(trained - np.asarray(said)).max() <= 2e-6
    assert ask("base", prompt, allowed_token_ids=answer[:1])["choices"][0]["logprobs"]["token_logprobs"][0] != said[0]
    several = ask("base", prompt, allowed_token_ids=answer[:2], max_tokens=12, n=3, seed=0, ignore_eos=True)
    assert {token for choice in several["choices"] for token in choice["token_ids"]} == set(answer[:2])
    words = ask("base", "click", max_tokens=3, temperature=0)
    logs = words["choices"][0]["logprobs"]
    assert words["choices"][0]["prompt_token_ids"] == client.post("/tokenize", {"prompt": "click"})["tokens"]
    assert len(logs["tokens"]) == len(logs["token_logprobs"]) == len(logs["top_logprobs"])
    assert logs["top_logprobs"][0] == {logs["tokens"][0]: logs["token_logprobs"][0]}  # greedy: the likeliest is the one sampled
    lone = ask("base", prompt, allowed_token_ids=answer[:1])["choices"][0]["logprobs"]
    assert lone["top_logprobs"][0][lone["tokens"][0]] == lone["token_logprobs"][0] and len(lone["top_logprobs"][0]) <= 2
    assert ask("base", prompt, logprobs=None)["choices"][0]["logprobs"] is None
    for more, words in (
        ({"allowed_token_ids": []}, "not empty"),
        ({"allowed_token_ids": "12"}, "list of token ids"),
        ({"logprobs": -1}, "0 to 20"),
        ({"allowed_token_ids": [261]}, "can be sampled"),
        ({"allowed_token_ids": [10**6]}, "outside the vocabulary"),
        ({"echo": True}, "echo"),
        ({"prompt": [prompt, prompt]}, "one `prompt`"),
        ({"prompt": [261]}, "stands for an image"),
        ({"suffix": "x"}, "suffix"),
    ):
        with pytest.raises(HttpError) as refused:
            ask("base", **{"prompt": prompt, **more})
        assert refused.value.status == 400 and words in refused.value.body["error"]["message"]


@pytest.fixture
def watched(tiny, tmp_path):
    """A served engine, its client, and the seeds of the requests that were sampled."""
    from dart_engine.engine import Engine
    from dart_engine.settings import Settings

    engine = Engine(Settings(model=str(tiny), state=tmp_path / "state", device="cpu", threads=2))
    seeds, sample = [], engine.worker._sample

    def sampled(weights, requests):
        seeds.extend(request.options.seed for request in requests)
        return sample(weights, requests)

    engine.worker._sample = sampled
    with served(engine) as url:
        yield engine, Client(url), seeds


def called(client: Client, path: str, body: dict) -> http.client.HTTPConnection:
    """A request whose answer nobody reads: closed, it has hung up."""
    caller = http.client.HTTPConnection(client.url.removeprefix("http://"))
    caller.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    return caller


BOTH = pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])


def body_for(path: str, seed: int) -> dict:
    return chat_body(seed) if "chat" in path else {"model": "base", "prompt": [IM_START, 104, 105], "max_tokens": 8, "seed": seed}


@BOTH
def test_whoever_hangs_up_while_waiting_is_never_sampled(watched, path):
    engine, client, seeds = watched
    waiting = lambda: client.metric("vllm:num_requests_waiting")  # noqa: E731
    with held(engine.worker):
        first, second = called(client, path, body_for(path, 1)), called(client, path, body_for(path, 2))
        until(lambda: waiting() == 2)
        first.close()
        until(lambda: waiting() == 1)
    assert second.getresponse().status == 200
    second.close()
    assert client.post(path, body_for(path, 3))["choices"]
    assert seeds == [2, 3]


@BOTH
def test_whoever_hangs_up_while_the_prompt_is_prepared_is_never_sampled(watched, path):
    engine, client, seeds = watched
    futures, gate, sample, sequence = [], threading.Event(), engine.sample, engine.policy.sequence

    def noted(*given):
        futures.append(sample(*given))
        return futures[-1]

    def slow(parts):
        gate.wait(60)
        return sequence(parts)

    engine.sample, engine.policy.sequence = noted, slow
    try:
        caller = called(client, path, body_for(path, 1))
        until(lambda: futures)
        caller.close()
        until(futures[0].done)
    finally:
        gate.set()
    assert client.post(path, body_for(path, 2))["choices"]
    assert seeds == [2]


def test_whoever_hangs_up_while_sampled_harms_nobody(watched):
    engine, client, seeds = watched
    gate, sample, path = threading.Event(), engine.worker._sample, "/v1/completions"

    def slow(weights, requests):
        gate.wait(60)
        return sample(weights, requests)

    engine.worker._sample = slow
    try:
        caller = called(client, path, body_for(path, 1))
        until(lambda: client.metric("vllm:num_requests_running") == 1)
        caller.close()
        other = called(client, path, body_for(path, 2))
        until(lambda: client.metric("vllm:num_requests_waiting") == 1)
    finally:
        gate.set()
    assert other.getresponse().status == 200
    other.close()
    assert seeds == [1, 2] and client.get("/health")["status"] == "ok"


def test_options_that_would_be_ignored_are_refused(client):
    for more in ({"repetition_penalty": 1.2}, {"tools": [{}]}, {"guided_json": {}}, {"n": 0}, {"temperature": -1}, {"top_logprobs": 99}):
        with pytest.raises(HttpError) as refused:
            client.post("/v1/chat/completions", chat_body(6, **more))
        assert refused.value.status == 400 and refused.value.body["category"] == "user"
    remote = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1/x.png"}}]}]}
    with pytest.raises(HttpError) as refused:
        client.post("/v1/chat/completions", remote)
    assert "fetches nothing" in refused.value.body["error"]["message"]
    stray = {"messages": [{"role": "user", "content": "<|image_pad|>"}]}
    with pytest.raises(HttpError) as refused:
        client.post("/v1/chat/completions", stray)
    assert refused.value.status == 400


def test_health_and_metrics(client):
    health = client.get("/health")
    assert health["status"] == "ok" and health["last_beat_s"] < 60
    _, raw = client.raw("GET", "/metrics", None, {})
    lines = raw.decode()
    for name in ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "vllm:generation_tokens_total"):
        assert f"\n{name} " in lines or lines.startswith(name)
    assert 'vllm:request_success_total{finished_reason="length"}' in lines


def test_says_what_records_are_of(client, tiny):
    from transformers import AutoTokenizer

    said = client.get("/version")
    template = AutoTokenizer.from_pretrained(tiny).chat_template
    assert said["chat_template_sha256"] == hashlib.sha256(template.encode()).hexdigest()
    assert (said["name"], said["dtype"]) == ("dart_engine", "float32")
    assert said["packages"]["transformers"].count(".") >= 1
    processor = said["image_processor"]
    assert (processor["patch_size"], processor["merge_size"], processor["shortest_edge"]) == (16, 2, 1024)
    assert processor["resample"] in range(6)
    assert client.get("/v1/models")["data"][0]["owned_by"] == "dart_engine"


def test_web_pages_and_strange_hosts_are_refused(client):
    assert client.raw("GET", "/v1/models", None, {"Origin": "https://example.org"})[0] == 403
    assert client.raw("GET", "/v1/models", None, {"Host": "example.org"})[0] == 403
    assert client.raw("GET", "/v1/models", None, {"Origin": "http://localhost:3000"})[0] == 200


def test_key_limits_and_words(tiny, tmp_path):
    options = ("--max-image-bytes", "2000", "--max-image-pixels", "20000", "--max-body-bytes", "300000", "--max-context", "64")
    server = Server(tiny, tmp_path / "state", *options, env={"DART_ENGINE_API_KEY": "tml-secret"})
    try:
        with pytest.raises(HttpError) as refused:
            Client(server.url).get("/v1/models")
        assert refused.value.status == 401
        assert Client(server.url).get("/health")["status"] == "ok"
        assert Client(server.url, {"X-API-Key": "tml-secret"}).get("/v1/models")["data"]
        client = Client(server.url, {"Authorization": "Bearer tml-secret"})
        for body, words in (
            (chat_body(7), "--max-image-bytes"),
            (chat_body(7), "desktops.screen"),
            ({"messages": [{"role": "user", "content": "x" * 100}]}, "--max-context"),
        ):
            with pytest.raises(HttpError) as over:
                client.post("/v1/chat/completions", body)
            assert over.value.status == 400 and words in over.value.body["error"]["message"]
        # An answer that is asked for whole is refused where it does not fit, as by vLLM; one of no length is as long as fits.
        short = {"messages": [{"role": "user", "content": "x"}]}
        used = client.post("/v1/chat/completions", {**short, "max_tokens": 1})["usage"]["prompt_tokens"]
        for path, body in (("chat/completions", short), ("completions", {"prompt": [40] * used})):
            for name in ("max_tokens", "max_completion_tokens") if "messages" in body else ("max_tokens",):
                with pytest.raises(HttpError) as over:
                    client.post(f"/v1/{path}", {**body, name: 64 - used + 1, "ignore_eos": True})
                assert over.value.status == 400 and "--max-context" in over.value.body["error"]["message"]
            for length in ({"max_tokens": 64 - used}, {}):
                made = client.post(f"/v1/{path}", {**body, **length, "ignore_eos": True})
                assert made["usage"]["total_tokens"] == 64
        with pytest.raises(HttpError) as large:
            client.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "x" * 400_000}]})
        assert large.value.status == 413
        import io

        from PIL import Image

        out = io.BytesIO()
        Image.new("RGB", (200, 200)).save(out, "PNG")
        url = "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()
        with pytest.raises(HttpError) as pixels:
            client.post("/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]})
        for words in ("--max-image-pixels", "desktops.screen"):
            assert words in pixels.value.body["error"]["message"]
    finally:
        server.stop()
