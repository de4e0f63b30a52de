"""Anchor: the least that a page of the newest sessions takes: every log's stat, each shown one's header.

    plain_list.py SESSIONS_DIR PAGE TIMES

Prints the ids of the page, and the median of wall and CPU seconds.
"""

import os
import statistics
import sys
import time

import orjson


def page(folder: str, size: int) -> list[str]:
    """Ids of the newest logs, from their headers."""
    logs = []
    with os.scandir(folder) as buckets:
        for bucket in buckets:
            with os.scandir(bucket.path) as entries:
                for entry in entries:
                    if entry.name.endswith(".jsonl"):
                        logs.append((entry.stat().st_mtime_ns, entry.path))
    logs.sort(reverse=True)

    ids = []
    for _, path in logs[:size]:
        with open(path, "rb") as file:
            ids.append(orjson.loads(file.readline())["id"])
    return ids


def main(folder: str, size: int, times: int) -> None:
    """List so many times, after once for the caches."""
    ids = page(folder, size)
    wall_s, cpu_s = [], []
    for _ in range(times):
        began, cpu = time.perf_counter(), time.process_time()
        page(folder, size)
        wall_s.append(time.perf_counter() - began)
        cpu_s.append(time.process_time() - cpu)
    told = {"ids": ids, "wall_s": statistics.median(wall_s), "cpu_s": statistics.median(cpu_s)}
    print(orjson.dumps(told).decode())


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
