"""kill -9 at any moment, replay by seq_id, and a torch thread that dies or hangs."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from dart_engine.errors import EngineError
from dart_engine.worker import SampleJob, TrainJob, Worker
from helpers import ENGINE, Client, HttpError, Server, datum, drain, logprobs, signed_weights, until

DATA = [datum(20, images=2, weights=signed_weights), datum(21, weights=signed_weights)]


def script(client: Client, model: str, start: int, end: int, done: list | None = None) -> None:
    """Requests `start` to `end` of one training: two updates, then a checkpoint, again and again."""
    for seq in range(start, end + 1):
        kind = seq % 5
        if kind in (1, 3):
            client.train(model, seq, DATA)
        elif kind in (2, 4):
            client.step(model, seq, learning_rate=1e-3 * (1 + seq % 7))
        else:
            client.do("save_weights", {"model_id": model, "seq_id": seq, "path": f"{seq:04}"})
        if done is not None:
            done.append(seq)


def final(client: Client, model: str, seq: int) -> np.ndarray:
    return np.concatenate(logprobs(client.train(model, seq, DATA, forward=True)))


def saved(client: Client, model: str, seq: int, state: Path) -> dict[str, bytes]:
    """The files of weights and of the optimizer in every checkpoint of this model, one made now among them."""
    path = client.do("save_weights", {"model_id": model, "seq_id": seq, "path": "end"})["path"]
    [end] = state.glob(f"models/*/weights/{path.rsplit('/', 1)[1]}")
    return {str(file.relative_to(end.parent)): file.read_bytes() for file in sorted(end.parent.glob("*/*.safetensors"))}


@pytest.mark.parametrize("rank", [8, 0])
def test_killed_at_random_moments_it_comes_back_bit_identical(tiny, tmp_path, rank, figures):
    end = 27
    calm = Server(tiny, tmp_path / "calm")
    client = Client(calm.url)
    expected = final(client, client.model(rank=rank, seed=2, session="session-s"), 1)
    model = client.model(rank=rank, seed=2, session="session-s", seq=1)
    script(client, model, 1, end)
    trained = final(client, model, end + 1)
    files = saved(client, model, end + 2, tmp_path / "calm")
    calm.stop()
    assert {name.rsplit("/", 1)[1] for name in files} == {"adapter_model.safetensors" if rank else "weights.safetensors", "optimizer.safetensors"}
    assert len({files[name] for name in files}) == len(files)  # each update changed them
    assert not np.array_equal(expected, trained)
    chance = random.Random(rank)
    kills, begun, back = 0, 1, []
    server = Server(tiny, tmp_path / "killed")
    client = Client(server.url)
    client.model(rank=rank, seed=2, session="session-s", seq=1)
    while True:
        done: list = []
        thread = threading.Thread(target=swallow, args=(client, model, begun, end, done))
        thread.start()
        if kills < 5:
            time.sleep(chance.uniform(0.05, 1.5))
            server.kill()
            kills += 1
            thread.join()
            at = time.monotonic()
            server = Server(tiny, tmp_path / "killed")
            back.append(time.monotonic() - at)
            client = Client(server.url)
            begun = client.post("/api/v1/get_info", {"model_id": model})["last_seq_id"] + 1
        else:
            thread.join()
            break
    assert done[-1:] == [end] or begun > end
    script(client, model, 1 if begun == 1 else 5 * ((begun - 1) // 5), end)  # asked again: all of it is in the ledger
    assert np.array_equal(final(client, model, end + 1), trained)
    again = saved(client, model, end + 2, tmp_path / "killed")
    server.stop()
    assert again.keys() == files.keys()
    assert [name for name in files if again[name] != files[name]] == []
    figures["files_compared_after_kills"] = figures.get("files_compared_after_kills", 0) + len(files)
    figures["kills"] = figures.get("kills", 0) + kills
    figures["restart_s"] = max(figures.get("restart_s", 0.0), max(back))


def swallow(client: Client, model: str, start: int, end: int, done: list) -> None:
    try:
        script(client, model, start, end, done)
    except (HttpError, OSError, ValueError):
        return


def lost_model(error: HttpError | EngineError) -> bool:
    """It blames the model and not what the request carries, of which a run would give up the rollout."""
    return error.status == 404 and (error.body if isinstance(error, HttpError) else error.body())["category"] == "server"


def test_a_gap_after_a_restart_is_refused(tiny, tmp_path):
    server = Server(tiny, tmp_path / "state")
    client = Client(server.url)
    model = client.model(seed=3)
    script(client, model, 1, 8)
    server.kill()
    server = Server(tiny, tmp_path / "state")
    client = Client(server.url)
    with pytest.raises(HttpError) as gap:
        client.train(model, 9, DATA)
    assert "gap" in gap.value.body["error"] and "from 6" in gap.value.body["error"]
    assert lost_model(gap.value)
    same = client.do("save_weights", {"model_id": model, "seq_id": 5, "path": "0005"})
    assert same["path"].endswith("/weights/0005")
    script(client, model, 6, 9)
    server.stop()


def models_in_memory(client: Client) -> int:
    return int(client.metric("dart_engine:models"))


def test_a_session_that_ends_frees_its_models_and_they_come_back_from_disk(client):
    before = models_in_memory(client)
    session = client.post("/api/v1/create_session", {"tags": []})["session_id"]
    model = client.model(seed=4, session=session)
    script(client, model, 1, 5)
    assert models_in_memory(client) == before + 1
    client.post(f"/api/v1/sessions/{session}/finish", {})
    assert models_in_memory(client) == before
    script(client, model, 6, 7)  # all of it was saved: it goes on
    # What is refused as it stands has had its number.
    for seq, request in ((8, ("save_weights", {"path": "a/b"})), (9, ("forward_backward", {"forward_backward_input": {"data": [], "loss_fn": "?"}}))):
        with pytest.raises(HttpError) as wrong:
            client.post(f"/api/v1/{request[0]}", {"model_id": model, "seq_id": seq, **request[1]})
        assert wrong.value.status == 400 and "gap" not in wrong.value.body["error"]
    client.step(model, 10)
    client.do("save_weights", {"model_id": model, "seq_id": 11, "path": "0011"})
    client.post(f"/api/v1/sessions/{session}/finish", {})
    with pytest.raises(HttpError) as gap:
        client.step(model, 13)
    assert lost_model(gap.value) and "gap" in gap.value.body["error"]


@pytest.mark.parametrize("creates", [True, False])
def test_weights_loaded_into_a_model_do_not_silently_go_with_its_session(client, creates):
    first = client.model(seed=4)
    script(client, first, 1, 5)
    load = {"path": f"tinker://{first}/weights/0005", "optimizer": True}
    session = client.post("/api/v1/create_session", {"tags": []})["session_id"]
    if not creates:
        load["model_id"] = client.model(seed=4, session=session)
    made = {"session_id": session, "model_seq_id": 0, **load} if creates else load
    model = client.do("load_weights", made)["model_id"]
    client.post(f"/api/v1/sessions/{session}/finish", {})
    with pytest.raises(HttpError) as refused:
        client.train(model, 1, DATA, forward=True)
    assert lost_model(refused.value) and "load_weights again" in refused.value.body["error"]
    client.do("load_weights", made)
    assert np.array_equal(final(client, model, 1), final(client, first, 6))
    client.do("save_weights", {"model_id": model, "seq_id": 2, "path": "own"})
    client.post(f"/api/v1/sessions/{session}/finish", {})
    assert np.array_equal(final(client, model, 3), final(client, first, 6))


def test_a_load_that_is_refused_or_fails_leaves_the_model_without_its_weights(tiny, tmp_path):
    from dart_engine.engine import Engine, Slot
    from dart_engine.ledger import Ledger
    from dart_engine.settings import Settings

    path = "tinker://other/weights/0005"
    engine = Engine(Settings(model=str(tiny), state=tmp_path / "state", device="cpu", max_queue=0))
    slot = engine.slots["m"] = Slot("m", {"session_id": engine.create_session([]).id}, Ledger.from_json({"last": 5, "floor": -1, "entries": []}))
    slot.ledger.lost = path
    engine.training_folder = lambda _path: tmp_path / "nothing"
    jobs: list[TrainJob] = []
    engine.worker.submit = jobs.append

    with pytest.raises(EngineError, match="later"):
        engine.load_weights("m", 9, path, True)
    for seq in (6, None):
        with pytest.raises(EngineError, match="load_weights again"):
            engine.optim_step("m", seq, {})

    engine.settings.max_queue = 9
    for loading in (9, None):
        engine.load_weights("m", loading, path, True)
        engine.optim_step("m", 10, {})
        for job in jobs:
            with pytest.raises(Exception) as failed:
                drain(job.run())
            job.future.set_exception(failed.value)
        assert "load_weights again" in str(failed.value)
        assert lost_model(failed.value)
        jobs.clear()
    slot.ledger.lost = None
    with pytest.raises(EngineError, match="gap"):
        engine.optim_step("m", 9, {})
    # Its own number was the next one: the one after it leaves no gap.
    engine.load_weights("m", 6, path, True)
    with pytest.raises(Exception):
        drain(jobs.pop().run())
    slot.ledger.check(7)
    with pytest.raises(EngineError, match="gap"):
        slot.ledger.check(8)


def test_a_model_that_could_not_be_queued_does_not_exist(tiny, tmp_path):
    from dart_engine.engine import Engine
    from dart_engine.settings import Settings

    engine = Engine(Settings(model=str(tiny), state=tmp_path / "state", device="cpu", max_queue=0))
    session = engine.create_session([])
    with pytest.raises(EngineError, match="later"):
        engine.create_model(session.id, 0, engine.settings.model, None, None)
    assert engine.slots == {}


@pytest.mark.parametrize("ends", ["model", "session"])
def test_what_an_unloaded_model_was_still_to_do_is_not_done(tiny, tmp_path, ends):
    from dart_engine.data import Datum, TrainRequest
    from dart_engine.engine import Engine
    from dart_engine.settings import Settings

    engine = Engine(Settings(model=str(tiny), state=tmp_path / "state", device="cpu"))
    engine.start()
    session, other = engine.create_session([]), engine.create_session([])

    def answer(request_id: str) -> dict:
        return engine.answers.get(request_id).future.result(60)

    def ask(model: str, seq: int) -> str:
        ids = list(range(40, 60))
        data = [Datum([ids], np.array(ids, dtype=np.int64), {"weights": np.ones(len(ids), np.float32)})]
        return engine.forward_backward(TrainRequest(model, seq, data, "cross_entropy", {}, False, digest=str(seq)))

    model, stays = (answer(engine.create_model(each.id, 0, "base", {"rank": 4}, None))["model_id"] for each in (session, other))
    go = threading.Event()

    def hold():
        go.wait(60)
        yield

    engine.worker.submit(TrainJob("holding the queue", hold))
    gone = [ask(model, seq) for seq in range(1, 41)]
    kept = ask(stays, 1)
    if ends == "model":
        engine.unload_model(model)
    else:
        engine.finish_session(session.id)
    go.set()
    assert len(answer(kept)["logprobs"][0]) == 20
    for request_id in gone:
        with pytest.raises(EngineError, match="was unloaded before"):
            answer(request_id)
    assert list(engine.slots) == [stays]
    # It was not saved, so it comes back as it began, and its numbers begin again.
    assert len(answer(ask(model, 1))["logprobs"][0]) == 20
    engine.stop()


def test_a_silent_session_ends_by_itself_unless_its_model_is_at_work(tiny, tmp_path):
    import asyncio

    from dart_engine.engine import Engine, Slot
    from dart_engine.ledger import Ledger
    from dart_engine.settings import Settings

    engine = Engine(Settings(model=str(tiny), state=tmp_path / "state", device="cpu", session_ttl_s=0.2))
    silent, busy = engine.create_session([]), engine.create_session([])
    for session in (silent, busy):
        engine.slots[session.id] = Slot(session.id, {"session_id": session.id}, Ledger())
    engine.slots[busy.id].ledger.accept(1, "digest", "request")

    async def ended(session) -> None:
        while session.id in engine.sessions:
            await asyncio.sleep(0.01)

    async def main() -> None:
        ending = asyncio.create_task(engine.end_silent_sessions())
        await ended(silent)
        assert list(engine.slots) == [busy.id]
        engine.slots[busy.id].ledger.applied(1, {})
        await ended(busy)
        ending.cancel()

    asyncio.run(asyncio.wait_for(main(), 30))
    assert engine.slots == {}


def test_what_a_killed_engine_left_unfinished_goes(tmp_path):
    from dart_engine.checkpoints import CheckpointStore

    folders = [tmp_path / "models" / "m" / kind / name for kind in ("weights", "sampler_weights") for name in (".new-a", ".gone-b-1", ".old-c", "d")]
    for folder in folders:
        folder.mkdir(parents=True)
    CheckpointStore(tmp_path)
    assert [folder.name for folder in folders if folder.exists()] == [".old-c", "d"] * 2


def test_a_checkpoint_that_could_not_be_written_leaves_nothing(tmp_path):
    from dart_engine.checkpoints import CheckpointStore

    store = CheckpointStore(tmp_path)

    def fill(text: str, full: bool = False):
        def write(folder: Path) -> None:
            (folder / "engine.json").write_text(text)
            if full:
                raise OSError(28, "No space left on device")

        return write

    store.write("m", "weights", "a", fill("whole"))
    with pytest.raises(OSError, match="No space left"):
        store.write("m", "weights", "a", fill("cut off", full=True))
    assert [file.name for file in (tmp_path / "models" / "m" / "weights").iterdir()] == ["a"]
    assert (store.existing("m", "weights", "a") / "engine.json").read_text() == "whole"


def worker(sample=lambda weights, requests: [request * 2 for request in requests]) -> Worker:
    made = Worker(sample, sample_rows=8, window_s=0.002)
    made.start()
    return made


def test_a_worker_that_dies_fails_everything_and_says_so():
    class Dying(Worker):
        def _turn(self):
            if self._training:
                raise SystemExit("gone")
            super()._turn()

    made = Dying(lambda weights, requests: requests, 8, 0.002)
    made.start()
    assert made.health(1.0) is None

    def forever():
        yield

    job = TrainJob("training", forever)
    made.submit(job)
    with pytest.raises(EngineError) as error:
        job.future.result(timeout=5)
    assert error.value.category == "server"
    assert "ended" in until(lambda: made.health(1.0))
    with pytest.raises(EngineError):
        made.submit(TrainJob("training", forever))


def test_a_worker_that_breaks_tells_whoever_started_the_engine_once():
    left = []
    worker = Worker(lambda weights, requests: [], 64, 0.001, on_broken=lambda: left.append(worker.broken))
    worker.start()

    def dies():
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
        yield

    job = TrainJob("forward_backward", dies)
    worker.submit(job)
    with pytest.raises(EngineError, match="GPU failed"):
        job.future.result(timeout=5)
    assert len(left) == 1 and "GPU failed" in left[0]


def test_it_ends_with_the_process_that_holds_its_standard_input(tiny, tmp_path):
    command = [sys.executable, "-m", "dart_engine", "serve", f"--model={tiny}", f"--state={tmp_path / 'state'}", "--port=0", "--end-with-stdin"]
    program = "import subprocess, sys, time; p = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE); print(p.pid, flush=True); time.sleep(600)"
    environment = {**os.environ, "PYTHONPATH": str(ENGINE), "HF_HUB_OFFLINE": "1"}
    parent = subprocess.Popen([sys.executable, "-c", program, *command], stdout=subprocess.PIPE, env=environment, text=True)
    engine = int(parent.stdout.readline())
    assert json.loads(parent.stdout.readline())["event"] == "ready"
    parent.kill()
    parent.wait()
    until(lambda: not Path(f"/proc/{engine}").exists() or "Z" in Path(f"/proc/{engine}/stat").read_text().split(")")[1][:3])


def test_a_worker_that_hangs_is_not_healthy():
    release = threading.Event()

    def hang():
        release.wait(10)
        yield

    made = worker()
    made.submit(TrainJob("training", hang))
    assert "has not reported" in until(lambda: made.health(0.1))
    release.set()
    until(lambda: made.health(1.0) is None)
    made.stop()


def test_training_is_in_order_and_sampling_waits_one_micro_batch():
    order, started = [], threading.Event()

    def job(name: str, parts: int):
        def run():
            for part in range(parts):
                order.append(f"{name}{part}")
                started.set()
                time.sleep(0.03)
                yield
            return name

        return TrainJob(name, run)

    def sample(weights, requests):
        order.append(f"{weights}:{len(requests)}")
        return requests

    made = worker(sample)
    first, second = job("a", 6), job("b", 1)
    made.submit(first)
    made.submit(second)
    started.wait()
    samples = [SampleJob(weights, index, 1) for index, weights in enumerate(["x", "y", "x"])]
    samples[0].weights = samples[2].weights
    for each in samples:
        made.submit(each)
    assert [each.future.result(5) for each in samples] == [0, 1, 2]
    assert (first.future.result(5), second.future.result(5)) == ("a", "b")
    assert [entry for entry in order if ":" not in entry] == ["a0", "a1", "a2", "a3", "a4", "a5", "b0"]
    assert "x:2" in order and "y:1" in order
    assert order.index("x:2") < order.index("a4") and order.index("y:1") < order.index("a5")
    made.stop()


def test_a_job_that_is_dropped_ends_between_two_micro_batches():
    steps, started, go = [], threading.Event(), threading.Event()

    def run():
        try:
            for step in range(9):
                steps.append(step)
                started.set()
                go.wait(10)
                yield
        finally:
            steps.append("closed")

    made = worker()
    active, other = TrainJob("a", run, owner="m"), TrainJob("b", lambda: iter(()), owner="n")
    for job in (active, other):
        made.submit(job)
    started.wait(10)
    made.drop("m", EngineError("unloaded"))
    go.set()
    with pytest.raises(EngineError, match="unloaded"):
        active.future.result(5)
    other.future.result(5)
    assert steps == [0, "closed"]
    made.stop()


def test_what_a_failed_batch_held_is_free_when_its_samples_are_tried_alone():
    import weakref

    import torch

    held: list[weakref.ref] = []
    alive: list[int] = []

    def sample(weights, requests):
        alive.append(sum(each() is not None for each in held))
        cache = torch.zeros(8)
        held.append(weakref.ref(cache))
        if len(requests) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return requests

    made = Worker(sample, sample_rows=3, window_s=60)
    jobs = [SampleJob("x", index, 1) for index in range(3)]
    for job in jobs:
        made.submit(job)
    made.start()
    assert [job.future.result(10) for job in jobs] == [0, 1, 2]
    assert alive == [0, 0, 0, 0]
    made.stop()


def test_out_of_memory_is_told_with_what_to_lower():
    import torch

    def sample(weights, requests):
        if len(requests) > 1 or requests[0] == 1:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return requests

    made = worker(sample)

    def train():
        raise RuntimeError("CUDA out of memory")
        yield

    jobs = [SampleJob("x", index, 1) for index in range(3)]
    for job in jobs:
        made.submit(job)
    training = TrainJob("forward_backward", train)
    made.submit(training)
    assert jobs[0].future.result(5) == 0 and jobs[2].future.result(5) == 2  # alone they fit
    for future in (jobs[1].future, training.future):
        with pytest.raises(EngineError) as error:
            future.result(5)
        assert "--micro-batch-tokens" in error.value.message and error.value.category == "server"
        assert "nothing was applied" in error.value.message
    assert made.health(1.0) is None
    made.stop()


def test_bfloat16_with_checkpointing_learns_and_restores(tiny, tmp_path, figures):
    """What a GPU runs: bf16 weights, float32 adapters and master copies, gradient checkpointing."""
    server = Server(tiny, tmp_path / "state", "--dtype", "bfloat16", "--checkpointing")
    client = Client(server.url)
    data = [datum(index, weights=lambda random, n: np.ones(n)) for index in range(2)]
    for rank in (8, 0):
        model = client.model(rank=rank, seed=5)
        losses = []
        for seq in range(1, 7, 2):
            losses.append(client.train(model, seq, data)["metrics"]["loss:sum"])
            client.step(model, seq + 1)
        assert losses[2] < losses[1] < losses[0]
        path = client.do("save_weights", {"model_id": model, "seq_id": 7, "path": "a"})["path"]
        after = []
        for start in (8, 12):
            client.train(model, start, data)
            client.step(model, start + 1)
            after.append(np.concatenate(logprobs(client.train(model, start + 2, data, forward=True))))
            client.do("load_weights", {"model_id": model, "seq_id": start + 3, "path": path, "optimizer": True})
        assert np.array_equal(*after)
    server.stop()
