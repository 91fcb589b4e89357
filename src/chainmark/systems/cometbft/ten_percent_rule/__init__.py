"""The rule of the published CometBFT reports, computed next to ours: any difference over 10 % is a regression."""
