#!/usr/bin/env python3
"""Writes tests/golden/parquet: small parquet files, and the lines of JSON that Tandem makes of each.

    verl.parquet      rows of verl's shape: prompt (a conversation), reward_model, extra_info, …
    types.parquet     each type of column once, with null, NaN and values at the ends of their range
    twins.parquet     two columns whose names differ in upper and lower case alone
    images.parquet    a column of bytes, as datasets keeps images: refused
    nested_decimals.parquet  decimals within a struct: refused
    many_groups.parquet      1000 rows in 40 row groups, two pages each, packed by zstd

The lines are made here from the values that are written, not by Tandem; scripts/parquet_parity
compares them, and files of other packages, with what datasets.load_dataset gives. Needs pyarrow.
"""
import datetime as dt
import decimal
import json
import math
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/parquet"
D = decimal.Decimal


def text_of(value):
    """A value of Python as Tandem writes it."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: text_of(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [text_of(inner) for inner in value]
    if isinstance(value, (dt.datetime, dt.time)):
        text = str(value).replace("+00:00", "")
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return text + ("+00" if isinstance(value, dt.datetime) and value.tzinfo else "")
    return str(value) if isinstance(value, (dt.date, D)) else value


def write(name, rows, schema, **options):
    pq.write_table(pa.Table.from_pylist(rows, schema), OUT / f"{name}.parquet", **options)
    lines = [json.dumps(text_of(row), ensure_ascii=False, separators=(",", ":")) for row in rows]
    (OUT / f"{name}.jsonl").write_text("".join(line + "\n" for line in lines))


def verl():
    messages = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
    schema = pa.schema([
        ("data_source", pa.string()), ("prompt", messages), ("ability", pa.string()),
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        ("extra_info", pa.struct([("split", pa.string()), ("index", pa.int64())]))])
    rows = [{
        "data_source": "openai/gsm8k" if i % 3 else None,
        "prompt": [{"role": "system", "content": "Answer with a number."}] * (i % 2) +
                  [{"role": "user", "content": f"What is {i} + {2 * i}?\n\"Think\" → answer."}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": str(3 * i)},
        "extra_info": {"split": "train", "index": i}} for i in range(20)]
    write("verl", rows, schema)


def types():
    utc = dt.timezone.utc
    columns = {
        "i64": (pa.int64(), [2**53 + 1, -2**63, None]), "u64": (pa.uint64(), [2**64 - 1, 0, 1]),
        "i8": (pa.int8(), [1, None, -128]), "f32": (pa.float32(), [0.5, math.nan, 1.0]),
        "f64": (pa.float64(), [math.inf, -math.inf, 0.1]), "bool": (pa.bool_(), [True, False, None]),
        "text": (pa.string(), ['a"\\\n\u2028é😀', 'NaN, "NaN": -Infinity', None]),
        "large": (pa.large_string(), ["x", "", "z"]),
        "date": (pa.date32(), [dt.date(2024, 1, 2), dt.date(1, 1, 1), None]),
        "us": (pa.timestamp("us"), [dt.datetime(2024, 1, 2, 3, 4, 5, 120000),
                                    dt.datetime(1969, 12, 31), None]),
        "ms": (pa.timestamp("ms"), [dt.datetime(2024, 1, 2, 3, 4, 5), None, None]),
        "zone": (pa.timestamp("us", tz="UTC"), [dt.datetime(2024, 1, 2, tzinfo=utc), None,
                                                dt.datetime(1, 1, 1, 1, 1, 1, 1, tzinfo=utc)]),
        "time": (pa.time64("us"), [dt.time(1, 2, 3, 4), dt.time(0, 0), None]),
        "decimal": (pa.decimal128(38, 2), [D("1.50"), D("-123456789012345678901.99"), None]),
        "list": (pa.list_(pa.struct([("x", pa.float64()), ("t", pa.timestamp("us"))])),
                 [[{"x": math.nan, "t": None}, None], [], None]),
        "struct": (pa.struct([("a", pa.int64()), ("t", pa.timestamp("us"))]),
                   [{"a": 1, "t": dt.datetime(2024, 1, 1)}, None, {"a": None, "t": None}]),
        "category": (pa.dictionary(pa.int32(), pa.string()), ["p", "q", "p"]),
        "nothing": (pa.null(), [None, None, None]),
    }
    schema = pa.schema([(name, type_) for name, (type_, _) in columns.items()])
    write("types", [{name: values[i] for name, (_, values) in columns.items()} for i in range(3)],
          schema)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    verl()
    types()
    write("twins", [{"Prompt": "a", "prompt": "b"}],
          pa.schema([("Prompt", pa.string()), ("prompt", pa.string())]))
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    pq.write_table(pa.table({"prompt": ["a"], "images": pa.array([[{"bytes": b"\xff", "path": None}]],
                                                                pa.list_(image))}),
                   OUT / "images.parquet")
    price = pa.struct([("price", pa.decimal128(5, 2))])
    pq.write_table(pa.table({"prompt": ["a"], "cost": pa.array([{"price": D("1.50")}], price)}),
                   OUT / "nested_decimals.parquet")
    write("many_groups", [{"prompt": f"row {i}", "answer": i} for i in range(1000)],
          pa.schema([("prompt", pa.string()), ("answer", pa.int64())]),
          row_group_size=25, data_page_size=200, compression="zstd")


if __name__ == "__main__":
    main()
