"""Where runs are made: what systems offer, one session a run, schedules of runs; knows no system."""
