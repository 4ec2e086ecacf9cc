"""Update a trained model with new documents, and with new labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from setrnn.data.cache import cache_folder
from setrnn.data.document_sketch import hash_texts
from setrnn.data.example import Example
from setrnn.data.folders import explain_failed_write, temporary_folder
from setrnn.data.merging import Bools, WasTrainedOn, merge
from setrnn.errors import ConfigError
from setrnn.methods import find_method
from setrnn.models.folder import check_model_place
from setrnn.models.hub import name_place
from setrnn.progress import OnProgress, ignore_progress
from setrnn.tagging.fitting import check_out, explain_stop
from setrnn.tagging.further_training import read_training_changes
from setrnn.tagging.loading import load
from setrnn.tagging.opening import Data, Settings, make_source
from setrnn.tagging.tagger import Tagger
from setrnn.tagging.update import Update


def update(
    model: str | Path | Tagger,
    new: Data,
    *,
    data: Data | None = None,
    out: str | Path | None = None,
    settings: Settings = (),
    device: str = "auto",
    resume: bool = False,
    on_progress: OnProgress = ignore_progress,
) -> Tagger:
    """Update a model with new documents, and return the new model as a tagger.

    A new document replaces an old one with the same id or text. Labels that the model does not know
    are added; labels that no longer occur are kept. Networks are trained further for a few epochs,
    classical systems are fitted again. The members of a mixture are updated one by one, and then
    get new weights. The model is calibrated, to the targets of the model before.

    Without the old documents, old knowledge may be lost, the words stay the same, and classical
    systems cannot be fitted: members of a mixture stay as they are, or are left out if there are
    new labels.

    The valid part is that of the old and of the new documents. Where there is none, it is what the
    model was not trained on, and a tenth of the new documents.
    `notes["updated"]` has measures of both models on these documents.

    Args:
        model: a model folder or a tagger. It is not changed.
        new: the new documents with labels: a file, several, a folder, `hf:NAME` or "newsroom"; a
            `Source` says how to read them. An export of the page is such a file.
        data: the documents that the model was trained on, in the same forms.
        out: the model folder to write; not that of the model.
        settings: settings of the further training, such as `{"training.epochs": 5}`.
        device: where to compute: auto, cpu or cuda.
        resume: continue an update that was stopped, kept in OUT.run.
        on_progress: called with the progress and with notes for the user.

    Example:
        >>> import setrnn
        >>> tagger = setrnn.train("newsroom", "br")
        >>> from setrnn.data.formats import write_examples
        >>> text = "The chess club won the match in the park."
        >>> chess = setrnn.Example("c1", text, ["sport", "chess"])
        >>> n_written = write_examples([chess], "new.jsonl")
        >>> updated = setrnn.update(tagger, "new.jsonl", data="newsroom")
        >>> len(tagger.labels), len(updated.labels), updated.labels.names[-1]
        (65, 66, 'chess')
    """
    changes = read_training_changes(settings)
    target = None if out is None else Path(out)
    if target is not None:
        _refuse_own_folder(model, target)
    check_out(target, resume)
    with explain_stop(target), ExitStack() as stack:
        before = model if isinstance(model, Tagger) else load(model, device)
        name = before.method if isinstance(model, Tagger) else name_place(model)
        _refuse_without_documents(before, data is not None)
        merged = merge(
            make_source(new),
            None if data is None else make_source(data),
            _recognise(before),
        )
        folder = stack.enter_context(_folder_for_data())
        return Update(
            name,
            before,
            merged,
            folder=folder,
            has_old=data is not None,
            changes=changes,
            out=target,
            device=device,
            resume=resume,
            on_progress=on_progress,
        ).run()


def _refuse_own_folder(model: str | Path | Tagger, out: Path) -> None:
    check_model_place(out)
    if not isinstance(model, Tagger) and Path(model).resolve() == out.resolve():
        raise ConfigError(f"--out is {out}, the model itself. Name another folder.")


def _refuse_without_documents(before: Tagger, has_old: bool) -> None:
    methods = [each.method for each in before.members] or [before.method]
    if not has_old and not any(find_method(each).is_network for each in methods):
        raise ConfigError(
            f"'{', '.join(methods)}' is fitted on all documents at once. Give those that the model "
            "was trained on too: --data OLD."
        )


@contextmanager
def _folder_for_data() -> Iterator[Path]:
    """Yield a folder in the cache for prepared data, which is removed at the end."""
    target = cache_folder() / "update"
    with explain_failed_write(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder(target, is_private=True) as folder:
        yield folder


def _recognise(tagger: Tagger) -> WasTrainedOn | None:
    """Return what says of each document whether a model was trained on it; None if it cannot."""
    sketch = tagger.trained_documents
    if sketch is None or not sketch.is_complete:
        return None

    def was_trained_on(examples: Sequence[Example]) -> Bools:
        return sketch.recognise(hash_texts(example.text for example in examples))

    return was_trained_on
