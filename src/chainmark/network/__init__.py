"""Real nodes of any system: processes, addresses and the sampling of what they use."""
