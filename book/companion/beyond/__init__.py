"""What no paper asks: a file per question."""
