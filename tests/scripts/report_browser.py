"""Looks at a report in Chromium as a reader would: from disk, without a network.

    python3 tests/scripts/report_browser.py                      # the sample of galeras-pages
    python3 tests/scripts/report_browser.py --report study.html  # any report

Shows that the page asks for nothing, breaks no rule of its own policy and logs no error; that it
sorts, filters, copies (CSV, LaTeX, Markdown), opens a step's panel by keyboard, switches its
theme, prints all that is folded and cuts nothing; that it reads without JavaScript, from 360
pixels on, and that axe finds nothing serious in light, dark and narrow. With the sample also that
hostile texts are shown and inert. Needs Debian's Chromium, which it installs if it is root;
`--screens` keeps pictures.
"""

import argparse
import csv
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

from harness import ROOT, in_venv, pinned

PINS = {"playwright": "1.65.2", "axe-playwright-python": "0.1.8", "pypdf": "7.1.0"}
LARGEST = 5_000_000
WIDE = {"width": 1280, "height": 900}
NARROW = {"width": 360, "height": 780}
# The width of A4 within the margins of the print style sheet, in CSS pixels.
PAPER = {"width": 672, "height": 1000}

VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation",
  (event) => window.violations.push(event.violatedDirective + " " + event.blockedURI));
"""

# Cells of a table as it stands: the value of each, and whether it is seen.
CELLS = """(table) => [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) =>
  [...row.cells].map((cell) => cell.dataset.raw ?? cell.textContent))"""

# What sticks out of the page to the right, and what is cut within its own box.
CUT = """(width) => [...document.querySelectorAll("body *")].filter((element) => {
  if (element.closest(".unseen, .said, .skip, svg, [hidden], option")) return false;
  const box = element.getBoundingClientRect();
  if (!box.width || !box.height) return false;
  const style = getComputedStyle(element);
  const cuts = style.overflowX !== "visible" && element.scrollWidth > element.clientWidth + 1;
  return box.right > width + 1 || cuts;
}).map((element) => `${element.tagName}.${element.className} ${element.textContent.slice(0, 60)}`)
"""


class Checks:
    """What was checked, and what failed."""

    def __init__(self) -> None:
        self.failed = 0

    def that(self, holds: bool, what: str, found: object = "") -> None:
        """Says whether something holds, and what was found if not."""
        if not holds:
            self.failed += 1
        print(f"{'ok  ' if holds else 'FAIL'} {what}{'' if holds else f': {str(found)[:600]}'}")

    def equal(self, found: object, expected: object, what: str) -> None:
        """Says whether two values are equal."""
        self.that(found == expected, what, f"{str(found)[:280]} instead of {str(expected)[:280]}")


class Reader:
    """A browser without a network, which records what pages ask for and complain about."""

    def __init__(self, browser, path: Path, checks: Checks) -> None:
        self.browser = browser
        self.address = path.resolve().as_uri()
        self.checks = checks
        self.requests: list = []
        self.complaints: list = []

    def open(self, **context):
        """The page in a context of its own."""
        holder = self.browser.new_context(
            offline=True, permissions=["clipboard-read", "clipboard-write"], **context
        )
        page = holder.new_page()
        page.add_init_script(VIOLATIONS)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(self.address)
        return page


def check_quiet(reader: Reader, page) -> None:
    """No request, no complaint, no breach of the policy."""
    others = [
        url for url in reader.requests if url != reader.address and not url.startswith("data:")
    ]
    reader.checks.equal(others, [], "the page asks for nothing")
    reader.checks.equal(reader.complaints, [], "nothing is logged to the console")
    reader.checks.equal(page.evaluate("window.violations"), [], "the page keeps its own policy")
    reader.checks.equal(page.evaluate("window.attacked ?? null"), None, "no text ran")


def check_sorting(checks: Checks, page) -> None:
    """Every column of the first table with several rows, up and down and back."""
    block = sortable(page)
    if block is None:
        print("     no table with several rows")
        return
    table = block.locator("table")
    first = table.evaluate(CELLS)
    for column in range(table.locator("thead th").count()):
        head = table.locator("thead th").nth(column)
        is_number = "num" in (head.get_attribute("class") or "")
        wrong = []
        for order in ("ascending", "descending", "none"):
            head.locator("button.sort").click()
            rows = table.evaluate(CELLS)
            values = [row[column] for row in rows if row[column] != ""]
            empty = [row[column] == "" for row in rows]
            if head.get_attribute("aria-sort") != order:
                wrong.append(f"aria-sort is not {order}")
            if sorted(rows) != sorted(first):
                wrong.append("rows are lost")
            if order == "none":
                wrong += ["the first order is lost"] if rows != first else []
                continue
            if is_number:
                values = [float(value) for value in values]
            is_down = order == "descending"
            if (is_number or column == 0) and values != sorted(values, reverse=is_down):
                wrong.append(f"{values} are not {order}")
            if empty != sorted(empty):
                wrong.append("rows without a value are not last")
        checks.equal(wrong, [], f"column {column} sorts up, down and back")


def sortable(page):
    """The first table of the page, outside of panels, that has several rows."""
    blocks = page.locator("section.section-table .table-block")
    for at in range(blocks.count()):
        if blocks.nth(at).locator("button.sort").count():
            return blocks.nth(at)
    return None


def copied(page, button) -> str:
    """What a button puts on the clipboard."""
    page.evaluate("navigator.clipboard.writeText('nothing yet')")
    button.click()
    page.locator("#said", has_text="Copied").wait_for()
    page.evaluate("document.getElementById('said').textContent = ''")
    return page.evaluate("navigator.clipboard.readText()")


def check_copies(checks: Checks, page) -> None:
    """The copies of a table have its rows, in the order that is seen."""
    block = sortable(page)
    if block is None:
        return
    table = block.locator("table")
    rows = table.evaluate(CELLS)
    heads = [text.strip() for text in table.locator(".head-name").all_inner_texts()]

    text = copied(page, block.locator("[data-copy-table=csv]"))
    read = list(csv.reader(io.StringIO(text, newline="")))
    checks.equal(read, [heads, *rows], "CSV has the values of the table")

    text = copied(page, block.locator("[data-copy-table=latex]"))
    lines = [line.strip() for line in text.splitlines()]
    body = [line for line in lines if line.endswith(r"\\")]
    checks.equal(len(body), len(rows) + 1, "LaTeX has a line for each row")
    rules = [rule for rule in (r"\toprule", r"\midrule", r"\bottomrule") if rule in lines]
    checks.equal(len(rules), 3, "LaTeX has the rules of booktabs")
    columns = {len(re.findall(r"(?<!\\)&", line)) + 1 for line in body}
    checks.equal(columns, {len(heads)}, "every line of LaTeX has all columns")
    plain = [re.sub(r"\\[\\{}$&#%_]|\\[a-z]+(\{\})?|\$-\$|\$\\pm\$", "", line) for line in body]
    special = [line for line in plain if re.search(r"[#%_^~$\\{}<>|]", line)]
    checks.equal(special, [], "special characters of LaTeX are escaped")
    environments = (text.count(r"\begin{"), text.count(r"\end{"))
    checks.equal(environments, (2, 2), "environments of LaTeX are closed")

    text = copied(page, block.locator("[data-copy-table=markdown]"))
    lines = text.splitlines()
    checks.equal(len(lines), len(rows) + 2, "Markdown has a line for each row")
    columns = {len(re.findall(r"(?<!\\)\|", line)) - 1 for line in lines}
    checks.equal(columns, {len(heads)}, "every line of Markdown has all columns")


def check_table_filter(checks: Checks, page) -> None:
    """The filter of a table leaves the rows that have all words."""
    block = page.locator("section.section-table .table-block:has(input.table-filter)").first
    if not block.count():
        print("     no table of more than ten rows")
        return
    field, table = block.locator("input.table-filter"), block.locator("table")
    rows = table.evaluate(CELLS)
    word = rows[-1][0][-8:].lower()
    field.fill(word)
    expected = [row for row in rows if word in "\n".join(row).lower()]
    checks.equal(table.evaluate(CELLS), expected, f"a filter leaves {len(expected)} rows")
    field.fill("")
    checks.equal(table.evaluate(CELLS), rows, "without a filter all rows are there")


def check_points(checks: Checks, page) -> None:
    """Data points by text, group and score, in the order of the score."""
    form = page.locator("form.filters").first
    if not form.count():
        print("     no data points")
        return
    section = page.locator("section:has(form.filters)").first
    read = """(list) => [...list.children].filter((point) => !point.hidden).map((point) =>
      [point.id, point.dataset.scores, point.dataset.groups, point.textContent.toLowerCase()])"""

    def seen() -> list:
        found = section.locator(".points").evaluate(read)
        return [
            (key, json.loads(scores), json.loads(groups), text)
            for key, scores, groups, text in found
        ]

    everything = seen()
    word = everything[0][3].split()[0]
    form.locator("[name=text]").fill(word)
    expected = [point for point in everything if word in point[3]]
    checks.equal(
        seen(), expected, f"a text leaves {len(expected)} of {len(everything)} data points"
    )
    form.locator("[name=text]").fill("")
    for at in range(form.locator("[data-group]").count()):
        field = form.locator("[data-group]").nth(at)
        group = field.get_attribute("data-group")
        value = field.locator("option").nth(1).inner_text()
        field.select_option(label=value)
        expected = [point for point in everything if point[2].get(group) == value]
        checks.equal(seen(), expected, f"{group} {value}: {len(expected)} data points")
        field.select_option("")
    if form.locator("[name=metric]").count():
        metric = form.locator("[name=metric]").input_value()
        scores = sorted(
            point[1][metric] for point in everything if point[1].get(metric) is not None
        )
        least, most = scores[len(scores) // 4], scores[len(scores) * 3 // 4]
        form.locator("[name=least]").fill(str(least))
        form.locator("[name=most]").fill(str(most))
        form.locator("[name=order]").select_option("ascending")
        found = [point[1][metric] for point in seen()]
        expected = [score for score in scores if least <= score <= most]
        checks.equal(found, expected, f"{len(expected)} scores within a range, the worst first")
    form.locator("button[type=reset]").click()
    page.wait_for_timeout(50)
    checks.equal(seen(), everything, "clearing brings all data points back")


def check_panel(checks: Checks, page) -> None:
    """A step's panel by keyboard alone."""
    nodes = page.locator("a.node")
    if not nodes.count():
        print("     no graph")
        return
    page.locator(".diagram-view").focus()
    for _ in range(min(3, nodes.count())):
        page.keyboard.press("Tab")
    step = page.evaluate("document.activeElement.dataset?.step ?? null")
    checks.that(step is not None, "the Tab key goes from step to step")
    page.keyboard.press("Enter")
    is_open = page.evaluate("(id) => document.getElementById(id).open", step)
    checks.that(is_open, "Enter opens the panel of a step")
    inside = page.evaluate(
        "(id) => document.getElementById(id).contains(document.activeElement)", step
    )
    checks.that(inside, "the panel has the focus")
    place = page.locator(f"[id='{step}']").bounding_box()
    checks.that(0 <= place["y"] < WIDE["height"], "the panel is in view", place)
    page.keyboard.press("Escape")
    back = page.evaluate("document.activeElement.dataset?.step ?? null")
    checks.equal(back, step, "Escape leads back to the step")
    before = page.locator(".diagram-view svg").get_attribute("viewBox")
    page.locator("[data-zoom=in]").first.click()
    after = page.locator(".diagram-view svg").get_attribute("viewBox")
    checks.that(float(after.split()[2]) < float(before.split()[2]), "the graph zooms", after)
    page.locator("[data-zoom=fit]").first.click()
    nodes.last.click()
    chosen = page.evaluate("document.querySelector('.chosen-step details')?.open ?? false")
    checks.that(chosen, "a click opens the panel of a step")


