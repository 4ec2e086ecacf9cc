"""What all processes of a service import, once for all: they are copies of the one that did."""

import gc

import setrnn.serve.server  # noqa: F401

gc.collect()
gc.freeze()  # a collection would write to each object, and so copy its memory
