"""The workshop of the book: experiments of the three papers, what they state, their figures and tables,
the scoreboard.
"""
