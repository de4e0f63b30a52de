"""What the kernel says of a process: CPU time and memory. Linux only."""

import time
from pathlib import Path


def cpu_s(pid: int) -> float:
    """CPU seconds of a living process, in nanosecond steps, threads that have ended included."""
    # The clock id that clock_getcpuclockid(3) computes: all threads of `pid`, by the scheduler's account.
    # /proc/PID/stat counts in 10 ms ticks, and /proc/PID/task forgets threads that are gone.
    return time.clock_gettime((~pid << 3) | 2)


def resident_mb(pid: int) -> float:
    """Memory that is resident now."""
    return _status_mb(pid, "VmRSS")


def peak_mb(pid: int) -> float:
    """The most memory that was ever resident."""
    return _status_mb(pid, "VmHWM")


def _status_mb(pid: int, field: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text("ascii", "replace").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"no {field} in the status of process {pid}")
