"""The shared vocabulary: it imports nothing of the project, and everything else may import it."""
