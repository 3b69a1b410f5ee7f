"""Reads what was exported with the programs it is for, and compares it with the JSON of the same run.

read.py EVENTS METRICS_CSV METRICS_JSON ROLLOUTS_CSV ROLLOUTS_JSON RESULT
"""

import json
import sys

import pandas
import tensorboard
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events, metrics_csv, metrics_json, rollouts_csv, rollouts_json, result = sys.argv[1:]

with open(metrics_json) as f:
    metrics = json.load(f)
with open(rollouts_json) as f:
    rollouts = json.load(f)

# TensorBoard: every finite metric under its tag, each value in its place (32-bit floats), evaluations beside them.
board = EventAccumulator(events, size_guidance={"scalars": 0})
board.Reload()
expected = {}
for row in metrics:
    expected.setdefault(row["name"].replace(".", "/", 1), []).append(row["value"])
tags = set(board.Tags()["scalars"])
missing = set(expected) - tags
assert not missing, f"tags that TensorBoard does not have: {missing}"
assert tags - set(expected) == {"evaluation/success", "evaluation/low", "evaluation/high"}, tags - set(expected)
values = 0
for tag, want in expected.items():
    got = [s.value for s in board.Scalars(tag)]
    assert len(got) == len(want), (tag, len(got), len(want))
    for a, b in zip(got, want):
        assert abs(a - b) <= 1e-6 * max(1.0, abs(b)), (tag, a, b)
    values += len(got)

# pandas: the same rows and values, texts unchanged.
table = pandas.read_csv(metrics_csv)
assert list(table["name"]) == [r["name"] for r in metrics]
assert all(abs(a - r["value"]) <= 1e-12 * max(1.0, abs(r["value"])) for a, r in zip(table["value"], metrics))
table = pandas.read_csv(rollouts_csv, keep_default_na=False, dtype=str)
assert list(table.columns) == list(rollouts[0])
for column in table.columns:
    for got, row in zip(table[column], rollouts):
        want = row[column]
        if want is None:
            assert got == "", (column, got)
        elif isinstance(want, str):
            assert got == want, (column, got, want)
        else:
            assert abs(float(got) - want) <= 1e-9 * max(1.0, abs(want)), (column, got, want)

said = {
    "tensorboard": tensorboard.__version__,
    "pandas": pandas.__version__,
    "tags_read": len(tags),
    "scalars_read": values,
    "metric_rows_read": len(metrics),
    "rollout_rows_read": len(rollouts),
}
with open(result, "w") as f:
    json.dump(said, f, indent=2)
    f.write("\n")
print(json.dumps(said))
