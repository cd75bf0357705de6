//! The content of pages: numbers, differences, tables, the structure of a report.

use std::ops::Range;

use serde_json::json;

use super::{between, from_json};
use crate::difference::words;
use crate::number::{bytes, count, estimate, number, p_value, seconds};
use crate::page::policy;
use crate::parts::Parts;
use crate::report;
use crate::table::table;

#[test]
fn numbers_have_four_digits_that_say_something() {
    let values = "0 -0 1 -2.5 0.0123456 12.3456 123.456 1234.5 9999.6 1234567.8 1.23456e-9 -3e200 \
        0.0001 NaN inf -inf";
    let texts = values.split(' ').map(|value| number(value.parse().unwrap()));
    let expected = "0 0 1 −2.5 0.01235 12.35 123.5 1234.5 10,000 1,234,568 1.235e−9 −3e200 \
        0.0001 NaN ∞ −∞";
    assert_eq!(texts.collect::<Vec<_>>().join(" "), expected);
}

#[test]
fn estimates_p_values_counts_times_and_sizes_read_as_in_a_paper() {
    assert_eq!([-0.0421, 1.21, 1e-7].map(estimate), ["−0.042", "1.210", "1e−7"]);
    assert_eq!([1e-9, 0.0321, 0.41].map(p_value), ["< 0.001", "= 0.032", "= 0.41"]);
    assert_eq!([0, 999, 1000, 12_345_678].map(count), ["0", "999", "1,000", "12,345,678"]);
    let durations = [0.04, 0.42, 12.4, 192.0, 7500.0].map(seconds);
    assert_eq!(durations, ["40 ms", "0.4 s", "12 s", "3 min 12 s", "2 h 05 min"]);
    assert_eq!([12, 1500, 5_000_000].map(bytes), ["12 bytes", "2 kB", "5.0 MB"]);
}

fn texts<'a>(text: &'a str, ranges: &[Range<usize>]) -> Vec<&'a str> {
    ranges.iter().map(|range| &text[range.clone()]).collect()
}

#[test]
fn words_that_differ_are_found_within_lines_that_are_alike() {
    for (old, new, removed, added) in [
        (
            "def f(x):\n    return x + one\n",
            "def f(x):\n    return y + one\n",
            vec!["x"],
            vec!["y"],
        ),
        ("a b\n", "a b\n", vec![], vec![]),
        ("", "", vec![], vec![]),
        ("", "a\n", vec![], vec!["a\n"]),
        ("a\n", "a\nb c\n", vec![], vec!["b c\n"]),
    ] {
        let (gone, come) = words(old, new);
        assert_eq!((texts(old, &gone), texts(new, &come)), (removed, added), "{old:?}, {new:?}");
    }
}

#[test]
fn taking_the_changes_out_leaves_the_same_text_on_both_sides() {
    // Made from a small alphabet by a linear congruential generator, so that much is alike.
    let mut state = 7_u64;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ["a", "bé", " ", "\n", "(", "\t", "x1"][(state >> 33) as usize % 7]
    };
    let mut text = || (0..60).map(|_| word()).collect::<String>();
    for _ in 0..300 {
        let (old, new) = (text(), text());
        let (gone, come) = words(&old, &new);
        let without = |text: &str, ranges: &[Range<usize>]| {
            let mut rest = String::new();
            let mut at = 0;
            for range in ranges {
                assert!(at <= range.start && range.start < range.end, "in order and apart");
                rest.push_str(&text[at..range.start]);
                at = range.end;
            }
            rest.push_str(&text[at..]);
            rest
        };
        // Spaces between changes count as changed with them.
        let bare = |text: String| text.replace(' ', "");
        assert_eq!(bare(without(&old, &gone)), bare(without(&new, &come)));
    }
}

#[test]
fn texts_of_thousands_of_lines_count_as_different_altogether() {
    let old = "a\n".repeat(5_000);
    let whole = std::iter::once(0..old.len()).collect();
    assert_eq!(words(&old, "b\n"), (whole, std::iter::once(0..2).collect()));
}

fn html(value: serde_json::Value) -> String {
    let block = serde_json::from_value(value).unwrap();
    table(&mut Parts::default(), &block).unwrap().0
}

