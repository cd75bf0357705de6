//! Figures of the sample: intervals, and curves of about 100 kB each.

use std::fmt::Write as _;

use serde_json::{Value, json};

pub(crate) fn few() -> Vec<Value> {
    vec![
        json!({ "kind": "figure", "title": "", "svg": forest("#fffefb", "#1d1d1b"), "svg_dark": forest("#15171a", "#e6e3dc"),
        "caption": "**Effects of two examples on CodeBLEU**, with 95 % intervals. *n* = 11,873 data points in 3 repositories.",
        "alt": "Two intervals: tiny-coder-1b from 0.031 to 0.053, small-coder-3b from -0.004 to 0.010, which includes zero.",
        "source": "figure_00", "file_name": "effects" }),
    ]
}

pub(crate) fn many(count: usize) -> Vec<Value> {
    (0..count)
        .map(|i| {
            json!({ "kind": "figure", "title": "", "svg": curve(i), "caption": format!("Feature {i}: distribution over the testbed. *n* = 11,873."),
                "alt": format!("A curve that rises from 0 to 1, feature {i}."), "source": format!("figure_{:02}", i % 40), "file_name": format!("feature_{i}") })
        })
        .collect()
}

fn forest(paper: &str, ink: &str) -> String {
    let row = |y: f64, name: &str, low: f64, at: f64, high: f64| {
        let x = |value: f64| 220.0 + (value + 0.02) / 0.08 * 380.0;
        format!(
            "<text x=\"200\" y=\"{}\" text-anchor=\"end\">{name}</text><path d=\"M{:.1} {y}H{:.1}\" stroke=\"#1b76a8\" stroke-width=\"2\"/><circle cx=\"{:.1}\" cy=\"{y}\" r=\"5\" fill=\"#1b76a8\"/>",
            y + 4.0,
            x(low),
            x(high),
            x(at)
        )
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"16cm\" height=\"4cm\" viewBox=\"0 0 640 160\" font-family=\"DejaVu Sans, sans-serif\" font-size=\"13\" fill=\"{ink}\"><rect width=\"640\" height=\"160\" fill=\"{paper}\"/><script>window.attacked = 6</script><path d=\"M315 20V120M220 120H600\" stroke=\"{ink}\" stroke-width=\"1\" fill=\"none\"/>{}{}<text x=\"315\" y=\"142\" text-anchor=\"middle\">0</text><text x=\"505\" y=\"142\" text-anchor=\"middle\">0.04</text></svg>",
        row(48.0, "tiny-coder-1b", 0.0312, 0.0421, 0.0531),
        row(88.0, "small-coder-3b", -0.0042, 0.0031, 0.0104)
    )
}

fn curve(i: usize) -> String {
    let mut path = String::from("M40 180");
    for step in 0..7000 {
        let x = f64::from(step) / 7000.0;
        let y = 1.0 / (1.0 + (-(x - 0.3 - i as f64 * 0.01) * 12.0).exp());
        let _ = write!(path, "L{:.2} {:.2}", 40.0 + x * 540.0, 180.0 - y * 160.0);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"600\" height=\"210\" viewBox=\"0 0 600 210\" font-family=\"DejaVu Sans, sans-serif\" font-size=\"12\"><rect width=\"600\" height=\"210\" fill=\"#fffefb\"/><path d=\"{path}\" fill=\"none\" stroke=\"#1b76a8\" stroke-width=\"1.5\"/><path d=\"M40 10V180H590\" fill=\"none\" stroke=\"#444\"/><text x=\"300\" y=\"204\" text-anchor=\"middle\">feature {i}</text></svg>"
    )
}
