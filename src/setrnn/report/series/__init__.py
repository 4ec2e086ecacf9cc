"""The numbers behind the figures, from records: plain functions, nothing drawn."""