def check_texts(checks: Checks, page) -> None:
    """Answers beside references, with what differs; copies are whole."""
    points = page.locator("details.point")
    comparison = points.locator(".comparison:has(del, ins)")
    if not comparison.count():
        print("     no answer that differs from its reference")
        return
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    both = comparison.first.locator("pre code")
    sides = both.evaluate_all(
        """(codes) => codes.map((code) => { const rest = code.cloneNode(true);
        rest.querySelectorAll("del, ins").forEach((change) => change.remove());
        return rest.textContent.replace(/ +/g, ""); })"""
    )
    checks.equal(len(sides), 2, "an answer stands beside its reference")
    checks.equal(sides[0], sides[-1], "without what differs the two are the same")
    button = points.locator("button[data-copy]").first
    shown = page.locator(f"[id='{button.get_attribute('data-copy')}']").text_content()
    if not button.get_attribute("data-whole"):
        checks.equal(copied(page, button), shown, "a text is copied as it is shown")
    whole = points.locator("button[data-whole]")
    kept = json.loads(page.locator("#whole-texts").text_content())
    for at in range(whole.count()):
        text = kept[whole.nth(at).get_attribute("data-whole")]
        found = copied(page, whole.nth(at)).replace("\r\n", "\n")
        checks.equal(
            found.replace("\0", " "),
            text.replace("\r\n", "\n").replace("\0", " "),
            f"{len(text)} characters are copied whole",
        )


