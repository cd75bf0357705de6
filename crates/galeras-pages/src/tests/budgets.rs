//! A page is never larger than its limit, and notes its omissions.

use serde_json::{Value, json};

use super::from_json;
use crate::{PageError, PageLimits, report, report_within};

fn study(points: usize, text: usize) -> Value {
    let points: Vec<Value> = (0..points)
        .map(|i| json!({ "id": format!("{i:032x}"), "title": format!("point {i}"), "answer": format!("x{i} = 1\n").repeat(text), "reference": format!("x{i} = 2\n").repeat(text) }))
        .collect();
    let steps: Vec<Value> = (0..60).map(|i| json!({ "name": format!("step_{i}"), "ports": [{ "name": "out", "columns": [{ "name": "c" }] }] })).collect();
    json!({ "title": "T", "sections": [{ "kind": "rows", "points": points }], "graph": { "steps": steps } })
}

#[test]
fn what_fits_is_whole_and_no_note_says_otherwise() {
    let page = report(&from_json(study(50, 20))).unwrap();
    assert!(!page.contains("Left out of this page"));
    assert_eq!(page.matches("<details class=\"point\"").count(), 50);
}

#[test]
fn a_page_that_would_be_too_large_shows_less_and_says_so() {
    let page = report(&from_json(study(200, 700))).unwrap();
    assert!(page.len() <= PageLimits::default().bytes, "{}", page.len());
    assert!(page.contains("Left out of this page"));
    assert!(page.contains("more than the 5.0 MB that this page may have"));
    assert!(page.contains("point 0") && page.matches("<details class=\"point\"").count() >= 25);
}

#[test]
fn more_data_points_than_the_limit_are_counted() {
    let page = report(&from_json(study(300, 1))).unwrap();
    assert!(page.contains("Data points of “”: 200 of 300 are shown."));
    assert!(page.contains("200 of 300 data points"));
}

#[test]
fn a_figure_that_is_too_large_is_named() {
    let svg = format!("<svg xmlns=\"http://www.w3.org/2000/svg\">{}</svg>", "<g/>".repeat(300_000));
    let report_of = json!({ "sections": [{ "kind": "figure", "title": "Overlap", "svg": svg, "alt": "overlap" }] });
    let page = report(&from_json(report_of)).unwrap();
    assert!(page.contains("Figure “Overlap” (1.2 MB) is left out: a figure may have 1.0 MB here"));
    assert!(page.contains("The figure “Overlap” is left out of this page."));
    assert!(page.len() < 200_000);
}

#[test]
fn of_many_large_figures_the_first_are_shown_and_the_others_named() {
    let figures: Vec<Value> = (0..30)
        .map(|i| {
            let svg = format!("<svg>{}</svg>", "abcdefghi ".repeat(25_000));
            json!({ "kind": "figure", "title": format!("F{i}"), "svg": svg })
        })
        .collect();
    let page = report(&from_json(json!({ "sections": figures }))).unwrap();
    assert!(page.len() <= PageLimits::default().bytes);
    let shown = page.matches("<img src=").count();
    assert!((10..=20).contains(&shown), "{shown}");
    assert_eq!(page.matches("is left out: a figure may have").count(), 30 - shown);
}

#[test]
fn what_cannot_be_made_small_enough_is_an_error_that_says_the_size() {
    let limits = PageLimits { bytes: 60_000, ..PageLimits::default() };
    let error = report_within(&from_json(study(10, 50)), &limits).unwrap_err();
    assert!(matches!(error, PageError::TooLarge(..)));
    assert!(error.to_string().contains("more than the 60 kB"), "{error}");
}

#[test]
fn limits_end_somewhere_above_nothing() {
    let mut limits = PageLimits::default();
    for _ in 0..40 {
        limits = limits.halved();
    }
    assert_eq!(limits, limits.halved());
    let least = [limits.points, limits.table_rows, limits.text_chars, limits.panels];
    assert!(least.iter().all(|limit| *limit > 0), "{least:?}");
}

#[test]
fn the_same_report_makes_the_same_bytes() {
    let of = from_json(study(20, 30));
    assert_eq!(report(&of).unwrap(), report(&of).unwrap());
}

#[test]
fn a_graph_of_too_many_steps_is_a_table_of_them() {
    let page = |count: usize| {
        let step = |i| json!({ "name": format!("step_{i}"), "operator": "sql", "rows": i });
        let steps: Vec<Value> = (0..count).map(step).collect();
        report(&from_json(json!({ "graph": { "steps": steps } }))).unwrap()
    };
    let drawn = page(1000);
    assert!(drawn.contains("<g class=\"arrows\""));
    assert!(!drawn.contains("could not be read, and is left out"));
    let listed = page(10_000);
    assert!(listed.contains("A graph of 10,000 steps could not be read, and is left out."));
    assert!(!listed.contains("<g class=\"arrows\"") && listed.contains("step_99"));
    assert!(listed.len() <= PageLimits::default().bytes, "{}", listed.len());
}
