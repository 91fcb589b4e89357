"""How much of a change of adoption is the network between regions, and how much the nodes."""
