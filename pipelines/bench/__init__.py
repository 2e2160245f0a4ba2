"""Speed, measured against the alternative in the same run on the same machine."""
