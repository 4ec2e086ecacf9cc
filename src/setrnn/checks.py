"""Checks of parts from outside the package: do they keep the promises of their protocols?

Each takes an entry of a dict, such as `RULES["three"]`, and tries it on four documents with four
labels, which have only 16 sets and 65 sequences. A broken promise raises `BrokenPromiseError`, in
one line: the part, the promise, and what was found. The tests of setrnn run the same checks.
"""

# B = n = 4 documents, L = 4 labels, T words, M memory size, S labels of the largest set

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import permutations, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from setrnn.config import ClassicalSettings, Config, ModelSettings, SearchSettings, TextSettings
from setrnn.data.batches import Batch, make_batch
from setrnn.data.cache import prepare
from setrnn.data.example import Example
from setrnn.data.labels import LabelVocabulary
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.data.read import READERS, BadRows, Format, ReadOptions
from setrnn.errors import BrokenPromiseError
from setrnn.methods import METHODS, Method
from setrnn.model.decoders import DECODERS, find_decoder
from setrnn.model.encoders import ENCODERS, GRUEncoder
from setrnn.model.evidence import make_evidence
from setrnn.model.interfaces import AnyDecoder, Encoder, Encoding
from setrnn.model.network import Network
from setrnn.objectives import OBJECTIVES, LabelSets, Objective, OrderObjective
from setrnn.objectives.exact_set import objective as exact_log_prob
from setrnn.progress import ignore_progress
from setrnn.systems.candidates import Floats, Ids, Ints, SetCandidates, pack_labels
from setrnn.systems.closure import Closure
from setrnn.systems.known import Known
from setrnn.systems.limits import Limits, no_limits
from setrnn.systems.mixture import MixtureSystem, Weights
from setrnn.systems.registry import find_system
from setrnn.systems.rules import RULES, Rule
from setrnn.systems.rules.choice import Choice
from setrnn.systems.rules.marginal_rules import Thresholds

B, L, N_WORDS = 4, 4, 20
TEXTS = ((3, 4, 5, 6), (7, 8, 3), (9, 10), ())  # token ids; one document is empty
LABEL_SETS = ((0, 1, 2, 3), (1, 3), (2,), ())  # one per document
KNOWN = Known.of([(1, 3), (), (2,), ()], [(0,), (), (), (2, 0)])
# Every set, at the place of the number that its labels make as bits.
IS_IN = np.arange(2**L)[:, None] >> np.arange(L) & 1 == 1  # (2^L, L)
EVERY_SET = Ragged.from_lists([np.flatnonzero(row).tolist() for row in IS_IN]).padded()
SEQUENCES = [each for n in range(L + 1) for each in permutations(range(L), n)]
SEEN = Ragged.from_lists([[], [0], [1, 3], [0, 2, 3], [2], [0, 1], [0, 1, 2, 3]])
LIMITS = (
    Limits(),
    Limits(forbidden=["b", "c"]),
    Limits(required=["c"], max_labels=2),
    Limits(min_labels=2),
    Limits(max_labels=0),
    Limits(only_seen=True, min_labels=2),
)
# With dropout, which must be off in prediction, and beams wider than all sequences.
CONFIG = Config(
    text=TextSettings(min_count=1, stop_words="none"),
    classical=ClassicalSettings(max_steps=20, beam_width=2**L),
    model=ModelSettings(encoder_units=6, decoder_units=5, dropout=0.5),
    search=SearchSettings(beam_width=200),
)


