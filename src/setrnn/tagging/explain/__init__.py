"""How a model tags one text: its sequences and sets, and the words for each label."""