#[test]
fn numbers_of_a_column_have_the_same_decimals_and_keep_their_values() {
    let html = html(json!({
        "columns": [{ "name": "x" }, { "name": "y" }, { "name": "z" }],
        "rows": [
            ["a", 0.123456, 0.5], ["b", -12.5, 0.25], ["c", 1e-9, -0.125], ["d", null, 0], ["e", 1234567, 0.1234567],
        ],
    }));
    // Means between 0.4972 and 130.2 with one number of decimals.
    let means = self::html(json!({
        "columns": [{ "name": "score" }, { "name": "median" }],
        "rows": [["a", 0.5011], ["b", 0.4976], ["c", 0.4972], ["d", 130.25]],
    }));
    for cell in [">0.501<", ">0.498<", ">0.497<", ">130.250<"] {
        assert!(means.contains(cell), "{cell} in {means}");
    }
    // Estimates have the decimals of their standard errors: 0.0045, 0.0051 and 1.2.
    let estimates = self::html(json!({
        "columns": [{ "name": "outcome" }, { "name": "estimate" }, { "name": "standard_error" }],
        "rows": [["a", 0.5, 0.0045], ["b", 0.49721, 0.0051], ["c", -12.27, 1.2]],
    }));
    for cell in [">0.5000<", ">0.4972<", ">−12.3<"] {
        assert!(estimates.contains(cell), "{cell} in {estimates}");
    }
    for cell in [
        "<td class=\"num\" data-raw=\"0.123456\">0.1235</td>",
        "<td class=\"num\" data-raw=\"-12.5\">−12.5</td>",
        "<td class=\"num\" data-raw=\"1e-9\">1e−9</td>",
        "<td class=\"absent num\" data-raw=\"\">–</td>",
        "<td class=\"num\" data-raw=\"1234567\">1,234,567</td>",
        "<th scope=\"row\">a</th>",
        "<td class=\"num\" data-raw=\"0.5\">0.5000</td>",
        "<td class=\"num\" data-raw=\"-0.125\">−0.1250</td>",
    ] {
        assert!(html.contains(cell), "{cell} in {html}");
    }
}

#[test]
fn a_part_of_a_table_says_what_part_it_is() {
    let rows: Vec<_> = (0..600).map(|i| json!([i])).collect();
    let of = |rows: serde_json::Value| json!({ "columns": [{ "name": "n" }], "rows": rows });
    let (mut all, mut more) = (of(json!(rows)), of(json!([[1]])));
    all["choice"] = json!("the first by id");
    (more["total"], more["source"]) = (json!(12000), json!("s"));
    assert_eq!(html(all.clone()).matches("<tr>").count(), 501);
    for (table, words) in [
        (all, "Shown: 500 of 600 rows (the first by id)."),
        (more, "Shown: 1 of 12,000 rows. From step s."),
        (of(json!([])), "The table has no rows."),
        (json!({}), "The table has no rows."),
    ] {
        assert!(html(table).contains(words), "{words}");
    }
}

#[test]
fn long_cells_are_cut_and_kept_for_copying_up_to_a_size() {
    let html = html(
        json!({ "columns": [{ "name": "n" }, { "name": "m" }], "rows": [["a".repeat(400), "b".repeat(4000)], ["two\nlines", "x"]] }),
    );
    assert!(html.contains("… 100 more characters"));
    assert!(html.contains(&format!("data-raw=\"{}\"", "a".repeat(400))));
    assert!(html.contains("<td data-cut>") && html.contains("… 3,700 more characters"));
    assert!(html.contains("data-raw=\"two\nlines\">two⏎lines</th>"));
}

#[test]
fn headings_and_rows_of_a_served_table_lead_to_pages_beside_it_only() {
    let html = html(json!({
        "columns": [{ "name": "n", "sort_link": "?sort=n", "sorted": "descending" }, { "name": "m", "sort_link": "https://evil.example/" }],
        "rows": [[1, 2], [3, 4], [5, 6]], "row_links": ["row/1", "javascript:x", "//evil.example"],
    }));
    assert!(html.contains("data-by-server") && html.contains("aria-sort=\"descending\""));
    assert!(html.contains("<a href=\"?sort=n\">n</a>") && html.contains("<a href=\"row/1\">1</a>"));
    assert_eq!(html.matches("<a ").count(), 2, "{}", between(&html, "<thead>", "</tbody>"));
}

#[test]
fn the_answer_comes_first_then_the_steps_then_the_rest() {
    let page = report(&from_json(json!({
        "title": "T", "workflow": "w", "question": "Why *so*?",
        "sections": [
            { "kind": "findings", "findings": [{ "sentence": "S." }] },
            { "kind": "table", "title": "Scores" },
            { "kind": "reproduce" },
        ],
        "graph": { "steps": [{ "name": "a" }] },
    })))
    .unwrap();
    let headings: Vec<&str> =
        page.split("<h2 ").skip(1).map(|rest| between(rest, ">", "</h2>")).collect();
    assert_eq!(headings, ["Findings", "Steps", "Scores", "How to reproduce this"]);
    assert_eq!(page.matches("<h1>T</h1>").count(), 1);
    assert!(page.contains("<p>Why <em>so</em>?</p>"));
    let nav = between(&page, "<nav class=\"contents\"", "</nav>");
    assert_eq!(nav.matches("<a href=\"#section-").count(), 4);
}

