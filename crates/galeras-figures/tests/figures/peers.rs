//! The same numbers as matplotlib, numpy and scipy, read back from the picture.
//!
//! `tests/scripts/figures_vs_matplotlib.py` makes the file of expected numbers.

use galeras_figures::Kind;
use roxmltree::Document;
use serde_json::Value;

use crate::reading::{all, attribute, axis, corners, drawn, end, under};
use crate::samples::{data_of, numbers, spec};

fn peers() -> Vec<(String, Value)> {
    let found: Value = serde_json::from_str(include_str!("peers.json")).unwrap();
    found.as_object().unwrap().iter().map(|(k, v)| (k.clone(), v.clone())).collect()
}

fn list(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn pairs(value: &Value) -> Vec<(f64, f64)> {
    value.as_array().unwrap().iter().map(|v| (list(v)[0], list(v)[1])).collect()
}

/// The figure of the values of a peer in a column `v`.
fn of(kind: Kind, columns: &str, peer: &Value) -> Document<'static> {
    let data = data_of([("v", numbers(&list(&peer["values"])))]);
    drawn(&spec(kind, columns), &data)
}

#[test]
fn boxes_are_those_of_matplotlib() {
    for (name, peer) in peers() {
        let document = of(Kind::BOX, "y=v", &peer);
        let y = axis(&document, "y", false);
        let [q1, median, q3] = list(&peer["quartiles"])[..] else { panic!("{name}") };
        let rect = under(all(&document, "quartiles")[0], "rect")[1];
        y.check(attribute(rect, "y"), q3);
        y.check(end(rect, "y"), q1);
        y.check(attribute(under(all(&document, "median")[0], "line")[0], "y1"), median);
        for (whisker, value) in all(&document, "whisker").into_iter().zip(list(&peer["whiskers"])) {
            y.check(attribute(under(whisker, "line")[0], "y2"), value);
        }
        let beyond = under(all(&document, "beyond")[0], "circle");
        let expected = list(&peer["beyond"]);
        assert!(beyond.len() <= expected.len(), "{name}");
        assert_eq!(beyond.is_empty(), expected.is_empty(), "{name}");
        // Points that cover each other are drawn once.
        for value in expected {
            let is_near = |c| f64::abs(attribute(c, "cy") - y.pixel(value)) < 0.5;
            assert!(beyond.iter().copied().any(is_near), "{name} {value}");
        }
        let interval = all(&document, "interval");
        assert_eq!(interval.is_empty(), peer["median_interval"].is_null(), "{name}");
        if let Some(interval) = interval.first() {
            let rect = under(*interval, "rect")[0];
            let ends = list(&peer["median_interval"]);
            y.check(attribute(rect, "y"), ends[1]);
            y.check(end(rect, "y"), ends[0]);
        }
    }
}

#[test]
fn bins_are_those_of_numpy() {
    for (name, peer) in peers() {
        let document = of(Kind::HISTOGRAM, "x=v", &peer);
        let (x, y) = (axis(&document, "x", false), axis(&document, "y", false));
        let (edges, counts) = (list(&peer["edges"]), list(&peer["counts"]));
        let bins = all(&document, "bin");
        let filled: Vec<usize> = (0..counts.len()).filter(|i| counts[*i] > 0.0).collect();
        assert_eq!(bins.len(), filled.len(), "{name}");
        for (bin, i) in bins.into_iter().zip(filled) {
            let rect = under(bin, "rect")[0];
            x.check(attribute(rect, "x"), edges[i]);
            x.check(end(rect, "x"), edges[i + 1]);
            y.check(attribute(rect, "y"), counts[i]);
        }
    }
}

#[test]
fn distribution_functions_are_those_of_matplotlib() {
    for (name, peer) in peers() {
        let document = of(Kind::ECDF, "x=v", &peer);
        let (x, y) = (axis(&document, "x", false), axis(&document, "y", false));
        let line = corners(under(all(&document, "steps")[0], "path")[0]);
        // Each of the peer's corners is on a segment of ours.
        for (value, share) in pairs(&peer["ecdf"]).into_iter().filter(|(v, _)| v.is_finite()) {
            let (px, py) = (x.pixel(value), y.pixel(share));
            let near = line.windows(2).any(|s| {
                let (left, right) = (s[0].0.min(s[1].0), s[0].0.max(s[1].0));
                let (top, bottom) = (s[0].1.min(s[1].1), s[0].1.max(s[1].1));
                px > left - 0.5 && px < right + 0.5 && py > top - 0.5 && py < bottom + 0.5
            });
            assert!(near, "{name}: {value} {share}");
        }
    }
}

#[test]
fn violins_are_as_wide_as_the_densities_of_scipy() {
    for (name, peer) in peers() {
        let document = of(Kind::VIOLIN, "y=v", &peer);
        let y = axis(&document, "y", false);
        let outline = all(&document, "density");
        assert_eq!(outline.is_empty(), peer["density"].is_null(), "{name}");
        let Some(outline) = outline.first() else { continue };
        let density = pairs(&peer["density"]);
        let points = corners(under(*outline, "path")[0]);
        assert_eq!(points.len(), 202);
        let most = density.iter().map(|d| d.1).fold(0.0, f64::max);
        let widths: Vec<f64> = (0..101).map(|i| points[201 - i].0 - points[i].0).collect();
        let widest = widths.iter().copied().fold(0.0, f64::max);
        for (i, (value, expected)) in density.into_iter().enumerate() {
            y.check(points[i].1, value);
            assert!((widths[i] - widest * expected / most).abs() < 0.5, "{name} {value}");
        }
        let circle = under(all(&document, "median")[0], "circle")[0];
        y.check(attribute(circle, "cy"), list(&peer["quartiles"])[1]);
    }
}
