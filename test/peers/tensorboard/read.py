"""Reads what was exported with the programs it is for, and compares it with the JSON of the same run.

read.py EVENTS METRICS_CSV METRICS_JSON METRICS_PARQUET ROLLOUTS_CSV ROLLOUTS_JSON ROLLOUTS_PARQUET RESULT
"""

import json
import sys

import pandas
import tensorboard
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

(
    events,
    metrics_csv,
    metrics_json,
    metrics_parquet,
    rollouts_csv,
    rollouts_json,
    rollouts_parquet,
    result,
) = sys.argv[1:]

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

# Parquet: typed columns, every value as it is, what is absent is null; times are UTC timestamps of milliseconds.
import pyarrow
import pyarrow.parquet

cells = 0
for file, rows in ((metrics_parquet, metrics), (rollouts_parquet, rollouts)):
    arrow = pyarrow.parquet.read_table(file)
    assert arrow.column_names == list(rows[0]), arrow.column_names
    assert arrow.num_rows == len(rows), (arrow.num_rows, len(rows))
    frame = pandas.read_parquet(file)
    for column in arrow.column_names:
        kind = arrow.schema.field(column).type
        times = pyarrow.types.is_timestamp(kind)
        assert times == (column == "at" or column.endswith("_at")), (column, kind)
        if times:
            assert kind.tz == "UTC" and kind.unit == "ms", kind
            got_all = [None if v is None else round(v.timestamp() * 1000) for v in arrow[column].to_pylist()]
            assert all(pandas.isna(a) == (b is None) for a, b in zip(frame[column], got_all))
        else:
            got_all = arrow[column].to_pylist()
        for got, row in zip(got_all, rows):
            want = row[column]
            if times and want is not None:
                want = int(want)
            assert got == want, (file, column, got, want)
            cells += 1

said = {
    "tensorboard": tensorboard.__version__,
    "pandas": pandas.__version__,
    "pyarrow": pyarrow.__version__,
    "tags_read": len(tags),
    "scalars_read": values,
    "metric_rows_read": len(metrics),
    "rollout_rows_read": len(rollouts),
    "parquet_cells_read": cells,
}
with open(result, "w") as f:
    json.dump(said, f, indent=2)
    f.write("\n")
print(json.dumps(said))
