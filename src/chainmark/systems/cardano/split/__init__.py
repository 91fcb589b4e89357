"""The parts of the network between regions and of the nodes in a change of adoption."""
