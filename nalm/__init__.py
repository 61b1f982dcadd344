"""Neural arithmetic logic units in PyTorch."""