def check_theme(checks: Checks, page) -> None:
    """Light and dark by the switch, whatever the system says."""
    shade = "Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])"
    page.locator("[data-theme-choice=dark]").click()
    checks.that(page.evaluate(shade) < 60, "the switch makes it dark", page.evaluate(shade))
    page.locator("[data-theme-choice=light]").click()
    checks.that(page.evaluate(shade) > 200, "the switch makes it light", page.evaluate(shade))
    page.locator("[data-theme-choice=auto]").click()
    pressed = page.locator("[data-theme-choice][aria-pressed=true]").count()
    checks.equal(pressed, 1, "the switch says which theme is on")


def check_print(reader: Reader, folder: Path) -> None:
    """On paper everything is open and nothing is cut, also if the page is dark."""
    from pypdf import PdfReader

    page = reader.open(viewport=PAPER, color_scheme="dark")
    pdf = folder / "report.pdf"
    page.pdf(path=pdf, format="A4")
    text = "".join(sheet.extract_text() for sheet in PdfReader(pdf).pages)
    text = unicodedata.normalize("NFKC", text)  # ligatures
    words = re.findall(r"\w+", text)
    folded = page.locator("details").count()
    summaries = page.locator("details.step h3").all_text_contents()
    squeezed = re.sub(r"\s", "", text)
    absent = [name for name in summaries if re.sub(r"\s", "", name) not in squeezed]
    reader.checks.equal(absent, [], f"{len(summaries)} panels are on paper ({len(words)} words)")
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    opened = page.locator("details[open]").count()
    reader.checks.equal(opened, folded, "everything is open on paper")
    # Wide tables lie on sheets of their own, in landscape.
    page.evaluate("document.querySelectorAll('.wide-table').forEach((block) => block.remove())")
    cut = page.evaluate(CUT, PAPER["width"])
    reader.checks.equal(cut, [], "nothing is cut on paper")
    shade = "Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])"
    reader.checks.that(page.evaluate(shade) > 240, "paper is white")
    page.context.close()