def check_system(method: Method) -> None:
    """Check the system of a method: the probabilities of all sets, its candidates and marginals.

    A network has random weights, any other system is trained on a small corpus.

    Example:
        >>> import setrnn
        >>> from setrnn.methods import METHODS
        >>> setrnn.checks.check_system(METHODS["br"])
    """
    part, tokens = f"the system of method '{method.name}'", Ragged.from_lists(TEXTS)
    with _promise(part, "its class is found by the name of its method, and trained with a Config"):
        system = _make_system(method)
    with _promise(part, "set_log_probs gives each set its probability; those of all sets sum to 1"):
        sets = np.broadcast_to(EVERY_SET, (B, *EVERY_SET.shape))
        probs = np.exp(system.set_log_probs(tokens, sets))
        _same(probs.sum(axis=1), np.ones(B))
    for known in (Known.of([()] * B, [()] * B), KNOWN):
        with _promise(part, "candidates are the sets that fit what is known, with their own p"):
            fits = ~(known.is_present(L)[:, None] & ~IS_IN).any(axis=2)
            fits &= ~(known.is_absent(L)[:, None] & IS_IN).any(axis=2)
            found = system.candidates(tokens, 2**L, known=None if known.is_nothing else known)
            _same(_spread(found), probs * fits, 1e-3)
    for each in (system, system.with_beam_width(3) or system):
        with _promise(part, "batches, their order and the number of sets change no candidate"):
            order = np.array([2, 0, 3, 1, 0])
            few, many = each.candidates(tokens.take(order), 2), each.candidates(tokens, 2**L)
            _same(_spread(few, 2), _spread(many, 2)[order])
        for source in ("sets", "sequences")[: 1 + each.emits_sequences]:
            with _promise(part, "p(label) is at least that of the sets found with it, at most 1"):
                found = each.candidates(tokens, 2**L, source)
                marginals, least = each.marginals(tokens, found), _spread(found) @ IS_IN
                _same(np.clip(marginals, least, 1), marginals)
    with _promise(part, "without documents, there are no candidates and no marginals"):
        nothing = Ragged.from_lists([])
        _require(len(system.candidates(nothing, 3)) == 0, "candidates")
        _same(system.marginals(nothing), np.zeros((0, L)))
    if not method.is_mixture:  # it is saved member by member
        with _promise(part, "from_arrays builds the same system from its arrays"):
            config = getattr(system, "config", CONFIG)
            again = type(system).from_arrays(system.arrays(), method, config, "cpu")
            _same(np.exp(again.set_log_probs(tokens, sets)), probs, 1e-6)


def check_objective(objective: Objective, decoder: str = "rnn") -> None:
    """Check an objective with a decoder that it trains, a name in `DECODERS`.

    Example:
        >>> import setrnn
        >>> from setrnn.objectives import OBJECTIVES
        >>> setrnn.checks.check_objective(OBJECTIVES["best-order"])
    """
    part, network = _name("objective", objective, OBJECTIVES), _make_network(find_decoder(decoder))

    def value(rows: Sequence[int], seed: int = 3, width: int = 0) -> Tensor:
        torch.manual_seed(seed)
        encoding = network.encode(_batch([TEXTS[row] for row in rows]))
        sets = _label_sets([LABEL_SETS[row] for row in rows], width)
        return objective(network.decoder, encoding, sets, 5)

    if isinstance(objective, OrderObjective):
        with _promise(part, "it scores orders of the set, at least one, at most as many as asked"):
            encoding = network.encode(_batch())
            for most in (1, 5, 30):
                found = objective.choose_orders(network.decoder, encoding, _label_sets(), most)
                for row, n, labels in zip(found.labels, found.n_orders, LABEL_SETS, strict=True):
                    _require(1 <= n <= most, f"{n} orders of {labels}")
                    for order in row[: int(n), : len(labels)].tolist():
                        _require(sorted(order) == [*labels], f"{order} for {labels}")
    everything = range(B)
    with _promise(part, "it gives one finite value per set, the same for the same seed"):
        together = value(everything)
        _same(together, value(everything), 0)
        _require(together.shape == (B,), f"the shape {tuple(together.shape)}")
        _require(together.isfinite().all(), f"{together.tolist()}")
    if torch.equal(together, value(everything, seed=4)):  # it draws nothing
        with _promise(part, "what else is in the batch, and its padding, change no value"):
            _same(torch.cat([value([row]) for row in everything]), together)
            _same(value(everything[1:], width=L), together[1:])
    with _promise(part, "every parameter learns, and the decoder is left in training"):
        network.train()
        torch.autograd.backward(value(everything).sum())
        _require(network.decoder.training, "it is not in training")
        for name, each in network.named_parameters():
            gradient = torch.zeros(()) if each.grad is None else each.grad
            _require(gradient.any(), f"{name} has no gradient")
            _require(gradient.isfinite().all(), f"the gradient of {name} is not finite")


