"""Experiments of *Neural Power Units* (Heim, Pevný & Šmídl, 2020)."""
