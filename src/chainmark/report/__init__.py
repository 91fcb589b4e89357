"""Documents: blocks that are laid out once for every medium, and a function for each kind of result."""
