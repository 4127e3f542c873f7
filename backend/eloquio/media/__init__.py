"""Pictures of any format made what an engine reads, and the one way to fetch from a URL."""
