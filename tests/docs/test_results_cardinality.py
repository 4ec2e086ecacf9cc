"""The gains by cardinality are those of the stored comparisons and of the paper's table."""

import importlib.util
import sys
from pathlib import Path

RESULTS = Path(__file__).parents[2] / "docs" / "results"
SPECIFICATION = importlib.util.spec_from_file_location("cardinality", RESULTS / "cardinality.py")
cardinality = sys.modules["cardinality"] = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(cardinality)


def test_the_tables_are_those_of_the_records():
    gains = [*cardinality.list_stored(), *cardinality.list_papers()]
    for name, write in (("csv", cardinality.write_csv), ("md", cardinality.write_tables)):
        assert (RESULTS / f"cardinality.{name}").read_text(encoding="utf-8") == write(gains)
