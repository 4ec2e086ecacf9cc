"""From texts to token ids: words, subwords, languages."""
