"""Everything behind the routes: sessions, models that train, and the queue to the torch thread.

Methods without `async` that answer a request run on the event loop and only parse, look up and enqueue.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from . import trainer
from .answers import Answers, finished
from .checkpoints import CheckpointStore, check_name, parse_uri, save_adapter
from .data import TrainRequest
from .errors import EngineError, describe, user_error
from .ledger import Ledger
from .lora import choose_targets
from .model import PolicyModel, Weights
from .optimizer import adam_params
from .sampler import SampleRequest, Sampler, check_sampling
from .settings import Settings
from .trainer import TrainedModel
from .versions import SamplingSession, Versions, sampler_meta
from .worker import SampleJob, TrainJob, Worker

log = logging.getLogger("dart_engine")

LORA_KEYS = {"rank", "seed", "alpha", "targets", "train_attn", "train_mlp", "train_unembed", "train_vision"}


@dataclass
class Session:
    id: str
    tags: list = field(default_factory=list)
    seen: float = field(default_factory=time.monotonic)


@dataclass
class Slot:
    """A model that trains, from the moment it is asked for; `trained` is there once the torch thread has made it."""

    id: str
    meta: dict
    ledger: Ledger
    trained: TrainedModel | None = None
    # The weights loaded into it since it was saved, if any: it cannot come back with them by itself.
    loaded: str | None = None


class Engine:
    def __init__(self, settings: Settings):
        self.settings = settings
        self.started = time.time()
        self.store = CheckpointStore(settings.state)
        self.policy = PolicyModel(settings)
        self.versions = Versions(self.policy, self.store, settings.adapter_roots, settings.keep_snapshots)
        self.sampler = Sampler(self.policy, lambda: self.worker.heartbeat())
        leave = self._leave if settings.end_with_stdin else None
        self.worker = Worker(self.sampler.run, settings.sample_rows, settings.sample_window_ms / 1000, settings.sample_tokens, leave)
        self.answers = Answers(settings.keep_answers_s)
        threads = max(1, min(8, settings.threads or 4))
        self.training_pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="training-images")
        # Of its own: a decision does not wait behind the pictures of training.
        self.sampling_pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="sampling-images")
        self.sessions: dict[str, Session] = {}
        self.slots: dict[str, Slot] = {}
        self.finished_samples = {"stop": 0, "length": 0}
        self.updates = 0
        self._lock = threading.Lock()
        self._asked: dict[tuple[str, int], str] = {}

    def start(self) -> None:
        self.worker.start()

    def stop(self) -> None:
        self.worker.stop()
        for pool in (self.training_pool, self.sampling_pool):
            pool.shutdown(wait=False, cancel_futures=True)

    def _leave(self) -> None:
        """Whoever holds this process starts it again; callers hear what happened first."""
        log.error("%s", self.worker.broken)
        threading.Timer(2.0, os._exit, [70]).start()

    # --- sessions ---

    def create_session(self, tags: list) -> Session:
        session = Session(f"session-{uuid.uuid4().hex[:16]}", tags)
        self.sessions[session.id] = session
        return session

    def touch(self, session_id: str) -> Session:
        """A session the engine does not know (it restarted) begins anew under its old id."""
        session = self.sessions.setdefault(session_id, Session(session_id))
        session.seen = time.monotonic()
        return session

    def finish_session(self, session_id: str) -> int:
        """Frees what the session holds in memory. Its models come back from their checkpoints when they are asked for."""
        self.sessions.pop(session_id, None)
        for slot in [slot for slot in list(self.slots.values()) if slot.meta["session_id"] == session_id]:
            self.unload_model(slot.id)
        return self.versions.close_of({session_id})

    async def end_silent_sessions(self) -> None:
        """Ends each session when it has been silent for so long, for as long as the engine runs."""
        ttl = self.settings.session_ttl_s
        while True:
            # One that begins meanwhile is silent for as long no earlier than after this pause.
            first = min((session.seen for session in list(self.sessions.values())), default=time.monotonic())
            await asyncio.sleep(max(0.1, first + ttl - time.monotonic()))
            for session in list(self.sessions.values()):
                if session.seen + ttl > time.monotonic():
                    continue
                if any(slot.ledger.at_work() for slot in list(self.slots.values()) if slot.meta["session_id"] == session.id):
                    session.seen = time.monotonic()  # it waits for an answer
                else:
                    self.finish_session(session.id)

    # --- models ---

    def check_base(self, name: str) -> None:
        if name not in self.versions.base_names():
            raise user_error(f"This engine serves {self.settings.model} ('base'), not {name!r}. Start another engine for it.")

    def lora_config(self, given: dict | None, model_id: str) -> dict:
        given = {key: value for key, value in (given or {}).items() if value is not None}
        unknown = sorted(set(given) - LORA_KEYS)
        if unknown:
            raise user_error(f"lora_config has no {', '.join(unknown)}.")
        rank = given.get("rank", self.settings.lora if self.settings.lora is not None else 16)
        if type(rank) is not int or not 0 <= rank <= 512:
            raise user_error("lora_config.rank must be 0 (full fine-tuning) to 512.")
        seed = given.get("seed", int.from_bytes(hashlib.sha256(model_id.encode()).digest()[:4], "big"))
        alpha = given.get("alpha", self.settings.lora_alpha if self.settings.lora_alpha is not None else 32.0)
        config = {"rank": rank, "alpha": float(alpha), "seed": int(seed)}
        for name in ("train_attn", "train_mlp", "train_unembed"):
            config[name] = bool(given.get(name, True))
        config["train_vision"] = bool(given.get("train_vision", self.settings.lora_vision if rank else True))
        targets = given.get("targets", self.settings.lora_targets.split(",") if self.settings.lora_targets else None)
        if rank:
            config["targets"] = list(choose_targets(self.policy.layers, config, vision=config["train_vision"], names=targets))
        return config

    def create_model(self, session_id: str, model_seq_id: int, base_model: str, lora: dict | None, metadata: dict | None) -> str:
        self.check_base(base_model)
        self.touch(session_id)
        model_id = f"{session_id}:train:{model_seq_id}"
        meta = {"session_id": session_id, "lora_config": self.lora_config(lora, model_id), "user_metadata": metadata}
        slot = self._known(model_id)
        if slot is not None:
            if slot.meta["lora_config"] != meta["lora_config"]:
                raise user_error(f"{model_id} exists with another lora_config; use a new model_seq_id.")
            return self.answers.add("json", finished({"model_id": model_id, "type": "create_model"}))
        return self._create(model_id, meta, None)

    def _create(self, model_id: str, meta: dict, load: tuple | None) -> str:
        """`load`: (path, folder, with optimizer) for a model that begins with a checkpoint."""
        slot = Slot(model_id, meta, Ledger())
        self.slots[model_id] = slot

        def run():
            try:
                made = trainer.new_model(self.policy, model_id, meta)
                if load is not None:
                    trainer.load_training(self.policy, made, load[1], optimizer=load[2], pending=False)
                made.ledger = slot.ledger
                self._write_meta(slot, load[0] if load is not None else None)
                slot.trained = made
            except BaseException:
                self.slots.pop(model_id, None)
                raise
            return {"model_id": model_id, "type": "create_model"} if load is None else {
                "model_id": model_id, "path": load[0], "type": "load_weights"
            }
            yield

        try:
            return self._enqueue("json", TrainJob("creating the model", run, owner=model_id))
        except EngineError:
            self.slots.pop(model_id, None)
            raise

    def _known(self, model_id: str) -> Slot | None:
        """A model in memory, or one that an earlier engine left on disk: it comes back from its last checkpoint."""
        slot = self.slots.get(model_id)
        if slot is not None:
            return slot
        meta = self.store.read_model(model_id)
        if meta is None:
            return None
        saved = self.store.list(model_id, "weights")
        folder = self.store.existing(model_id, "weights", saved[-1]["name"]) if saved else None
        slot = Slot(model_id, meta, Ledger(), loaded=meta.pop("loaded", None))
        slot.ledger.restored = True
        if folder is not None:
            slot.ledger = Ledger.from_json(json.loads((folder / "engine.json").read_text())["ledger"])
        slot.ledger.lost = slot.loaded
        self.slots[model_id] = slot
        log.info("%s comes back from %s", model_id, folder or "its seed")

        def run():
            try:
                made = trainer.new_model(self.policy, model_id, meta)
                if folder is not None:
                    trainer.load_training(self.policy, made, folder, optimizer=True, pending=True)
                made.ledger = slot.ledger
                slot.trained = made
            except BaseException:
                self.slots.pop(model_id, None)
                raise
            return {}
            yield

        self.worker.submit(TrainJob("restoring the model", run, owner=model_id))
        return slot

    def _write_meta(self, slot: Slot, loaded: str | None) -> None:
        """`loaded`: weights of another model that it begins with, or goes on from."""
        slot.loaded = loaded
        self.store.write_model(slot.id, slot.meta if loaded is None else {**slot.meta, "loaded": loaded})

    def model(self, model_id: str) -> Slot:
        slot = self._known(model_id)
        if slot is None:
            raise user_error(f"There is no model {model_id!r}; create it, or load_weights into a new one.", status=404)
        self.touch(slot.meta["session_id"])
        return slot

    # --- the queue ---

    def _enqueue(self, kind: str, job: TrainJob) -> str:
        if self.worker.load()["training"] >= self.settings.max_queue:
            raise EngineError("Too many training requests wait (--max-queue); send it again later.", category="server", status=429)
        self.worker.submit(job)
        return self.answers.add(kind, job.future)

    def _once(
        self, slot: Slot, kind: str, seq_id: int | None, digest: str, job: TrainJob, valid: Callable | None = None, loads: bool = False
    ) -> str:
        """Enqueues a request of a model unless its seq_id was there before; then the first one's answer serves.

        After one that `loads` weights the model goes on anywhere, unless it fails.
        """
        ledger = slot.ledger
        entry = ledger.find(seq_id, digest) if seq_id is not None else None
        if entry is not None and entry.applied and (valid is None or (entry.answer is not None and valid(entry.answer))):
            if entry.answer is None:
                raise user_error(f"seq_id {seq_id} was applied before the last checkpoint and its answer is no longer kept.")
            if not self.answers.has(entry.request_id):
                entry.request_id = self.answers.add(kind, finished(entry.answer))
            return entry.request_id
        if entry is not None and not entry.applied and self.answers.has(entry.request_id):
            return entry.request_id
        inner = job.run
        if not loads:
            ledger.check(seq_id)
        before = ledger.continue_anywhere() if loads else None

        def run():
            try:
                if before is None:
                    ledger.check(seq_id)
                answer = yield from inner()
            except BaseException:
                ledger.forget(seq_id)
                if before is not None:
                    ledger.put_back(before, seq_id)
                raise
            if before is not None:
                ledger.continue_anywhere()
            ledger.applied(seq_id, answer)
            return answer

        job.run, job.owner = run, slot.id
        try:
            request_id = self._enqueue(kind, job)
        except EngineError:
            if before is not None:
                ledger.put_back(before, None)
            raise
        if seq_id is not None:
            ledger.accept(seq_id, digest, request_id)
            job.future.add_done_callback(lambda done: ledger.forget(seq_id) if done.exception() else None)
        return request_id

    @contextmanager
    def counting(self, model_id, seq_id):
        """A request that is refused as it stands has had its number: the next one leaves no gap."""
        try:
            yield
        except EngineError as error:
            slot = self._known(model_id) if isinstance(model_id, str) and error.status == 400 else None
            if slot is not None and type(seq_id) is int:
                slot.ledger.refused(seq_id)
            raise

    def forward_backward(self, request: TrainRequest) -> str:
        slot = self.model(request.model_id)
        preparing: list[Future] = []

        def prepare():
            return [self.training_pool.submit(self.policy.sequence, datum.parts) for datum in request.data]

        def run():
            sequences = [prepared.result() for prepared in preparing]
            return (yield from trainer.forward_backward(self.policy, slot.trained, request, sequences, self.worker.heartbeat))

        job = TrainJob("forward_backward", run, prepare, preparing)
        return self._once(slot, "forward_backward", request.seq_id, request.digest, job)

    def optim_step(self, model_id: str, seq_id: int | None, params: dict) -> str:
        slot, adam = self.model(model_id), adam_params(params)

        def run():
            answer = trainer.optim_step(slot.trained, adam)
            self.updates += 1
            return answer
            yield

        return self._once(slot, "json", seq_id, _digest("optim_step", adam), TrainJob("optim_step", run))

    # --- saving and loading ---

    def save_weights(self, model_id: str, seq_id: int | None, name: str | None) -> str:
        slot = self.model(model_id)
        name = check_name(name if name is not None else f"auto-{time.time_ns()}")
        digest = _digest("save_weights", name)
        answer = {"path": f"tinker://{model_id}/weights/{name}", "type": "save_weights"}

        def run():
            order = time.time_ns()
            saving = (seq_id, digest, answer) if seq_id is not None else None
            self.store.write(
                model_id, "weights", name, lambda folder: trainer.save_training(self.policy, slot.trained, folder, order, saving)
            )
            if slot.loaded is not None:
                self._write_meta(slot, None)
            return answer
            yield

        return self._once(slot, "json", seq_id, digest, TrainJob("saving weights", run))

    def load_weights(self, model_id: str, seq_id: int | None, path: str, optimizer: bool) -> str:
        slot = self.model(model_id)
        folder = self.training_folder(path)

        def run():
            trainer.load_training(self.policy, slot.trained, folder, optimizer=optimizer, pending=False)
            self._write_meta(slot, path)
            return {"path": path, "type": "load_weights", "model_id": model_id}
            yield

        digest = _digest("load_weights", path, optimizer)
        return self._once(slot, "json", seq_id, digest, TrainJob("loading weights", run), loads=True)

    def training_folder(self, path: str):
        model_id, kind, name = parse_uri(path)
        if kind != "weights":
            raise user_error(f"{path} is for sampling; training goes on from tinker://MODEL/weights/NAME.")
        return self.store.existing(model_id, kind, name)

    def load_new_model(self, session_id: str, model_seq_id: int, path: str, optimizer: bool, metadata: dict | None) -> str:
        """load_weights that creates its model, with the checkpoint's own lora_config."""
        folder = self.training_folder(path)
        saved = json.loads((folder / "engine.json").read_text())["model"]
        self.touch(session_id)
        model_id = f"{session_id}:train:{model_seq_id}"
        known = self._known(model_id)
        if known is not None and known.ledger.lost is None:
            return self.answers.add("json", finished({"model_id": model_id, "path": path, "type": "load_weights"}))
        meta = {"session_id": session_id, "lora_config": saved["lora_config"], "user_metadata": metadata}
        return self._create(model_id, meta, (path, folder, optimizer))

    def save_for_sampler(self, model_id: str, seq_id: int | None, name: str | None, session_seq: int | None) -> str:
        """With a name: files and a URI. Without: a snapshot in memory and a sampling session."""
        slot = self.model(model_id)
        digest = _digest("save_weights_for_sampler", name, session_seq)
        if name is not None:
            return self._once(slot, "json", seq_id, digest, TrainJob("saving sampler weights", self._sampler_save(slot, check_name(name))))

        def run():
            session_id = slot.meta["session_id"]
            key = f"{session_id}:sample:{session_seq if session_seq is not None else uuid.uuid4().hex[:8]}"
            weights = slot.trained.weights.frozen_copy(key)
            self.versions.open_session(SamplingSession(key, session_id, weights, model_id, ephemeral=True))
            return {"path": None, "sampling_session_id": key, "type": "save_weights_for_sampler"}
            yield

        alive = lambda answer: answer["sampling_session_id"] in self.versions.sessions  # noqa: E731
        return self._once(slot, "json", seq_id, digest, TrainJob("taking a snapshot", run), valid=alive)

    def _sampler_save(self, slot: Slot, name: str) -> Callable:
        def run():
            uri = f"tinker://{slot.id}/sampler_weights/{name}"
            weights = slot.trained.weights.frozen_copy(uri)

            def fill(folder) -> None:
                if weights.spec is None:
                    self.policy.save_whole(weights, folder)
                else:
                    save_adapter(folder, weights.spec, weights.tensors, self.settings.model)
                (folder / "engine.json").write_text(sampler_meta("sampler", slot.meta, time.time_ns()))

            weights.root = str(self.store.write(slot.id, "sampler_weights", name, fill))
            self.versions.remember(uri, weights)
            return {"path": uri, "folder": weights.root, "type": "save_weights_for_sampler"}
            yield

        return run

    # --- sampling ---

    def sample(self, weights: Weights, request: SampleRequest, prepare: Callable) -> Future:
        """`prepare` makes the sequence on the pool; the answer's future also carries its failure."""
        if self.worker.load()["waiting"] >= self.settings.max_queue:
            raise EngineError("Too many samples wait (--max-queue); send it again later.", category="server", status=429)
        job = SampleJob(weights, request, request.samples)
        job.future.add_done_callback(self._count)

        def ready(prepared: Future) -> None:
            try:
                request.sequence = prepared.result()
                policy = self.policy
                check_sampling(
                    request.options, len(request.sequence), self.settings.max_context, policy.vocabulary, policy.forbidden
                )
                job.tokens = len(request.sequence) + request.options.max_tokens
                self.worker.submit(job)
            except BaseException as error:
                self.worker.refuse(job, describe(error, "preparing the prompt"))

        self.sampling_pool.submit(prepare).add_done_callback(ready)
        return job.future

    def sample_once(self, session: SamplingSession | None, seq_id: int | None, start: Callable[[], Future]) -> str:
        """The same (sampling session, seq_id) is one request."""
        key = (session.id, seq_id) if session is not None and seq_id is not None else None
        if key is not None and self.answers.has(self._asked.get(key, "")):
            return self._asked[key]
        request_id = self.answers.add("sample", start())
        if key is not None:
            self._asked[key] = request_id
            if len(self._asked) > 100_000:
                self._asked = {k: v for k, v in self._asked.items() if self.answers.has(v)}
        return request_id

    def _count(self, future: Future) -> None:
        if future.cancelled() or future.exception() is not None:
            return
        with self._lock:
            for sequence in future.result()["sequences"]:
                self.finished_samples[sequence["stop_reason"]] += 1

    def unload_model(self, model_id: str) -> None:
        """Frees a model's memory; its checkpoints stay and it comes back from the last one when it is asked for.

        What it was still to do is not done: nobody waits for it, and others would.
        """
        self.slots.pop(model_id, None)
        self.worker.drop(model_id, user_error(f"{model_id} was unloaded before this request was done; nothing was applied."))

    def health(self) -> str | None:
        return self.worker.health(self.settings.stall_after_s)


def _digest(*parts) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