def check_axe(reader: Reader, folder: Path | None) -> None:
    """axe-core in light, dark and narrow, with everything open."""
    from axe_playwright_python.sync_playwright import Axe

    looks = {
        "light": {"viewport": WIDE, "color_scheme": "light"},
        "dark": {"viewport": WIDE, "color_scheme": "dark"},
        "narrow": {"viewport": NARROW, "color_scheme": "light"},
    }
    for name, context in looks.items():
        page = reader.open(**context)
        if folder:
            page.screenshot(path=folder / f"{name}.png", full_page=True)
        width = page.evaluate("document.documentElement.scrollWidth")
        reader.checks.equal(width, context["viewport"]["width"], f"{name}: nothing sticks out")
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        width = page.evaluate("document.documentElement.scrollWidth")
        reader.checks.equal(width, context["viewport"]["width"], f"{name}: nor when all is open")
        found = Axe().run(page).response["violations"]
        grave = [
            (rule["id"], len(rule["nodes"]), rule["nodes"][0]["html"][:200])
            for rule in found
            if rule["impact"] in ("serious", "critical")
        ]
        reader.checks.equal(grave, [], f"{name}: axe finds nothing serious")
        for rule in found:
            print(f"     axe, {rule['impact']}: {rule['id']} ({len(rule['nodes'])})")
        page.context.close()


