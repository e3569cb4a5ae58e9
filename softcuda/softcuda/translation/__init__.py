"""From the text of a PTX module to C: read, laid out, and written one instruction at a time."""
