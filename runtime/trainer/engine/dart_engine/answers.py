"""Futures by request id, kept until they are old, and how long a caller waits for one."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass, field

from .errors import EngineError, describe, gone


@dataclass
class Answer:
    """`kind`: forward_backward and sample have a protobuf form, json has none."""

    kind: str
    future: Future
    asked: float = field(default_factory=time.monotonic)


class Answers:
    """Used on the event loop only."""

    def __init__(self, keep_s: float):
        self._keep_s = keep_s
        self._answers: OrderedDict[str, Answer] = OrderedDict()

    def add(self, kind: str, future: Future, request_id: str | None = None) -> str:
        self._drop_old()
        request_id = request_id or f"request-{uuid.uuid4().hex}"
        self._answers[request_id] = Answer(kind, future)
        return request_id

    def has(self, request_id: str) -> bool:
        return request_id in self._answers

    def get(self, request_id: str) -> Answer:
        answer = self._answers.get(request_id)
        if answer is None:
            raise gone(
                f"There is no request {request_id}: the engine restarted, or the answer is older than it is kept. Send the original "
                "request again with its seq_id; it is not applied twice."
            )
        return answer

    async def wait(self, request_id: str, timeout_s: float) -> tuple[str, dict | EngineError | None]:
        """The kind and the result, an error, or None while there is none yet."""
        answer = self.get(request_id)
        if not answer.future.done():
            waiting = asyncio.wrap_future(answer.future)
            await asyncio.wait([waiting], timeout=timeout_s)
            if waiting.done() and not waiting.cancelled():
                waiting.exception()  # it was looked at
        if not answer.future.done():
            return answer.kind, None
        error = answer.future.exception()
        if error is not None:
            return answer.kind, describe(error, "answering")
        return answer.kind, answer.future.result()

    def _drop_old(self) -> None:
        limit = time.monotonic() - self._keep_s
        while self._answers:
            request_id, answer = next(iter(self._answers.items()))
            if answer.asked > limit or not answer.future.done():
                return
            del self._answers[request_id]


def finished(result: dict) -> Future:
    future: Future = Future()
    future.set_result(result)
    return future