def check_decoder(decoder: type[AnyDecoder]) -> None:
    """Check a decoder; if it emits labels one by one, by scoring all sequences.

    Example:
        >>> import setrnn
        >>> from setrnn.model.decoders import DECODERS
        >>> setrnn.checks.check_decoder(DECODERS["rnn"])
    """
    part, orders = _name("decoder", decoder, DECODERS), _label_sets(SEQUENCES).labels  # (65, S)

    def read(decoder: Any, encoding: Encoding) -> Tensor:  # noqa: ANN401
        """Return log p of all sequences, (B, 65), or the log-odds of all labels, (B, L)."""
        if decoder.emits == "labels":
            logits: Tensor = decoder.logits(encoding)
            return logits
        scores: Tensor = decoder.score(encoding, orders.expand(len(encoding.memory), -1, -1))
        return scores

    with _promise(part, 'emits is "sequences", "sets" or "labels", n_labels their number'):
        network = _make_network(decoder)
        own: Any = network.decoder
        _require(own.emits in ("sequences", "sets", "labels"), repr(own.emits))
        _require(own.n_labels == L, f"n_labels {own.n_labels} for {L}")
    with _promise(part, "a document is scored the same whatever else is in the batch"):
        encoding = network.encode(_batch())
        scores = read(own, encoding)
        _same(torch.cat([read(own, network.encode(_batch([text]))) for text in TEXTS]), scores)
    with _promise(part, "from_weights builds the same decoder from its weights"):
        weights = own.state_dict()
        again: Any = decoder.from_weights(weights, network.encoder.memory_size, CONFIG.model)
        again.load_state_dict(weights, assign=True)
        _same(read(again.eval(), encoding), scores, 1e-6)
    if decoder.emits == "labels":
        with _promise(part, "logits are the finite log-odds of each label, (B, L)"):
            _same(scores.clamp(-1e6, 1e6), scores.reshape(B, L))
        return
    with _promise(part, "the probabilities of all sequences without repeats sum to 1"):
        _same(scores.exp().sum(1), torch.ones(B))
    with _promise(part, "the steps of a sequence add up to its score"):
        stepped = [_step_through(own, encoding, each) for each in SEQUENCES]
        for each, steps, expected in zip(SEQUENCES, stepped, scores.T, strict=True):
            _same(steps[:, range(len(each) + 1), [*each, L]].sum(1), expected)
    with _promise(part, "follow gives the log-probabilities of the steps"):
        followed = own.follow(encoding, _label_sets().labels, _label_sets().sizes)
        for row, labels in enumerate(LABEL_SETS):
            steps = stepped[SEQUENCES.index(labels)][row]
            _same(followed[row, : len(labels) + 1], steps)
    with _promise(part, "attention is a distribution over the words of a document at every step"):
        attention = own.attend(encoding, orders.expand(B, -1, -1))
        on_words = attention.where(encoding.is_word[:, None, None], 0.0)
        _same(on_words.sum(3), torch.ones(attention.shape[:3]))
    if decoder.emits == "sets":
        with _promise(part, "after gives p(set) as the sum over the orders of the set"):
            for labels in {tuple(sorted(each)) for each in SEQUENCES}:
                is_order = torch.tensor([sorted(each) == [*labels] for each in SEQUENCES])
                found = exact_log_prob(own, encoding, _label_sets([labels] * B), 5)
                _same(found, scores[:, is_order].logsumexp(1))


