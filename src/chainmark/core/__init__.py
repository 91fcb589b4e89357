"""The shared vocabulary: it imports nothing of the project, and all other packages may import it."""
