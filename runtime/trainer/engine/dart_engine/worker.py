"""The supervised torch thread: training in order of arrival, sampling coalesced by version, taking turns.

A training job is a generator that yields after each micro-batch, so a sampling batch waits for one at most.
If the thread itself fails, every waiting caller gets an error and the heartbeat says so: no silent hang.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from .errors import EngineError, describe, is_device_lost, server_error

log = logging.getLogger("dart_engine")

# Training jobs whose pictures are in memory: the one that computes, and the next so that it need not wait. A whole batch does not
# fit: a picture of 1280x720 takes 22 MB.
PREPARED_JOBS = 2


@dataclass(eq=False)
class TrainJob:
    """`run` yields between micro-batches and returns the result.

    `prepare` starts the decodings that must end first, when the turn of the job is near; `waits_for` has them then.
    `owner` is the model that asked; `dropped` is why the job is no longer wanted.
    """

    doing: str
    run: Callable[[], Iterator[None]]
    prepare: Callable[[], list[Future]] | None = None
    waits_for: list[Future] = field(default_factory=list)
    future: Future = field(default_factory=Future)
    owner: str | None = None
    dropped: EngineError | None = None


@dataclass(eq=False)
class SampleJob:
    """`weights` is the version; `rows` the sequences it will make, `tokens` the prompt's and the answer's; `request` is the sampler's own."""

    weights: Any
    request: Any
    rows: int
    tokens: int = 0
    future: Future = field(default_factory=Future)
    arrived: float = field(default_factory=time.monotonic)


