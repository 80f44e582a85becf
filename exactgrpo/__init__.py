"""exactgrpo: the group-relative policy update, checked exactly."""
