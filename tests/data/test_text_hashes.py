import numpy as np

from setrnn.data.text_hashes import hash_texts, join_hashes

rng = np.random.default_rng(0)
DOCUMENTS = [" ".join(map(str, rng.integers(0, 50, rng.integers(1, 9)))) for _ in range(3_000)]
TRAINED, NEW = DOCUMENTS[:2_000], DOCUMENTS[1_500:]


def test_documents_are_recognised_one_by_one():
    trained = join_hashes([hash_texts(part) for part in (["", *TRAINED[:900]], TRAINED[900:])])
    texts = ["", " \n", *NEW]  # a text without words is never recognised
    found = np.isin(hash_texts(texts), trained)
    assert found.tolist() == [each in set(TRAINED) for each in texts]
    assert (np.diff(trained) > 0).all()


def test_texts_differ_by_numbers_and_by_words_that_no_model_knows():
    """Hashes of token ids took all of these for one: a number is one token, as an unknown word."""
    texts = ["Invoice 17 of Zqxwv", "Invoice 18 of Zqxwv", "Invoice 17 of Vwxqz"]
    assert len(set(hash_texts(texts).tolist())) == 3
    assert hash_texts(["invoice  17 OF zqxwv\n"]) == hash_texts(texts[:1])
