"""The classical systems: BR, BR-support and PCC on tf-idf."""
