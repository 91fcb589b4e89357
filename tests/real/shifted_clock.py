"""Processes whose wall clock is ahead, by a library that is loaded before the C library."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(clock, time);
    if (status == 0 && clock == CLOCK_REALTIME) {
        time->tv_nsec += AHEAD_NS;
        if (time->tv_nsec >= 1000000000L) { time->tv_nsec -= 1000000000L; time->tv_sec++; }
    }
    return status;
}
"""


def clock_ahead(folder: Path, ahead_s: float) -> dict[str, str]:
    """Variables of a process whose wall clock is ahead by less than a second.

    Programs in Go read the kernel's clock themselves, and keep the right time.
    """
    source, library = folder / "ahead.c", folder / "ahead.so"
    source.write_text(SOURCE, encoding="utf-8")
    options = ["-shared", "-fPIC", f"-DAHEAD_NS={round(ahead_s * 1e9)}L", "-o", str(library)]
    subprocess.run(["cc", *options, str(source), "-ldl"], check=True, timeout=60)
    return {"LD_PRELOAD": str(library)}
