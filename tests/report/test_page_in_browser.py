"""The page in Debian's Chromium: no error, no request, no empty figure; tables sort, it fits."""

import shutil

import pytest

CHROMIUM = shutil.which("chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]  # as root, in a container

if CHROMIUM is None:
    pytest.skip("chromium is not installed", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def opened(browser, built):
    """The page, loaded once, and the list of what went wrong or was requested."""
    file = built.page
    troubles = []
    tab = browser.new_page()
    tab.on("console", lambda message: troubles.append(message.text))
    tab.on("pageerror", lambda error: troubles.append(str(error)))
    tab.on("dialog", lambda dialog: troubles.append(dialog.message))
    tab.on(
        "request",
        lambda request: request.url != file.as_uri() and troubles.append(request.url),
    )
    tab.goto(file.as_uri())
    yield tab, troubles
    tab.close()


@pytest.fixture
def tab(opened):
    """The page; after each test, nothing may have gone wrong or been requested."""
    page, troubles = opened
    yield page
    assert troubles == []


def column(tab, table, number):
    """Return the values of a column, from top to bottom."""
    return tab.eval_on_selector_all(
        f"{table} tbody tr",
        "(rows, number) => rows.map((row) => row.cells[number].dataset.value ?? null)",
        number,
    )


def test_a_link_to_a_folded_part_opens_it(tab):
    assert not tab.locator("#table-labels").is_visible()
    tab.evaluate("location.hash = 'table-labels'")
    tab.locator("#table-labels").wait_for(state="visible")


def test_no_figure_is_empty(tab):
    tab.eval_on_selector_all("details", "(all) => all.forEach((each) => { each.open = true; })")
    figures = tab.eval_on_selector_all(
        "figure svg",
        """(all) => all.map((svg) => {
            const box = svg.getBoundingClientRect();
            const marks = [...svg.querySelectorAll("path, line, use, circle, rect, text")]
                .filter((mark) => {
                    const size = mark.getBoundingClientRect();
                    return size.width + size.height > 0 && !mark.closest("defs, clipPath");
                });
            return [box.width, box.height, marks.length];
        })""",
    )
    assert len(figures) >= 3
    for width, height, n_marks in figures:
        assert width > 200
        assert height > 100
        assert n_marks > 10


def test_a_table_sorts_by_click(tab):
    table, header = "#table-best-rules", "#table-best-rules thead th:nth-child(2)"
    tab.click(f"{header} button")
    assert tab.get_attribute(header, "aria-sort") == "descending"
    falling = [float(each) for each in column(tab, table, 1) if each is not None]
    assert falling == sorted(falling, reverse=True)
    assert len(set(falling)) > 3
    tab.click(f"{header} button")
    assert tab.get_attribute(header, "aria-sort") == "ascending"
    assert [float(each) for each in column(tab, table, 1) if each is not None] == falling[::-1]
    assert tab.locator(f"{table} [aria-sort]").count() == 1
    # what is missing is last, whichever way
    first = f"document.querySelector('{table} tbody tr').cells[1]"
    tab.evaluate(f"{first}.removeAttribute('data-value')")
    for _ in range(2):
        tab.click(f"{header} button")
        values = column(tab, table, 1)
        assert values[-1] is None
        assert None not in values[:-1]
