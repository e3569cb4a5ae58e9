"""Case and backend to times: inputs, the check, clocks and sampling, and the record."""
