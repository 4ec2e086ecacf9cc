"""Tables, figures and one page from the records of a comparison; no model is ever read."""
