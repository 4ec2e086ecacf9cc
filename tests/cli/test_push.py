"""`setrnn push`, and commands that read what it wrote."""

import shutil


def test_every_kind_of_place_is_shown_alike(setrnn, hub, br_model, tmp_path):
    copy = tmp_path / "news"
    assert setrnn("push", br_model, copy).code == 0
    assert setrnn("push", copy, "hub:me/news", "--private").code == 0
    shown = [setrnn("show", place).out for place in (br_model, copy, "hub:me/news")]
    assert shown[0].startswith("# A tagger of")
    assert shown[0] == shown[1] == shown[2]


def test_several_models_need_a_place_for_each(setrnn, trained, tmp_path):
    other = shutil.copytree(trained, tmp_path / "more" / "model")
    for models, to in (([trained, "b"], "c"), ([trained, other], f"{tmp_path}/c/")):
        failed = setrnn("push", *models, to)
        assert failed.code == 1
        assert len(failed.error_lines) == 1
    assert not (tmp_path / "c").exists()


def test_a_model_on_the_hub_is_not_calibrated(setrnn, hub, trained, corpus):
    setrnn("push", trained, "hub:me/news")
    failed = setrnn("calibrate", "hub:me/news", corpus)
    assert failed.code == 1
    assert "setrnn push" in failed.error_lines[0]