def check_encoder(encoder: type[Encoder], config: Config = CONFIG) -> None:
    """Check an encoder that is built from a small corpus, with the settings that it needs.

    Example:
        >>> import setrnn
        >>> from setrnn.model.encoders import ENCODERS
        >>> setrnn.checks.check_encoder(ENCODERS["gru"])
    """
    part = _name("encoder", encoder, ENCODERS)
    with _promise(part, "from_data builds it, and a vector per label"):
        encoder.check(config)
        with _small_corpus(config.text) as prepared:
            made: Any
            made, labels = encoder.from_data(prepared, config, ignore_progress)
        _require(labels.ndim == 2 and len(labels) == L, f"vectors of shape {tuple(labels.shape)}")
        made.eval()
    batch = _batch()
    tokens, lengths = batch.tokens, batch.lengths
    is_word = torch.arange(tokens.shape[1]) < lengths[:, None]
    with _promise(part, "it gives a vector per word, (B, T, M), and one per document, (B, M)"):
        encoding = made(tokens, lengths)
        _same(encoding.memory, encoding.memory.reshape(*tokens.shape, made.memory_size))
        _same(encoding.words, encoding.words.reshape(*tokens.shape, made.word_size))
        _same(encoding.summary, encoding.summary.reshape(B, made.memory_size))
    with _promise(part, "closed is 0 on the words of a document, and -inf on padding"):
        _same(encoding.closed, torch.zeros(tokens.shape).masked_fill(~is_word, -torch.inf))
    with _promise(part, "a document is read the same whatever padding and documents are beside it"):
        wider = made(pad(tokens, (0, 5)), lengths)
        _same(wider.memory[:, : tokens.shape[1]][is_word], encoding.memory[is_word])
        _same(wider.summary, encoding.summary)
        for row, length in enumerate(lengths.tolist()):
            alone = made(tokens[row : row + 1, :length], lengths[row : row + 1])
            _same(alone.memory[0], encoding.memory[row, :length])
            _same(alone.summary[0], encoding.summary[row])
    with _promise(part, "from_weights builds the same encoder from its weights"):
        again: Any = encoder.from_weights(made.state_dict(), config.model)
        again.load_state_dict(made.state_dict(), assign=True)
        _same(again.eval()(tokens, lengths).summary, encoding.summary, 1e-6)
        _require(again.n_tokens == made.n_tokens, f"n_tokens {again.n_tokens}")


