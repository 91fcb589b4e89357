"""Published reports as sealed runs: their text, their columns, and what is known of each run behind one."""
