"""Search over label sequences and label sets; it sees a decoder's steps, never a network."""
