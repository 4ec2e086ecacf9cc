"""CSV files on the page: any columns, any dialect, and the rules of the command line."""

import re

import pytest

from page.page_site import chips, drop, expect, settled, wait_for
from setrnn.data.read import BadRows, ReadOptions, open_dataset
from setrnn.data.read.write import neutralise

CATALOGUE = (
    "show_id,title,description,listed_in\n"
    's1,Velmara,"A team, a goal",Dramas\n'
    's2,Palmeda,"A vote, a law","Dramas, Comedies, Sports"\n'
    's3,Kotamira,A storm,"Sports, Dramas"\n'
    "s4,Ostrany,A strike,\n"
    "s5,Dravona,A match,Comedies\n"
    "s6,Merrow,A film,Comedies\n"
    "s7,broken\n"
)


def choose(tab, name, content):
    """Drop a table, and wait for the question which columns it has."""
    drop(tab, name, content)
    tab.wait_for_selector("#table[open]")


def preview(tab):
    """Return the labels of each document of the preview."""
    return [
        row.locator(".tag").all_text_contents() for row in tab.locator("#table-preview li").all()
    ]


def test_columns_and_separator_are_chosen_with_a_preview_of_five_documents(tab):
    choose(tab, "catalogue.csv", CATALOGUE)
    assert preview(tab) == [
        ["Dramas"],
        ["Dramas", "Comedies", "Sports"],
        ["Sports", "Dramas"],
        [],
        ["Comedies"],
    ]
    assert tab.locator("#table-separator").input_value() == ","
    expect(tab.locator("#table-found")).to_contain_text("6 documents, 3 labels: Dramas (3)")
    expect(tab.locator("#table-left")).to_have_text(
        "1 line skipped. Line 8: 2 cells, the header has 4."
    )
    tab.check("#table-texts >> text=title")
    expect(tab.locator("#table-preview li").first).to_contain_text("s1 Velmara A team, a goal")
    tab.keyboard.press("Enter")
    wait_for(tab, "s1")
    assert tab.text_content("#reading") == "Velmara\nA team, a goal"
    assert "Dramas" in chips(tab, "accepted")
    expect(tab.locator("#queue-left")).to_have_text("6 left")


def test_no_cell_of_several_labels_becomes_one_label_by_accident(tab):
    choose(tab, "catalogue.csv", CATALOGUE)
    tab.select_option("#table-separator", ";")
    expect(tab.locator("#table-doubt")).to_contain_text("one label")
    expect(tab.locator("#table-doubt")).to_contain_text("2 cells have commas")
    expect(tab.locator("#table-open")).to_be_disabled()
    tab.select_option("#table-separator", "none")  # the person says so
    expect(tab.locator("#table-open")).to_be_enabled()
    assert preview(tab)[1] == ["Dramas, Comedies, Sports"]
    tab.select_option("#table-separator", "other")
    expect(tab.locator("#table-open")).to_be_disabled()
    tab.locator("#table-other").press_sequentially(", ")
    assert preview(tab)[1] == ["Dramas", "Comedies", "Sports"]
    tab.select_option("#table-labels", label="the file has no labels")
    expect(tab.locator("#table-separator")).to_be_hidden()
    expect(tab.locator("#table-found")).to_contain_text("without labels")
    for column in tab.locator("#table-texts :checked").all():
        column.uncheck()
    expect(tab.locator("#table-doubt")).to_contain_text("column of text")
    tab.keyboard.press("Escape")
    expect(tab.locator("#table")).to_be_hidden()
    assert tab.is_hidden("#queue")


