"""The dashboard: the documents of a store as pages of a small server on this machine."""