def check_bare(reader: Reader) -> None:
    """Without JavaScript the page reads as well."""
    page = reader.open(java_script_enabled=False, viewport=WIDE)
    reader.checks.that(page.locator("h1").is_visible(), "without JavaScript there is the page")
    reader.checks.equal(
        [button.inner_text() for button in page.locator("button").all() if button.is_visible()],
        [],
        "without JavaScript there is no button that does nothing",
    )
    folded = page.query_selector_all("main details:not([open]) > summary")
    for summary in [summary for summary in folded if summary.is_visible()][:2]:
        summary.click()
        inner = summary.query_selector("xpath=following-sibling::*")
        reader.checks.that(inner.is_visible(), "without JavaScript parts unfold")
    page.context.close()


def check_hostile(checks: Checks, page) -> None:
    """The sample's attacks are seen as what they are."""
    shown = page.locator("details.point", has_text="<script>window.attacked = 4</script>")
    checks.equal(shown.count(), 1, "a title with a script is shown")
    text = page.locator("main").inner_text()
    for attack in ("</script><script>window.attacked = 1</script>", "]]>", "onerror="):
        checks.that(attack in text, f"{attack} is shown")
    names = set(page.locator(".hidden-char").all_text_contents())
    checks.that(
        {"ESC", "NUL", "BEL", "RLO", "LRI", "PDI", "ZWSP", "U+009B"} <= names,
        "hidden characters are named",
        names,
    )
    gaps = page.locator(".gap").all_text_contents()
    checks.that(
        any("1,048,0" in gap or "1,04" in gap for gap in gaps),
        "a line of a megabyte is cut in its place",
        gaps,
    )


def chromium() -> str:
    """The browser; on Debian it is installed if it is absent."""
    if not shutil.which("chromium") and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-y", "-q", "chromium"], check=False)
    return shutil.which("chromium") or sys.exit("chromium is absent: apt-get install chromium")


def main() -> None:
    """Checks a report, or the sample."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--report", type=Path, help="the report; without it, the sample is made")
    parser.add_argument("--screens", type=Path, help="keep pictures and the PDF in this folder")
    parser.add_argument("--venv", type=Path, help="the virtual environment for Playwright and axe")
    args = parser.parse_args()
    in_venv(*pinned(PINS), folder=args.venv)
    from playwright.sync_api import sync_playwright

    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="galeras-") as scratch, sync_playwright() as playwright:
        folder = args.screens or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        report = args.report
        if report is None:
            report = folder / "sample.html"
            sample = [
                "cargo",
                "run",
                "-q",
                "-p",
                "galeras-pages",
                "--example",
                "sample",
                "--",
                str(report.resolve()),
            ]
            subprocess.run(sample, cwd=ROOT, check=True)
        size = report.stat().st_size
        checks.that(size <= LARGEST, f"the page has {size / 1e6:.2f} MB, at most 5", size)
        # Without its sandbox, for containers; what it opens is a file of ours.
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        reader = Reader(browser, report, checks)
        page = reader.open(viewport=WIDE)
        check_sorting(checks, page)
        check_copies(checks, page)
        check_table_filter(checks, page)
        check_points(checks, page)
        check_panel(checks, page)
        check_theme(checks, page)
        check_texts(checks, page)
        if args.report is None:
            check_hostile(checks, page)
        check_quiet(reader, page)
        page.context.close()
        check_bare(reader)
        check_print(reader, folder)
        check_axe(reader, folder if args.screens else None)
        browser.close()
    sys.exit(f"{checks.failed} checks failed" if checks.failed else 0)


if __name__ == "__main__":
    main()
