"""A trained model on disk and on the Hugging Face hub, and its description."""
