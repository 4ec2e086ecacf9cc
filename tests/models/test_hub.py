"""Models on a stand-in for the hub: what is sent, what is read, and what is refused."""

import shutil
import sys
from pathlib import Path

import pytest

import setrnn
from hub_stand_in import READ, Repository
from setrnn.errors import ConfigError, MissingExtraError, ModelError
from setrnn.models.folder import GENERATED
from setrnn.models.hub import fix_place, split_place
from setrnn.serve.registry import Registry
from setrnn.serve.settings import name_folders

TEXT = "The ski race was cancelled because of the storm."
PLACE = "hub:me/news"


@pytest.fixture(scope="module")
def folder(taggers, tmp_path_factory):
    """A model folder; copy it before changing it."""
    place = tmp_path_factory.mktemp("shared") / "news"
    taggers["br"].save(place)
    return place


@pytest.fixture
def pushed(hub, folder):
    """The hub with a model as me/news."""
    setrnn.push(folder, PLACE)
    return hub


def version(place):
    return setrnn.load(place, "cpu").version


@pytest.mark.parametrize("place", ["copy", "copies/", "hub:news"])
def test_a_model_is_the_same_at_every_place(place, hub, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = setrnn.push(folder, place)
    if place.startswith("hub:"):
        assert found == f"{hub.address}/me/news"
        found = PLACE
    tagger, original = setrnn.load(found, "cpu"), setrnn.load(folder, "cpu")
    assert tagger.version == original.version
    assert tagger.tag([TEXT]) == original.tag([TEXT])
    assert setrnn.push(tagger, "again/") == "again/br"
    assert version("again/br") == original.version
    with pytest.raises(ConfigError, match="is for the hub"):
        setrnn.push(folder, "other", private=True)


@pytest.mark.parametrize("start", ["./", "../place/", "{}/"])
def test_a_path_may_hold_what_begins_a_name_on_the_hub(
    start, folder, tmp_path, monkeypatch, setrnn
):
    start = start.format(tmp_path / "place")
    shutil.copytree(folder, tmp_path / "place/hub:a/b")
    monkeypatch.chdir(tmp_path / "place")
    place = f"{start}hub:a/b"
    assert setrnn("show", place).code == 0
    assert setrnn("predict", place, "--text", TEXT).code == 0
    assert setrnn("push", place, f"{start}hub:a/c").code == 0
    assert version(place) == version(f"{start}hub:a/c")
    (served,) = name_folders([place]).values()
    Registry({"b": served}, "cpu").load()
    assert setrnn("show", "hub:a b").code == 1


def test_only_files_of_a_model_are_sent(hub, folder, tmp_path):
    place = shutil.copytree(folder, tmp_path / "model")
    (place / "texts.pkl").write_bytes(b"private")
    setrnn.push(place, PLACE)
    names = {each.name for each in folder.iterdir()}
    assert set(hub.repositories["me/news"].files) == {*names, ".gitattributes"}


def test_a_public_model_says_what_anyone_can_read(hub, folder, notes):
    setrnn.push(folder, PLACE)
    (line,) = notes.texts
    assert "public" in line
    for part in ("labels", "words", "label sets", "hashes"):
        assert part in line
    setrnn.push(folder, "hub:me/secret", private=True)
    assert len(notes.texts) == 1
    assert hub.repositories["me/secret"].private


def test_a_public_repository_does_not_take_a_private_model(pushed, folder):
    with pytest.raises(ModelError, match="public"):
        setrnn.push(folder, PLACE, private=True)
    assert len(pushed.repositories["me/news"].messages) == 1


def readme_of(hub):
    return hub.repositories["me/news"].files["README.md"].decode()


def header_of(hub):
    from huggingface_hub import ModelCard

    return ModelCard(readme_of(hub)).data.to_dict()


def test_the_card_has_the_header_that_the_hub_reads(hub, folder):
    setrnn.push(folder, PLACE)
    files = hub.repositories["me/news"].files
    files["README.md"] = files["README.md"].replace(b"---\n", b"---\nlicense: mit\n", 1)
    setrnn.push(folder, PLACE)
    header = header_of(hub)
    assert (header["library_name"], header["pipeline_tag"]) == ("setrnn", "text-classification")
    assert header["license"] == "mit"  # it is kept
    assert "setrnn" in header["tags"]
    assert GENERATED in readme_of(hub)
    assert 'setrnn.load("hub:me/news")' in readme_of(hub)


def test_what_people_wrote_stays(hub, folder, tmp_path):
    place = shutil.copytree(folder, tmp_path / "model")
    (place / "README.md").write_text("# Ours\n")
    setrnn.push(place, PLACE)
    assert readme_of(hub).endswith("---\n\n# Ours\n")
    setrnn.push(folder, PLACE)
    assert readme_of(hub).endswith("# Ours\n")


def test_a_repository_of_another_library_is_not_overwritten(hub, folder):
    files = {"config.json": b'{"model_type": "bert"}', "model.safetensors": b"weights"}
    hub.repositories["me/news"] = Repository(commits=[files])
    with pytest.raises(ModelError, match="not of a model of setrnn"):
        setrnn.push(folder, PLACE)
    hub.repositories["me/news"] = Repository(commits=[{"model.safetensors": b"weights"}])
    with pytest.raises(ModelError, match="not of a model of setrnn"):
        setrnn.push(folder, PLACE)
    assert hub.repositories["me/news"].messages == []


def test_other_files_are_neither_read_nor_changed(hub, folder):
    hub.repositories["me/news"] = Repository(commits=[{"model.pkl": b"evil", "a/b.py": b"evil"}])
    setrnn.push(folder, PLACE)
    setrnn.load(PLACE, "cpu")
    assert not hub.count("GET", "resolve/main/model.pkl") + hub.count("GET", "model.pkl")
    assert hub.repositories["me/news"].files["model.pkl"] == b"evil"


def test_files_that_the_new_model_lacks_are_removed_in_the_same_commit(pushed, folder, tmp_path):
    repository = pushed.repositories["me/news"]
    assert "calibration.json" in repository.files or not (folder / "calibration.json").exists()
    repository.files["calibration.json"] = b"{}"
    repository.files["tokenizer-1.json"] = b"{}"
    place = shutil.copytree(folder, tmp_path / "model")
    (place / "calibration.json").unlink(missing_ok=True)
    setrnn.push(place, PLACE)
    assert len(repository.messages) == 2
    assert not {"calibration.json", "tokenizer-1.json"} & repository.files.keys()
    assert version(PLACE) == version(place)


def test_a_push_that_fails_changes_nothing_and_is_continued(hub, folder, taggers):
    setrnn.push(taggers["pcc"], PLACE)
    repository = hub.repositories["me/news"]
    hub.answer = lambda method, path: 400 if "/commit/" in path else None
    with pytest.raises(ModelError, match="has not changed"):
        setrnn.push(folder, PLACE)
    assert len(repository.messages) == 1
    assert setrnn.load(PLACE, "cpu").method == "pcc"
    n_sent, hub.answer = hub.uploads, None
    setrnn.push(folder, PLACE)
    assert hub.uploads == n_sent  # the weights were there already
    assert setrnn.load(PLACE, "cpu").method == "br"


def test_two_pushes_at_once_do_not_mix(pushed, folder, taggers):
    def commit_meanwhile(method, path):
        if "/preupload/" in path:
            repository = pushed.repositories["me/news"]
            repository.commits.append(dict(repository.files))

    pushed.answer = commit_meanwhile
    with pytest.raises(ModelError, match="changed in the meantime"):
        setrnn.push(taggers["pcc"], PLACE)
    assert version(PLACE) == version(folder)


def test_versions_stay(hub, folder, taggers):
    setrnn.push(folder, "hub:me/news@v1")
    setrnn.push(taggers["pcc"], PLACE)
    assert setrnn.load("hub:me/news@v1", "cpu").method == "br"
    assert setrnn.load(PLACE, "cpu").method == "pcc"
    with pytest.raises(ModelError, match="exists"):
        setrnn.push(folder, "hub:me/news@v1")
    with pytest.raises(ModelError, match="no revision 'v2'"):
        setrnn.load("hub:me/news@v2")
    with pytest.raises(ModelError, match="does not exist"):
        setrnn.load("hub:me/nothing")


def test_a_token_is_needed_and_never_shown(hub, folder, monkeypatch, caplog, capfd):
    for token, words in {
        "hf_SECRET": "refuses",
        READ: "write access",
    }.items():
        monkeypatch.setenv("HF_TOKEN", token)
        with pytest.raises(ModelError, match=words) as caught:
            setrnn.push(folder, PLACE)
        assert "HF_TOKEN" in str(caught.value)
        shown = str(caught.value) + caplog.text + "".join(capfd.readouterr())
        assert token not in shown
    assert hub.repositories == {}


@pytest.mark.parametrize("name", ["hub:", "hub:a/b/c", "hub:../x", "hub:me/x@", "hub:me/x@a..b"])
def test_wrong_names_are_refused_without_a_request(name, hub):
    with pytest.raises(ModelError, match="does not name a model"):
        setrnn.load(name)
    assert hub.requests == []


def test_a_file_that_was_changed_on_the_hub_is_refused(pushed):
    files = pushed.repositories["me/news"].files
    files["labels.json"] = files["labels.json"].replace(b"sport", b"spurt")
    with pytest.raises(ModelError, match=r"hub:me/news.labels\.json is damaged"):
        setrnn.load(PLACE)


def test_the_cache_is_used_offline(pushed, folder, monkeypatch):
    from huggingface_hub import constants

    version(PLACE)
    pushed.answer = lambda method, path: 503  # the hub is down
    assert version(PLACE) == version(folder)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    n_requests = len(pushed.requests)
    assert version(PLACE) == version(folder)
    for act in (lambda: setrnn.load("hub:me/other"), lambda: setrnn.push(folder, PLACE)):
        with pytest.raises(ModelError, match="HF_HUB_OFFLINE"):
            act()
    assert len(pushed.requests) == n_requests


def test_the_library_is_asked_for(monkeypatch, folder):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for act in (lambda: setrnn.load(PLACE), lambda: setrnn.push(folder, PLACE)):
        with pytest.raises(MissingExtraError, match=r"setrnn\[hf\]"):
            act()


def test_a_damaged_model_is_not_pushed(hub, folder, tmp_path):
    place = shutil.copytree(folder, tmp_path / "model")
    (place / "labels.json").write_text("[]")
    for to in (PLACE, tmp_path / "copy"):
        with pytest.raises(ModelError, match=r"labels\.json"):
            setrnn.push(place, to)
    assert hub.requests == []
    assert [each.name for each in tmp_path.iterdir()] == ["model"]


def test_workers_and_the_service_read_the_same_model(pushed, folder, taggers):
    fixed = fix_place(Path(PLACE))
    assert name_folders([PLACE, "other=hub:me/news@main"]) == {
        "news": Path(PLACE),
        "other": Path("hub:me/news@main"),
    }
    registry = Registry({"news": Path(PLACE)}, "cpu")
    registry.load()
    setrnn.push(taggers["pcc"], PLACE)
    assert version(fixed) == version(folder)
    registry.reload()
    assert registry.find(None).tagger.method == "pcc"
    assert len(split_place(fixed)[1]) == 40
