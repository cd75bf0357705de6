//! Tables as they are shown.

use serde_json::json;

use super::between;
use crate::model::TableBlock;
use crate::{Parts, table};

fn html(value: serde_json::Value) -> String {
    let block: TableBlock = serde_json::from_value(value).unwrap();
    table(&mut Parts::default(), &block).unwrap().as_str().to_string()
}

#[test]
fn numbers_of_a_column_have_the_same_decimals_and_keep_their_values() {
    let html = html(json!({
        "columns": [{ "name": "x" }, { "name": "y" }, { "name": "z" }],
        "rows": [
            ["a", 0.123456, 0.5], ["b", -12.5, 0.25], ["c", 1e-9, -0.125], ["d", null, 0], ["e", 1234567, 0.1234567],
        ],
    }));
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
    let all =
        html(json!({ "columns": [{ "name": "n" }], "rows": rows, "choice": "the first by id" }));
    assert!(all.contains("Shown: 500 of 600 rows (the first by id)."));
    assert_eq!(all.matches("<tr>").count(), 501);
    let more =
        html(json!({ "columns": [{ "name": "n" }], "rows": [[1]], "total": 12000, "source": "s" }));
    assert!(more.contains("Shown: 1 of 12,000 rows. From step s."));
    let empty = html(json!({ "columns": [{ "name": "n" }] }));
    assert!(empty.contains("The table has no rows."));
    let nothing = html(json!({}));
    assert!(nothing.contains("The table has no rows."));
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
