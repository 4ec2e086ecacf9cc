"""Which methods a comparison runs."""

import pytest

from setrnn.comparison.plan import find_methods
from setrnn.errors import ConfigError
from setrnn.methods import METHODS


def test_all_is_every_method_but_later_ones_and_names_keep_the_order_of_the_table():
    later = [name for name, method in METHODS.items() if method.is_later]
    assert find_methods("all") == [name for name in METHODS if name not in later]
    assert find_methods("later") == later
    assert find_methods("later, all") == find_methods(["all", "later"]) == list(METHODS)
    assert find_methods("later,set-rnn, br,set-rnn") == ["br", "set-rnn", *later]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("br,set-rn", "Did you mean 'set-rnn'"),
        ("br,latter", "Did you mean 'later'"),
        (" ,", "names no method"),
    ],
)
def test_unknown_methods_are_refused(names, message):
    with pytest.raises(ConfigError, match=message):
        find_methods(names)
