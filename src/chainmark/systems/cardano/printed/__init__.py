"""Published reports as sealed runs: their text, their columns, and the known facts about the run of each."""
