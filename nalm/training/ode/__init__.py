"""The ensemble that trains many neural ordinary differential equations at once."""
