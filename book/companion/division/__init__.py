"""Experiments of *Exploring the Learning Mechanisms of Neural Division Modules* (Mistry, Farrahi & Hare,
2022).
"""
