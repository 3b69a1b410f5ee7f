"""Pictures are prepared once, and no more of them than the next training requests need; prompts do not wait behind them."""

from __future__ import annotations

import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from dart_engine.data import image_part, train_request_from_json
from dart_engine.errors import EngineError
from dart_engine.sampler import SampleRequest, Sampling
from helpers import datum, held, png, signed_weights, until

REQUESTS = 50


@pytest.fixture
def engine(tiny, tmp_path):
    from dart_engine.engine import Engine
    from dart_engine.settings import Settings

    made = Engine(Settings(model=str(tiny), state=tmp_path / "state", device="cpu", threads=2, image_cache_bytes=0))
    made.start()
    yield made
    made.stop()


def done(engine, request_id: str) -> dict:
    return engine.answers.get(request_id).future.result(60)


def submitted(engine, model: str, seq: int, number: int) -> str:
    """A request with three pictures in two datums, which no other number has."""
    data = [datum(2 * number + index, images=1 + index, weights=signed_weights) for index in range(2)]
    inner = {"data": data, "loss_fn": "cross_entropy"}
    return engine.forward_backward(train_request_from_json({"model_id": model, "seq_id": seq, "forward_input": inner}, True))


def test_a_batch_of_training_requests_is_prepared_as_its_turns_come_and_prompts_beside_it(engine):
    images, model = engine.policy.images, done(engine, engine.create_model("s", 0, "base", {"rank": 4}, None))["model_id"]
    prepared, alive, turns, process, batch = [], weakref.WeakSet(), [], images._process, engine.policy.batch

    def counted(image):
        prepared.append(image)
        patches = process(image)
        alive.add(patches)
        return patches

    def computed(sequences, left):
        if not left:
            turns.append(len(alive))
        return batch(sequences, left)

    images._process, engine.policy.batch = counted, computed
    with held(engine.worker):
        asked = [submitted(engine, model, 1 + number, number) for number in range(REQUESTS)]
        sampled = engine.sample(
            engine.versions.base, SampleRequest(None, 1, Sampling(max_tokens=2)), lambda: engine.policy.sequence([[258, 40, 41]])
        )
        until(lambda: engine.worker.load()["waiting"] == 1)
        for _ in range(2):
            engine.training_pool.submit(int).result(30)  # what was handed to it before has begun
        assert len(prepared) <= 6
    assert len(sampled.result(60)["sequences"]) == 1
    together = [done(engine, request_id)["logprobs"] for request_id in asked]
    assert len(prepared) == 3 * REQUESTS
    assert len(turns) == REQUESTS and max(turns) <= 6
    # One by one they give the same to the bit.
    for number in range(REQUESTS):
        alone = done(engine, submitted(engine, model, 100 + number, number))["logprobs"]
        assert all(np.array_equal(one, other) for one, other in zip(alone, together[number], strict=True))


def test_prompts_are_prepared_while_all_threads_prepare_for_training(engine):
    model = done(engine, engine.create_model("s", 0, "base", {"rank": 4}, None))["model_id"]
    process, gate = engine.policy.images._process, threading.Event()

    def slow(image):
        gate.wait(60)
        return process(image)

    engine.policy.images._process = slow
    asked = [submitted(engine, model, 1 + number, number) for number in range(3)]
    try:
        prompt = SampleRequest(None, 1, Sampling(max_tokens=2))
        sampled = engine.sample(engine.versions.base, prompt, lambda: engine.policy.sequence([[258, 40, 41]]))
        assert len(sampled.result(30)["sequences"]) == 1
    finally:
        gate.set()
    assert all(done(engine, request_id)["logprobs"] for request_id in asked)


def test_a_request_whose_picture_is_bad_fails_alone(engine):
    model = done(engine, engine.create_model("s", 0, "base", {"rank": 4}, None))["model_id"]
    with held(engine.worker):
        asked = [submitted(engine, model, 1 + number, number) for number in range(4)]
        bad = datum(90, weights=signed_weights)
        bad["model_input"]["chunks"][1]["expected_tokens"] = 5
        body = {"model_id": model, "seq_id": 5, "forward_backward_input": {"data": [bad], "loss_fn": "cross_entropy"}}
        wrong = engine.forward_backward(train_request_from_json(body, False))
        asked.append(submitted(engine, model, 6, 6))
    with pytest.raises(EngineError, match="expects 5"):
        done(engine, wrong)
    assert all(done(engine, request_id)["logprobs"] for request_id in asked)
    assert done(engine, submitted(engine, model, 5, 5))["logprobs"]  # its number can be used again


def test_the_same_picture_is_prepared_once_however_many_ask_at_once(tiny, tmp_path):
    import torch
    from dart_engine.images import ImageStore
    from dart_engine.settings import Settings

    made, gate = [], threading.Event()

    def processor(images, return_tensors):
        made.append(images)
        gate.wait(30)
        if len(made) == 1:
            raise ValueError("too narrow")
        return {"pixel_values": torch.zeros(4, 3)}

    store = ImageStore(processor, lambda out: 4, Settings(model=str(tiny), state=tmp_path))
    part = image_part(png(1), "png", None)
    with ThreadPoolExecutor(4) as pool:
        for attempt, failed in ((1, True), (2, False)):
            gate.clear()
            asked = [pool.submit(store.prepare, part) for _ in range(4)]
            until(lambda: store.queries == 4 * attempt and made)
            gate.set()
            if failed:
                for future in asked:
                    with pytest.raises(EngineError, match="too narrow"):
                        future.result(30)
            else:
                assert len({id(future.result(30)) for future in asked}) == 1
            assert len(made) == attempt
    assert store.prepare(part) is asked[0].result() and len(made) == 2