def test_a_file_in_another_encoding_is_read_after_a_look(tab):
    choose(tab, "café.csv", "text;tags\n“Café” à Kotamira;été|déjà\n".encode("cp1252"))
    expect(tab.locator("#table-preview li")).to_contain_text("“Café” à Kotamira")
    assert preview(tab) == [["été", "déjà"]]
    # The command line refuses such a file, and names the likely encoding; so does the page.
    assert tab.locator("#table-encoding").input_value() == ""
    expect(tab.locator("#table-encoding")).to_be_visible()
    expect(tab.locator("#table-doubt")).to_contain_text("probably in Windows-1252")
    expect(tab.locator("#table-open")).to_be_disabled()
    tab.select_option("#table-delimiter", "|")
    expect(tab.locator("#table-doubt")).to_contain_text("probably in Windows-1252")
    tab.select_option("#table-encoding", "utf-8")
    expect(tab.locator("#table-doubt")).to_contain_text("not a text in utf-8")
    expect(tab.locator("#table-open")).to_be_disabled()
    tab.select_option("#table-encoding", "cp1252")
    tab.select_option("#table-delimiter", "|")
    expect(tab.locator("#table-texts label")).to_have_count(1)
    tab.select_option("#table-delimiter", ";")
    tab.click("#table-open")
    settled(tab)
    assert tab.text_content("#reading") == "“Café” à Kotamira"


# What the page and the command line must read alike: a name, the bytes, and the options.
FILES = {
    "plain.csv": (b"id,text,labels\n1,one,a; b\n2,two,\n\n3,three,c\n", {}),
    "semicolons.csv": (b'id;text;labels\r\n1;"one; two, three";a|b\r\n', {"label_separator": "|"}),
    "tabs.csv": (b"id\ttext\tlabels\n1\tone, two\ta;b\n", {}),
    "bars.csv": (b"id|text|labels\n1|one, two|a;b\n2|three|\n", {}),
    "hint.csv": (b"sep=;\r\nid;text;labels\r\n1;one;a\r\n", {}),
    "tabs.tsv": (b'text\tlabels\n"a ""b""\n c"\tx;y\n', {}),
    "marked.csv": ("text,labels\nÀ la carte,é\n".encode("utf-8-sig"), {}),
    "wide.csv": ("text,labels\nÀ la carte,é;è\n".encode("utf-16"), {}),
    "western.csv": ("text,labels\n“À la carte”,é;è\n".encode("cp1252"), {"encoding": "cp1252"}),
    "controls.csv": (b"text,labels\nA\x85b\xe9,x\n", {"encoding": "latin-1"}),
    "mixed.csv": ("text,labels\né,a\n".encode() + b"\xe9,b\n", {"encoding": "cp1252"}),
    "broken.csv": (b'text,labels\n"x"y,z\nd,e,f\ng\nh,i;;j\nk,l\n', {}),
    "lists.csv": (b'text,labels\na,"[\'x\', ""it\'s""]"\nb,"[""y; z""]"\nc,[]\n', {}),
    "one.csv": (b'text,labels\na,"x, y"\nb,"z, x"\n', {"label_separator": "none"}),
    "tags.csv": (b"text,labels\na,<x><y>\nb,<x>\nc,a<b>\n", {}),
    "empty parts.csv": (b"text,labels\na,x; ;y;\nb,;\nc,\"['', 'z']\"\n", {}),
    "spaces.csv": (b'text,labels\na,"  x   y "\n', {"label_separator": " "}),
}


@pytest.fixture
def read_on_page(tab):
    """Read tables by the rules of the page: {name: [[text, labels], ...]} and the skipped lines."""

    def read(files):
        return tab.evaluate(
            """async (files) => {
                const { documentsOf, guessChoice, tableOf } = await import("/page/table.js");
                return files.map(([name, bytes, given]) => {
                    const reading = given.encoding ? { encoding: given.encoding } : {};
                    const table = tableOf(name, new Uint8Array(bytes), reading);
                    const choice = guessChoice(table);
                    choice.separator = given.label_separator ?? ";";
                    const { documents, left } = documentsOf(table, choice);
                    const lines = [...left.values()].flat().sort((a, b) => a - b);
                    return [documents.map(({ text, labels }) => [text, labels]), lines];
                });
            }""",
            [[name, list(content), options] for name, (content, options) in files.items()],
        )

    return read