class Worker:
    def __init__(
        self, sample: Callable, sample_rows: int, window_s: float, sample_tokens: int = 131_072, on_broken: Callable[[], None] | None = None
    ):
        self._sample = sample
        self._on_broken = on_broken
        self._sample_rows = sample_rows
        self._window_s = window_s
        self._sample_tokens = sample_tokens
        self._training: deque[TrainJob] = deque()
        self._sampling: list[SampleJob] = []
        self._active: tuple[TrainJob, Iterator[None]] | None = None
        self._running_samples: list[SampleJob] = []
        self._wake = threading.Condition()
        self._stopping = False
        self._busy_since: float | None = None
        self.beat = time.monotonic()
        self.broken: str | None = None
        self._thread = threading.Thread(target=self._supervise, name="torch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._wake:
            self._stopping = True
            self._wake.notify_all()
        self._thread.join(timeout=30)

    def heartbeat(self) -> None:
        """Called by whatever runs on the torch thread, at least once a micro-batch or token."""
        self.beat = time.monotonic()

    def health(self, stall_after_s: float) -> str | None:
        """None when well, else what is wrong."""
        if self.broken:
            return self.broken
        if not self._thread.is_alive():
            return "The torch thread is not running. Restart the engine; it goes on from its last checkpoint."
        busy, since = self._busy_since, time.monotonic() - self.beat
        if busy is not None and since > stall_after_s:
            return f"The torch thread has not reported for {since:.0f} s. Restart the engine if this goes on."
        return None

    def load(self) -> dict:
        with self._wake:
            waiting = sum(job.rows for job in self._sampling)
            training = len(self._training) + (1 if self._active else 0)
            return {"running": sum(job.rows for job in self._running_samples), "waiting": waiting, "training": training}

    def submit(self, job: TrainJob | SampleJob) -> None:
        with self._wake:
            if self.broken or self._stopping:
                raise server_error(self.broken or "The engine is stopping.")
            if isinstance(job, TrainJob):
                self._training.append(job)
                self._prepare_ahead()
            elif not job.future.done():  # its caller went away while its prompt was prepared
                self._sampling.append(job)
            self._wake.notify_all()

    def cancel(self, future: Future) -> bool:
        """Drops the sample of this future, whether it waits or its prompt is being prepared. False if it has begun."""
        with self._wake:
            if future.done() or any(job.future is future for job in self._running_samples):
                return False
            self._sampling = [job for job in self._sampling if job.future is not future]
            future.set_exception(EngineError("The request was cancelled.", category="user"))
        return True

    def refuse(self, job: SampleJob, error: EngineError) -> None:
        """Fails a sample that cannot be submitted, unless it was cancelled."""
        with self._wake:
            _settle(job.future, error)

    def drop(self, owner: str, error: EngineError) -> None:
        """Fails this owner's training jobs that wait; the one under way ends between two micro-batches."""
        with self._wake:
            gone = [job for job in self._training if job.owner == owner]
            self._training = deque(job for job in self._training if job.owner != owner)
            if self._active is not None and self._active[0].owner == owner:
                self._active[0].dropped = error
            for job in gone:
                for waited in job.waits_for:
                    waited.cancel()
                _settle(job.future, error)
            self._wake.notify_all()

    def _prepare_ahead(self) -> None:
        """Starts the decodings of the first jobs that have any."""
        active = self._active
        jobs = [*([active[0]] if active else []), *self._training]
        for job in [job for job in jobs if job.prepare is not None][:PREPARED_JOBS]:
            if not job.waits_for:
                job.waits_for.extend(job.prepare())
                for waited in job.waits_for:
                    waited.add_done_callback(lambda _: self._notify())

    def _notify(self) -> None:
        with self._wake:
            self._wake.notify_all()

    def _supervise(self) -> None:
        try:
            while not self._stopping:
                self._turn()
        except BaseException as error:  # whatever it is, nobody may wait for ever
            log.exception("the torch thread ends")
            self._break(f"The torch thread ended with {type(error).__name__}: {error}. Restart the engine.")
        finally:
            self._fail_all(server_error(self.broken or "The engine is stopping; send the request again after it is back."))

    def _break(self, reason: str) -> None:
        with self._wake:
            first, self.broken = self.broken is None, reason
            self._wake.notify_all()
        if first and self._on_broken is not None:
            self._on_broken()

    def _fail_all(self, error: EngineError) -> None:
        with self._wake:
            jobs: list = [*self._training, *self._sampling, *self._running_samples]
            if self._active:
                jobs.append(self._active[0])
            self._training.clear()
            self._sampling.clear()
            self._running_samples = []
            self._active = None
            for job in jobs:
                _settle(job.future, error)

    def _turn(self) -> None:
        """One micro-batch of training, then one batch of samples; waits when there is neither."""
        with self._wake:
            self._prepare_ahead()
            if self._active is None and self._training and _ready(self._training[0]):
                job = self._training.popleft()
                self._active = (job, iter(job.run()))
            samples = self._take_samples()
            if self._active is None and not samples:
                self._busy_since = None
                self.heartbeat()
                self._wake.wait(timeout=self._pause())
                return
            self._busy_since = self._busy_since or time.monotonic()
            self._running_samples = samples
        self.heartbeat()
        if samples:
            self._run_samples(samples)
            self._running_samples = []
        if self._active is not None:
            self._advance(*self._active)

    def _pause(self) -> float:
        """How long to wait for work: the rest of the window where samples are gathering."""
        if not self._sampling:
            return 1.0
        return max(0.0005, self._window_s - (time.monotonic() - min(job.arrived for job in self._sampling)))

    def _take_samples(self) -> list[SampleJob]:
        """The oldest sample and those of its version that fit beside it, once the window has passed."""
        waiting = self._sampling
        if not waiting or (time.monotonic() - waiting[0].arrived < self._window_s and len(waiting) < self._sample_rows):
            return []
        taken: list[SampleJob] = []
        rows = longest = 0
        for job in waiting:
            padded = (rows + job.rows) * max(longest, job.tokens)
            fits = rows + job.rows <= self._sample_rows and padded <= self._sample_tokens
            if job.weights is waiting[0].weights and (fits or not taken):
                taken.append(job)
                rows, longest = rows + job.rows, max(longest, job.tokens)
        self._sampling = [job for job in self._sampling if job not in taken]
        return taken

    def _advance(self, job: TrainJob, steps: Iterator[None]) -> None:
        try:
            if job.dropped is not None:
                steps.close()
                raise job.dropped
            next(steps)
        except StopIteration as end:
            self._active = None
            _settle(job.future, end.value)
        except Exception as error:
            self._active = None
            self._failed(job, error, job.doing)

    def _run_samples(self, samples: list[SampleJob]) -> None:
        try:
            results = self._sample(samples[0].weights, [job.request for job in samples])
            for job, result in zip(samples, results, strict=True):
                _settle(job.future, result)
            return
        except Exception as error:
            if len(samples) == 1 or is_device_lost(error):
                for job in samples:
                    self._failed(job, error, "sampling")
                return
            log.warning("a batch of %d samples failed (%s); each is tried alone", len(samples), str(error))
        # Not while the error is handled: its traceback keeps the tensors of the whole batch.
        _release_memory()
        for job in samples:
            self._run_samples([job])

    def _failed(self, job: TrainJob | SampleJob, error: Exception, doing: str) -> None:
        if not isinstance(error, EngineError):
            log.exception("failed while %s", doing)
        described = describe(error, doing)
        if is_device_lost(error):
            self._break(described.message)
        _release_memory()
        if not job.future.done():
            job.future.set_exception(described)


def _ready(job: TrainJob) -> bool:
    return all(waited.done() for waited in job.waits_for)


def _settle(future: Future, result) -> None:
    if future.done():  # its caller went away
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)


def _release_memory() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
