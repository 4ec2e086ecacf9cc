"""A name that would do harm where it is not escaped."""

NASTY = "<img src=x onerror=alert(1)>"
