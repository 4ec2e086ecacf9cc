"""The network: an encoder that reads the document, a decoder that emits labels."""
