"""Items: stored once per task and version, whichever evaluations ask them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from evals.task import Item
from storage.connection import Lake, Transaction, source
from storage.tables import ITEMS, REQUESTS
from storage.text import decode_json, decode_text, encode_json, encode_text


def insert_items(tx: Transaction, task: str, task_version: str, items: Iterable[Item]) -> int:
    """Return how many items were not stored; those that were stay as they are."""
    distinct = tuple({item.item_id: item for item in items}.values())
    columns = {
        "task": [encode_text(task)] * len(distinct),
        "task_version": [encode_text(task_version)] * len(distinct),
        "item_id": [item.item_id for item in distinct],
        "doc": [encode_json(item.doc) for item in distinct],
        "target": [encode_text(item.target) for item in distinct],
        "cluster": [encode_text(item.cluster) for item in distinct],
        "stratum": [encode_text(item.stratum) for item in distinct],
    }
    return tx.insert_missing(ITEMS, pa.table(columns, schema=ITEMS.schema))


def load_items(
    lake: Lake, evaluation_id: str, task: str, task_version: str, *, snapshot: int | None = None
) -> tuple[Item, ...]:
    """Return the items of a task that an evaluation asks, in plan order."""
    found = lake.table(
        f"""
        SELECT i.item_id, doc, target, cluster, stratum
        FROM (FROM {source(ITEMS, snapshot)}) AS i
        JOIN (
            SELECT item_id, min(position) AS first
            FROM {source(REQUESTS, snapshot)} WHERE evaluation_id = ? AND task = ?
            GROUP BY item_id
        ) AS asked ON asked.item_id = i.item_id
        WHERE i.task = ? AND i.task_version = ?
        ORDER BY first
        """,
        [evaluation_id, encode_text(task), encode_text(task), encode_text(task_version)],
    )
    return tuple(
        Item(
            item_id=item_id,
            doc=decode_json(doc),
            target=decode_text(target),
            cluster=decode_text(cluster),
            stratum=decode_text(stratum),
        )
        for item_id, doc, target, cluster, stratum in zip(
            *(column.to_pylist() for column in found.columns), strict=True
        )
    )
