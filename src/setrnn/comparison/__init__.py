"""Many runs of many systems on one dataset: run, recorded, and compared with statistics."""
