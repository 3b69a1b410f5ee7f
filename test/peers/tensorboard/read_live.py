"""Reads with TensorBoard what a run wrote while it went on, and compares it with the export of the same run.

read_live.py LIVE_EVENTS EXPORTED_EVENTS RESULT
"""

import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

live_dir, exported_dir, result = sys.argv[1:]


def scalars(folder):
    board = EventAccumulator(folder, size_guidance={"scalars": 0})
    board.Reload()
    return {tag: [(s.step, s.value) for s in board.Scalars(tag)] for tag in board.Tags()["scalars"]}


live, exported = scalars(live_dir), scalars(exported_dir)
assert set(live) == set(exported), set(live) ^ set(exported)
for tag in ("update/loss", "evaluation/success"):
    assert len(live[tag]) > 1, (tag, live.get(tag))
    steps = [step for step, _ in live[tag]]
    assert steps == sorted(steps), (tag, steps)
values = 0
for tag, got in live.items():
    want = exported[tag]
    assert len(got) == len(want), (tag, len(got), len(want))
    for (step, value), (wanted_step, wanted) in zip(got, want):
        assert value == wanted, (tag, value, wanted)
        # Seconds since the run began are told by the clock when the file is written, and of the journal when it is exported.
        assert abs(step - wanted_step) <= (1 if tag.startswith("run/") else 0), (tag, step, wanted_step)
        values += 1

with open(result) as f:
    said = json.load(f)
said.update({"live_tags_read": len(live), "live_scalars_read": values, "live_updates": len(live["update/loss"])})
with open(result, "w") as f:
    json.dump(said, f, indent=2)
    f.write("\n")
print(json.dumps(said))
