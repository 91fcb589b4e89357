"""Real nodes of any system: processes, addresses and the sampling of their resource use."""
