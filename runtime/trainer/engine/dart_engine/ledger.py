"""Which requests of a model were applied: the idempotency map, saved with each checkpoint.

A request is its model and seq_id. Asked again with the same content it has the same answer and is not applied
twice; with other content it is refused. What fails is forgotten, so that it can be sent again.
"""

from __future__ import annotations

import base64
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .errors import model_lost, user_error

KEPT_ENTRIES = 4096
KEPT_ANSWERS = 64


@dataclass
class Entry:
    digest: str
    request_id: str
    applied: bool = False
    answer: dict | None = None


class Standing(NamedTuple):
    """Why a model that came back does not go on anywhere: `Ledger` says what each means."""

    restored: bool
    lost: str | None
    last: int


class Ledger:
    def __init__(self) -> None:
        self._entries: OrderedDict[int, Entry] = OrderedDict()
        self._lock = threading.RLock()
        self.last = 0
        self.floor = -1
        self.restored = False
        self.lost: str | None = None

    def find(self, seq_id: int, digest: str) -> Entry | None:
        """The earlier request with this key, None for a new one; raises where the key cannot be used."""
        entry = self._entries.get(seq_id)
        if entry is not None:
            if entry.digest != digest:
                raise user_error(f"seq_id {seq_id} was used for another request of this model; a new request needs a new seq_id.")
            return entry
        if seq_id <= self.floor:
            raise user_error(f"seq_id {seq_id} is older than what is kept (after {self.floor}).")
        return None

    def check(self, seq_id: int | None) -> None:
        """Raises where a request would be applied to other weights than its caller believes."""
        if self.lost is not None:
            raise model_lost(
                f"This model came back without the weights that were loaded into it ({self.lost}) and not saved since. load_weights again."
            )
        if self.restored and seq_id is not None and seq_id > self.last + 1:
            raise model_lost(
                f"The engine came back from a checkpoint that ends with seq_id {self.last}; {seq_id} would leave a gap. Send the "
                f"requests from {self.last + 1} again, or load_weights to say where to go on."
            )

    def accept(self, seq_id: int, digest: str, request_id: str) -> None:
        with self._lock:
            self._entries[seq_id] = Entry(digest, request_id)
            self.last = max(self.last, seq_id)
            while len(self._entries) > KEPT_ENTRIES:
                oldest, _ = self._entries.popitem(last=False)
                self.floor = max(self.floor, oldest)

    def refused(self, seq_id: int) -> None:
        with self._lock:
            if seq_id == self.last + 1:
                self.last = seq_id

    def applied(self, seq_id: int | None, answer: dict) -> None:
        entry = self._entries.get(seq_id) if seq_id is not None else None
        if entry is not None:
            entry.applied = True
            entry.answer = answer
            with self._lock:
                self.last = max(self.last, seq_id)
                for old in list(self._entries.values())[: -2 * KEPT_ANSWERS]:
                    if old.applied:
                        old.answer = None  # log-probs of a large batch are megabytes

    def forget(self, seq_id: int | None) -> None:
        with self._lock:
            entry = self._entries.get(seq_id) if seq_id is not None else None
            if entry is not None and not entry.applied:
                del self._entries[seq_id]

    def continue_anywhere(self) -> "Standing":
        """With load_weights the caller says where it goes on. Returns what holds again if those weights are not loaded."""
        with self._lock:
            before = Standing(self.restored, self.lost, self.last)
            self.restored = False
            self.lost = None
        return before

    def put_back(self, before: "Standing", seq_id: int | None) -> None:
        """The weights were not loaded: requests that are queued behind that are refused when their turn comes. Its own number
        counts as given where it left no gap, as that of any other request that fails."""
        with self._lock:
            if before.restored:
                self.restored, self.last = True, before.last + (1 if seq_id == before.last + 1 else 0)
            if before.lost is not None:
                self.lost = before.lost

    def at_work(self) -> bool:
        """A request is queued or under way."""
        with self._lock:
            return any(not entry.applied for entry in self._entries.values())

    def to_json(self, saving: tuple[int, str, dict] | None = None) -> dict:
        """`saving` is the save itself (seq_id, digest, answer): it counts as applied in what it writes."""
        with self._lock:
            done = [(seq_id, entry) for seq_id, entry in self._entries.items() if entry.applied]
        if saving is not None:
            done.append((saving[0], Entry(saving[1], "", True, saving[2])))
        recent = {seq_id for seq_id, _ in done[-KEPT_ANSWERS:]}
        entries = [
            {"seq_id": seq_id, "digest": entry.digest, "answer": pack(entry.answer) if seq_id in recent else None}
            for seq_id, entry in done
        ]
        return {"last": max((seq_id for seq_id, _ in done), default=0), "floor": self.floor, "entries": entries}

    @classmethod
    def from_json(cls, saved: dict) -> "Ledger":
        ledger = cls()
        ledger.last, ledger.floor, ledger.restored = saved["last"], saved["floor"], True
        for item in saved["entries"]:
            answer = unpack(item["answer"]) if item["answer"] is not None else None
            ledger._entries[item["seq_id"]] = Entry(item["digest"], "", True, answer)
        return ledger


def pack(answer: dict | None) -> dict | None:
    """An answer with its float arrays as base64, exact to the bit."""
    if answer is None or "logprobs" not in answer:
        return answer
    arrays = [base64.b64encode(array.astype("<f4").tobytes()).decode() for array in answer["logprobs"]]
    return {**answer, "logprobs": arrays}


def unpack(answer: dict) -> dict:
    if "logprobs" not in answer:
        return answer
    arrays = [np.frombuffer(base64.b64decode(text), dtype="<f4") for text in answer["logprobs"]]
    return {**answer, "logprobs": arrays}