#[test]
fn the_graph_stands_where_the_report_says() {
    let page = report(&from_json(json!({
        "sections": [{ "kind": "text", "title": "A" }, { "kind": "steps" }, { "kind": "text", "title": "B" }],
        "graph": { "steps": [{ "name": "gen[model=a]" }, { "name": "gen[model=b]" }] },
    })))
    .unwrap();
    let at = |text: &str| page.find(text).unwrap();
    assert!(at(">A</h2>") < at(">Steps</h2>") && at(">Steps</h2>") < at(">B</h2>"));
    assert_eq!(page.matches(">Steps</h2>").count(), 1);
    assert_eq!(page.matches("<details class=\"step\"").count(), 2);
}

#[test]
fn ids_are_unique_and_links_within_the_page_lead_somewhere() {
    let name = "gen[model=a b/ü]";
    let page = report(&from_json(json!({
        "missing": [{ "step": name, "command": "galeras run" }, { "step": "unknown" }],
        "sections": [
            { "kind": "table", "source": name, "columns": [{ "name": "x" }], "rows": [[1]] },
            { "kind": "rows", "points": [{ "id": "1", "answer": "a", "reference": "b", "trace": [{ "step": name }] }, { "id": "1", "answer": "a" }] },
            { "kind": "attrition", "stages": [{ "step": name, "rows": 3 }] },
            { "kind": "reproduce", "commands": [{ "value": "x" }, { "value": "y" }] },
        ],
        "graph": { "steps": [{ "name": name, "arguments": "a: 1" }, { "name": "b" }], "arrows": [{ "from": name, "to": "b" }] },
    })))
    .unwrap();
    let body = &page[page.find("<body>").unwrap()..page.rfind("<script>").unwrap()];
    let mut ids: Vec<&str> =
        body.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "an id is there twice");
    for name in ["href=\"#", "data-copy=\"", "aria-labelledby=\"", "data-points=\"", "data-step=\""]
    {
        for rest in body.split(name).skip(1) {
            let target = rest.split('"').next().unwrap();
            assert!(ids.contains(&target), "{name}{target} is nowhere");
        }
    }
}

#[test]
fn the_policy_lets_the_script_of_the_page_run_and_nothing_else() {
    let page = report(&from_json(json!({ "title": "T" }))).unwrap();
    let found = between(&page, "Content-Security-Policy\" content=\"", "\"").replace("&#39;", "'");
    assert!(found.starts_with("default-src 'none'; script-src 'sha256-"), "{found}");
    assert!(!found.contains("script-src 'unsafe-inline'") && !found.contains("connect-src"));
    let script = between(&page, "<script>", "</script>");
    assert_eq!(found, policy(script, false), "the hash is that of the script");
    assert!(policy(script, true).contains("connect-src 'self'"));
    // RFC 4648 by way of a hash that is published: that of the empty text.
    assert!(policy("", false).contains("'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"));
}

#[test]
fn an_empty_report_and_strange_numbers_make_a_page() {
    assert!(report(&from_json(json!({}))).unwrap().contains("</html>"));
    let page = report(&from_json(json!({
        "graph": { "steps": [{ "name": "" }], "arrows": [{}, { "from": "nowhere", "to": "" }] },
        "sections": [
            { "kind": "findings", "findings": [{ "effect": 0.0, "low": -1e308, "high": 1e308 }, { "effect": -1.0, "low": -2.0, "high": 1.0 }] },
            { "kind": "attrition", "stages": [{ "rows": 0, "lost": 0 }] },
            { "kind": "steps" },
        ],
    })))
    .unwrap();
    for word in ["NaN", "inf"] {
        let body = between(&page, "<main", "</main>");
        assert!(!body.contains(word), "{word}");
    }
}

#[test]
fn what_is_incomplete_or_refused_is_said_in_words() {
    let page = report(&from_json(json!({
        "missing": [{ "step": "a", "reason": "not computed yet", "command": "galeras run w.yaml --select a" }, { "step": "b", "reason": "failed" }],
        "sections": [{ "kind": "findings", "findings": [
            { "sentence": "No effect is given.", "status": "refused" },
            { "sentence": "T raised y by 0.25.", "effect": 0.25, "low": 0.1, "high": 0.4, "verdict": "different" },
        ] }, { "kind": "diagnostics" }],
    })))
    .unwrap();
    // The numbers of a sentence are not repeated.
    let findings = between(&page, "<ol class=\"findings\">", "</ol>");
    assert!(findings.contains(">different<") && !findings.contains(">effect<"), "{findings}");
    for words in [
        "2 steps have no results as the workflow stands now",
        "galeras run w.yaml --select a</code>",
        "No effect is given.",
        "<span class=\"tag\">refused</span>",
        "Nothing was refused, and nothing is in doubt.",
    ] {
        assert!(page.contains(words), "{words}");
    }
}