def test_the_page_reads_tables_as_the_command_line_does(read_on_page, tmp_path):
    for (name, (content, options)), found in zip(FILES.items(), read_on_page(FILES), strict=True):
        (tmp_path / name).write_bytes(content)
        bad_rows = BadRows("skip")
        reading = ReadOptions(**options, unlabelled_rows="empty")
        dataset = open_dataset(tmp_path / name, reading)
        documents = [
            [each.text, list(each.labels)] for each in dataset.require("train").read(bad_rows)
        ]
        lines = [int(re.search(r"line (\d+)", message)[1]) for message in bad_rows.first]
        assert (name, found) == (name, [documents, lines])


def test_the_page_and_the_command_line_neutralise_the_same_cells(tab):
    cells = ["=1+1", "+1", "-5.2", "-.5", "-1e3", "-1,5", "- 5", "@a", "\ta", "\uff1d1", "a=b", ""]
    cells += ["x;=1+1", "x\t@a;-2;-b", 'x;"=1', "a\r\n=1;\uff0b2", "\n=1", "x; =1;;"]
    found = tab.evaluate(
        """async (cells) => {
            const { neutralise } = await import("/page/rows.js");
            return cells.map(neutralise);
        }""",
        cells,
    )
    assert found == [neutralise(each) for each in cells]


def test_a_table_is_exported_with_its_columns_and_no_formula_runs(tab, tmp_path):
    table = (
        "id,text,price,note,tags\n"
        'n1,=HYPERLINK("evil"),-5,-x,"sport, football"\n'
        "n2,@now,+3,+x,\n"
        'n3,"say ""hi"", you","1,5",,\n'
    )
    choose(tab, "shop.csv", table)
    tab.click("#table-open")
    for name in ("n1", "n2", "n3"):
        wait_for(tab, name)
        if name == "n3":
            tab.fill("#search", "brand, new")
            tab.click("#found li >> text=brand, new")
            settled(tab)
        tab.keyboard.press("Escape")
        tab.locator("#search").blur()
        tab.keyboard.press("d")
    expect(tab.locator("#export")).to_have_text("Export 3")
    with tab.expect_download() as waiting:
        tab.click("#export-csv")
    assert waiting.value.suggested_filename == "shop-tagged.csv"
    waiting.value.save_as(tmp_path / "shop.csv")
    content = (tmp_path / "shop.csv").read_bytes().decode("utf-8-sig")
    header, first, second, third = content.splitlines()
    assert header == "id,text,price,note,tags,reviewed"
    assert first.startswith('n1,"\'=HYPERLINK(""evil"")",-5,\'-x,')
    assert second.startswith("n2,'@now,+3,'+x,")
    assert third.startswith('n3,"say ""hi"", you","1,5",,')
    assert all(row.endswith(",true") for row in (first, second, third))
    expect(tab.locator("#queue-hint")).to_contain_text("separated by “;”")
    rows = list(
        open_dataset(tmp_path / "shop.csv", ReadOptions(labels_field="tags"))
        .require("train")
        .read(BadRows())
    )
    assert {"sport", "football"} <= set(rows[0].labels)
    assert "brand, new" in rows[2].labels
    assert rows[2].text == 'say "hi", you'


def test_the_columns_of_the_training_data_are_chosen_where_the_file_has_them(tab):
    kept = {"text_field": "title, note", "labels_field": "kind", "id_field": "nr"}
    found = tab.evaluate(
        """async (kept) => {
            const { guessChoice } = await import("/page/table.js");
            const choose = (header) => {
                const { text, labels, id } = guessChoice({ header, rows: [] }, kept);
                return [text, labels, id];
            };
            const other = ["id", "text", "note", "kind", "title", "nr"];
            return [choose(other), choose(["text", "tags", "nr"])];
        }""",
        kept,
    )
    assert found == [[[4, 2], 3, 5], [[0], 1, 2]]
