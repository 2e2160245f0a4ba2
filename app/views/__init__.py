"""One module per page or part of one; each draws what it is given."""
