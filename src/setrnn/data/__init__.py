"""From files to batches: documents, labels, formats, tokenizers, prepared folders, word vectors."""
