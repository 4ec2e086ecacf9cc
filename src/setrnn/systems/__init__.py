"""All kinds of systems, and the rules that choose a set from the sets that a system finds."""
