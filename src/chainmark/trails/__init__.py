"""From the tail of a distribution to the blocks in it, and to what every host did with them."""
