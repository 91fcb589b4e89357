"""Making runs: the systems' interfaces, one session per run, schedules of runs; independent of systems."""
