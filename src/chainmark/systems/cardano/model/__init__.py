"""The results of the network model, laid out as documents."""
