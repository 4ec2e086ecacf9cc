"""Work that is spread over processes and machines: each piece is done once, whatever is lost."""