def check_rule(rule: Rule) -> None:
    """Check a prediction rule: what it chooses are sets, within all limits, the best by its `rate`.

    Example:
        >>> import setrnn
        >>> from setrnn.systems.rules import RULES
        >>> setrnn.checks.check_rule(RULES["f1"])
    """
    part, vocabulary = _name("rule", rule, RULES), LabelVocabulary(tuple("abcd"), (4, 3, 2, 1))
    probs = np.random.default_rng(3).dirichlet(np.full(2**L, 0.3), 20) + 1e-9
    probs /= probs.sum(axis=1, keepdims=True)
    ranked = np.argsort(-probs, axis=1)
    thresholds = Thresholds(0.4, np.array([0.2, 0.5, 0.3, 0.6]))

    def ask(rows: Ints, sets: Ids) -> Floats:
        numbers = np.where(sets >= 0, 1 << np.maximum(sets, 0), 0).sum(axis=2)
        return np.asarray(np.log(probs[rows[:, None], numbers]))

    closure = Closure(Ragged.from_lists([[], [0], [0], [0, 1, 2]]).padded())
    for above, asked, n_sets in product((None, closure), LIMITS, (2**L, 3)):
        limits = asked.for_labels(vocabulary, SEEN, above)
        found = ranked[:, :n_sets]
        candidates = SetCandidates(EVERY_SET[found], np.log(np.take_along_axis(probs, found, 1)))
        choice = Choice(candidates, limits, ask, thresholds)
        own = ", ".join(f"{key}={value}" for key, value in vars(asked).items() if value)
        where = f"with Limits({own}){' in a hierarchy' if above else ''}, "
        with _promise(part, where + "it chooses a set of distinct labels that fits"):
            chosen = pack_labels(rule.choose(choice))
            _require(len(chosen) == 20 and chosen.max(initial=0) < L, f"{chosen.tolist()}")
            repeats = chosen[:, 1:][(np.diff(chosen) == 0) & (chosen[:, 1:] >= 0)]
            _require(not len(repeats), f"label {repeats[:1]} twice")
            misfits = chosen[~limits.fit(chosen[:, None])[:, 0]]
            _require(not len(misfits), f"the set {misfits[:1].tolist()}")
        if rule.rate is not None and n_sets == 2**L and (above is None or limits.is_free):
            with _promise(part, where + "it chooses a set of the highest rate"):
                fitting = EVERY_SET[limits.fit(EVERY_SET[None])[0]]
                rates = rule.rate(choice, np.broadcast_to(fitting, (20, *fitting.shape)))
                _same(rule.rate(choice, chosen[:, None])[:, 0], rates.max(axis=1), 1e-6)
    for n, n_labels in ((0, L), (3, 0)):
        with _promise(part, f"of {n} documents and {n_labels} labels, it chooses {n} empty sets"):
            empty = SetCandidates(np.full((n, 1, 1), -1, dtype=np.int32), np.zeros((n, 1)))
            thresholds = Thresholds(0.4, np.full(n_labels, 0.4))
            chosen = rule.choose(Choice(empty, no_limits(n_labels), ask, thresholds))
            _require(len(chosen) == n and not (chosen >= 0).any(), f"{chosen.tolist()}")


def check_reader(reader: Format, place: Path, documents: Sequence[Example]) -> None:
    r"""Check a reader on a file, folder or address that holds documents in its format, as train.

    Example:
        >>> import setrnn, tempfile
        >>> from setrnn.data.read import READERS
        >>> file = Path(tempfile.mkdtemp()) / "train.csv"
        >>> _ = file.write_text("id,text,labels\n1,Rates rise,money;bank\n")
        >>> wanted = [setrnn.Example("1", "Rates rise", ("money", "bank"))]
        >>> setrnn.checks.check_reader(READERS["csv"], file, wanted)
    """
    part = _name("reader", reader, READERS)
    with _promise(part, "it finds train, and reads its documents again, also side by side"):
        splits = reader.find(place, ReadOptions())
        _require("train" in splits, f"the parts {[*splits]}")
        split = splits["train"]
        beside = [*zip(split.read(BadRows()), split.read(BadRows()), strict=True)]
        for found in (split.read(BadRows()), *([pair[i] for pair in beside] for i in (0, 1))):
            wrong = [each for each, wanted in zip(found, documents, strict=True) if each != wanted]
            _require(not wrong, f"{wrong[:1]}")
        _require(all(file.is_file() for file in split.files), f"no file {split.files}")
    with TemporaryDirectory() as folder, _promise(part, "it takes no files of other formats"):
        other = Path(folder) / "train.other"
        for _ in range(2):  # empty, then with the file
            _require(not reader.find(other.parent, ReadOptions()), "documents in another folder")
            other.write_text("one\n")
        _require(not reader.fits(other), f"that {other.name} fits")


@contextmanager
def _promise(part: str, promise: str) -> Iterator[None]:
    """Raise any failure of a block as one line that names the part and the promise."""
    try:
        yield
    except Exception as error:
        kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        found = " ".join(f"{kind}{error}".split())
        raise BrokenPromiseError(f"{part} breaks a promise: {promise}. Found: {found}") from error


def _require(holds: object, found: str) -> None:
    if not holds:
        raise AssertionError(found)


def _same(found: Any, expected: Any, tolerance: float = 1e-4) -> None:  # noqa: ANN401 (arrays)
    first, second = (torch.as_tensor(each).detach().double() for each in (found, expected))
    _require(first.shape == second.shape, f"shape {[*first.shape]}, not {[*second.shape]}")
    is_far = ~torch.isclose(first, second, rtol=tolerance, atol=tolerance)
    for place in map(tuple, is_far.nonzero()[:1].tolist()):
        _require(False, f"{first[place]:.4g} at {list(place)}, not {second[place]:.4g}")


