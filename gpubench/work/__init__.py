"""What a kernel does, apart from how long it takes: counts, and what follows from them."""
