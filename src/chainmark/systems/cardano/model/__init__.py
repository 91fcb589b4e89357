"""What the model of the network says, laid out as documents."""