def _name(kind: str, part: object, entries: Mapping[str, object]) -> str:
    """Return the name of a part in its dict, or of its class or function."""
    own = getattr(part, "__name__", type(part).__name__)
    return f"{kind} '{next((name for name, each in entries.items() if each is part), own)}'"


def _batch(texts: Sequence[Sequence[int]] = TEXTS) -> Batch:
    return make_batch(Ragged.from_lists(texts), None, np.arange(len(texts)))


def _label_sets(rows: Sequence[Sequence[int]] = LABEL_SETS, width: int = 0) -> LabelSets:
    labels = torch.from_numpy(Ragged.from_lists(rows).padded(min_width=width)).long()
    return LabelSets(labels, (labels >= 0).sum(1))


def _spread(found: SetCandidates, n_sets: int = 2**L) -> Floats:
    """Return p of every set, (n, 2^L): 0 if it is not among the first candidates."""
    probs = np.zeros((len(found), 2**L))
    for row, log_probs in enumerate(found.log_probs):
        _require((log_probs[1:] <= log_probs[:-1] + 1e-9).all(), "a better set after a worse one")
        for rank in np.flatnonzero(log_probs > -np.inf)[:n_sets]:
            labels = found.set_at(row, rank)
            number = sum(1 << label for label in {*labels})
            _require(labels == sorted({*labels}) and not probs[row, number], f"{labels} twice")
            probs[row, number] = np.exp(log_probs[rank])
    return probs


def _step_through(decoder: Any, encoding: Encoding, sequence: Sequence[int]) -> Tensor:  # noqa: ANN401
    """Return the log-probabilities of the steps of a sequence and of its STOP: (B, S + 1, V)."""
    state, steps = decoder.start(encoding), []
    for previous in (L, *sequence):
        log_probs, state = decoder.step(encoding, state, torch.full((B, 1), previous))
        steps.append(log_probs[:, 0])
    return torch.stack(steps, dim=1)


def _make_network(decoder: type[AnyDecoder]) -> Network:
    """Build a network around a decoder, with random weights that are far from uniform."""
    torch.manual_seed(0)
    encoder = GRUEncoder(torch.randn(N_WORDS, 4), CONFIG.model)
    made = decoder(encoder.memory_size, torch.randn(L, 4) / 2, CONFIG.model)
    network = Network(encoder, made, make_evidence(encoder.word_size, L, 0))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(2.0)
    return network.eval()


def _make_system(method: Method) -> Any:  # noqa: ANN401 (a System)
    if method.is_mixture:
        members = tuple(_make_system(METHODS[name]) for name in ("sigmoid", "set-rnn"))
        return MixtureSystem(members, (0, 0), Weights(np.array([0.3, 0.7])), L)
    if method.is_network:
        network = _make_network(find_decoder(method.decoder))
        return find_system(method)(network, CONFIG, torch.device("cpu"))
    with _small_corpus(CONFIG.text) as prepared:
        return find_system(method).train(prepared, CONFIG)


@contextmanager
def _small_corpus(settings: TextSettings) -> Iterator[Prepared]:
    """Prepare 160 documents: ten for each set, most with words of its labels and a wrong one."""
    names, examples = ("rain", "bank", "club", "film"), []
    for number in range(10 * 2**L):
        labels = [names[label] for label in np.flatnonzero(IS_IN[number % 2**L])]
        words = [*labels[number % 3 :], "the", names[number % 7 % L], chr(97 + number % 16) * 3]
        examples.append(Example(str(number), " ".join(words), tuple(labels)))
    with TemporaryDirectory() as folder:
        yield prepare({"train": lambda: examples}, Path(folder) / "small", "small", settings, {})
