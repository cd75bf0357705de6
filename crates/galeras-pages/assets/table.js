// Tables: sorted by a click on a heading, filtered by words, copied as CSV, LaTeX and Markdown.
const galerasTable = (() => {
  const collator = new Intl.Collator("en", { numeric: true });

  /** The value of a cell, as it is in the table; what is shown may be rounded or cut. */
  const raw = (cell) => cell.dataset.raw ?? cell.textContent;

  /** The value of a cell for people: numbers as they are shown. */
  function shown(cell) {
    if (cell.classList.contains("absent")) return "";
    return cell.classList.contains("num") ? cell.textContent : raw(cell);
  }

  /** Compares two cells; a cell without a value comes last in both directions. */
  function compare(a, b, isNumber, sign) {
    const [x, y] = [raw(a), raw(b)];
    const [noX, noY] = [a.classList.contains("absent"), b.classList.contains("absent")];
    if (noX || noY) return Number(noX) - Number(noY);
    if (isNumber) {
      const [p, q] = [Number(x), Number(y)];
      if (Number.isNaN(p) || Number.isNaN(q)) return Number(Number.isNaN(p)) - Number(Number.isNaN(q));
      return sign * (p - q);
    }
    return sign * collator.compare(x, y);
  }

  function makeSortable(table) {
    const body = table.tBodies[0];
    const original = [...body.rows];
    if (original.length < 2) return;
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const name = head.querySelector(".head-name");
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...name.childNodes);
      name.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const next = { none: "ascending", ascending: "descending", descending: "none" };
        const order = next[head.getAttribute("aria-sort")];
        for (const other of heads) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", order);
        const isNumber = head.classList.contains("num");
        const sign = order === "descending" ? -1 : 1;
        const rows = order === "none"
          ? original
          : [...original].sort((a, b) => compare(a.cells[column], b.cells[column], isNumber, sign));
        body.append(...rows);
        const said = order === "none" ? "in their first order" : `sorted by ${button.textContent}, ${order}`;
        galerasPage.say(`Rows ${said}.`);
      });
    });
  }

  function makeFilterable(block, table) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length <= 10) return;
    const label = document.createElement("label");
    const input = document.createElement("input");
    const count = document.createElement("span");
    input.type = "search";
    input.className = "table-filter";
    input.spellcheck = false;
    count.setAttribute("role", "status");
    label.append("Filter rows ", input);
    block.querySelector(".tools").prepend(label, count);
    const texts = rows.map((row) => [...row.cells].map(raw).join("\n").toLowerCase());
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let matching = 0;
      rows.forEach((row, at) => {
        row.hidden = !words.every((word) => texts[at].includes(word));
        matching += row.hidden ? 0 : 1;
      });
      count.textContent = words.length ? `${matching} of ${rows.length} rows` : "";
    });
  }

  function content(table) {
    const heads = [...table.tHead.rows[0].cells];
    const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
    return {
      names: heads.map((head) => head.querySelector(".head-name").textContent.trim()),
      numbers: heads.map((head) => head.classList.contains("num")),
      rows: rows.map((row) => [...row.cells]),
      caption: table.caption?.classList.contains("unseen") ? "" : table.caption?.textContent.trim() ?? "",
    };
  }

  /** CSV as RFC 4180 has it, with the values of the table. */
  function csv(table) {
    const field = (text) => (/^\s|[",\r\n]|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const lines = [table.names, ...table.rows.map((row) => row.map(raw))];
    return lines.map((line) => `${line.map(field).join(",")}\r\n`).join("");
  }

  const LATEX = {
    "\\": "\\textbackslash{}", "{": "\\{", "}": "\\}", "$": "\\$", "&": "\\&", "#": "\\#", "%": "\\%",
    "_": "\\_", "^": "\\textasciicircum{}", "~": "\\textasciitilde{}", "<": "\\textless{}",
    ">": "\\textgreater{}", "|": "\\textbar{}", "\"": "\\textquotedbl{}", "−": "$-$", "±": "$\\pm$",
    "∞": "$\\infty$", "…": "\\ldots{}", "–": "--", "⏎": " ",
  };

  function latexText(text) {
    return text.replace(/\s+/g, " ").replace(/[\\{}$&#%_^~<>|"−±∞…–⏎]/g, (c) => LATEX[c]);
  }

  /** A floating table with the rules of booktabs. */
  function latex(table, file) {
    const line = (texts) => `    ${texts.map(latexText).join(" & ")} \\\\\n`;
    const label = file.replace(/[^A-Za-z0-9:-]+/g, "-");
    const caption = table.caption ? `  \\caption{${latexText(table.caption)}}\n` : "";
    return "% \\usepackage{booktabs}, \\usepackage[T1]{fontenc}\n\\begin{table}\n  \\centering\n"
      + `${caption}  \\label{tab:${label}}\n`
      + `  \\begin{tabular}{${table.numbers.map((is) => (is ? "r" : "l")).join("")}}\n    \\toprule\n`
      + `${line(table.names)}    \\midrule\n`
      + table.rows.map((row) => line(row.map(shown))).join("")
      + "    \\bottomrule\n  \\end{tabular}\n\\end{table}\n";
  }

  function markdown(table) {
    const cell = (text) => text.replace(/\s+/g, " ").replace(/[\\`*_<>|[\]~]/g, "\\$&");
    const line = (texts) => `| ${texts.map(cell).join(" | ")} |\n`;
    const rule = `|${table.numbers.map((is) => (is ? " ---: |" : " --- |")).join("")}\n`;
    return line(table.names) + rule + table.rows.map((row) => line(row.map(shown))).join("");
  }

  const FORMATS = { csv: [csv, "CSV"], latex: [latex, "LaTeX"], markdown: [markdown, "Markdown"] };

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button[data-copy-table]");
    if (!button) return;
    const block = button.closest(".table-block");
    const table = content(block.querySelector("table"));
    const [write, name] = FORMATS[button.dataset.copyTable];
    const cut = table.rows.flat().filter((cell) => "cut" in cell.dataset).length;
    const warning = cut ? `; ${cut} long cells only as far as they are shown` : "";
    galerasCopy.copy(write(table, block.dataset.file), `${table.rows.length} rows as ${name}${warning}`);
  });

  for (const block of document.querySelectorAll(".table-block")) {
    const table = block.querySelector("table");
    if ("byServer" in block.dataset) continue;
    makeSortable(table);
    makeFilterable(block, table);
  }
  return { csv, latex, markdown, content };
})();
