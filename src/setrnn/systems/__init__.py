"""Every kind of system, and the rules that choose a set from what a system finds."""
