"""Whether rows still are what the code makes: a sample retrained, old and new code side by side, rows of
another folder taken up.
"""

from companion.verification.confirmation import Confirmation, confirm

__all__ = ["Confirmation", "confirm"]
