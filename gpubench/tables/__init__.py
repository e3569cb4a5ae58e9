"""Results and plans as tables on a terminal, and as rows of JSON. Nothing here prints."""
