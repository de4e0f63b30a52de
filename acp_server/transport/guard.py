"""Keeps stdout for the protocol: run before anything that could print is imported. Stdlib only.

Afterwards the protocol's descriptors are private and not inherited; descriptor 1 is stderr and
descriptor 0 the null device, for us, every library and every child process.
"""

import os
import sys


def take_stdio() -> tuple[int, int]:
    """Move the protocol's descriptors away and leave harmless ones in their place.

    Returns:
        The private descriptors to read from and to write to.
    """
    private_in, private_out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return private_in, private_out
