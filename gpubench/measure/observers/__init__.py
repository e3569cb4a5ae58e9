"""What watches a run of a case: one observer in one file, and none knows of another."""
