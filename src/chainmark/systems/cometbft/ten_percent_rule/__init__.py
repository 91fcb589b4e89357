"""The rule of the published CometBFT reports, computed beside ours: any difference over 10 % is a regression."""
