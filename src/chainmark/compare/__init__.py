"""Gates, outcomes and the verdict: from sealed runs to a comparison."""
