"""Sessions: bindings and their moves, titles, transcripts and what is read from them."""
