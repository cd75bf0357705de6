//! Marks are at their data, to within half a pixel, for every kind.

use galeras_figures::{Data, Kind, Scale, Spec, Values, draw};
use roxmltree::Document;

use crate::reading::{all, attribute, axis, corners, parse, under};
use crate::samples::{Draw, numbers, texts};

fn spec(kind: Kind, x: &str, y: &str) -> Spec {
    let name = |n: &str| (!n.is_empty()).then(|| n.to_string());
    Spec { x: name(x), y: name(y), ..Spec::new(kind) }
}

fn with_interval(spec: Spec) -> Spec {
    Spec { low: Some("low".to_string()), high: Some("high".to_string()), ..spec }
}

fn sample(n: usize, seed: u64) -> Vec<f64> {
    let mut draw = Draw::new(seed);
    (0..n).map(|_| draw.normal(20.0, 6.0)).collect()
}

#[test]
fn bins_of_a_histogram_have_the_counts_of_the_rows() {
    let values = sample(200, 1);
    for (scale, bins) in [(Scale::Linear, None), (Scale::Linear, Some(7)), (Scale::Log, Some(9))] {
        let spec = Spec { bins, x_scale: Some(scale), ..spec(Kind::HISTOGRAM, "v", "") };
        let data = Data::of([("v", numbers(&values))]).unwrap();
        let svg = draw(&spec, &data).unwrap().svg;
        let document = Document::parse(&svg).unwrap();
        let (x, y) = (axis(&document, "x", scale == Scale::Log), axis(&document, "y", false));
        let mut total = 0;
        let bars: Vec<_> =
            all(&document, "bin").into_iter().flat_map(|b| under(b, "rect")).collect();
        for (i, bar) in bars.iter().enumerate() {
            let left = attribute(*bar, "x");
            let right = left + attribute(*bar, "width");
            let rows = y.value(attribute(*bar, "y")).round();
            y.check(attribute(*bar, "y"), rows);
            y.check(attribute(*bar, "y") + attribute(*bar, "height"), 0.0);
            // Rows within a hair's breadth of an edge may be on either side of it.
            let within = |hair: f64| {
                let (from, to) = (x.value(left - hair), x.value(right + hair));
                values.iter().filter(|v| **v >= from && **v < to).count() as f64
            };
            assert!(rows >= within(-0.02) && rows <= within(0.02), "{i}: {rows}");
            total += rows as usize;
        }
        assert_eq!(total, values.len());
    }
}

#[test]
fn groups_of_a_histogram_have_outlines_of_their_counts() {
    let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 2.0, 2.1];
    let groups = texts(&["a", "a", "a", "b", "b", "b", "b", "a"]);
    let data = Data::of([("v", numbers(&values)), ("g", groups)]).unwrap();
    let spec =
        Spec { bins: Some(5), color: Some("g".to_string()), ..spec(Kind::HISTOGRAM, "v", "") };
    let svg = draw(&spec, &data).unwrap().svg;
    let document = Document::parse(&svg).unwrap();
    let (x, y) = (axis(&document, "x", false), axis(&document, "y", false));
    let outlines: Vec<_> =
        all(&document, "bins").into_iter().map(|g| corners(under(g, "path")[0])).collect();
    for (outline, counts) in
        outlines.iter().zip([[1.0, 2.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0, 2.0]])
    {
        for (bin, count) in counts.into_iter().enumerate() {
            let (left, right) = (outline[1 + 2 * bin], outline[2 + 2 * bin]);
            x.check(left.0, 1.0 + bin as f64);
            x.check(right.0, 2.0 + bin as f64);
            y.check(left.1, count);
            y.check(right.1, count);
        }
    }
}

#[test]
fn steps_of_a_distribution_function_are_at_the_rows() {
    let values = sample(40, 2);
    let data = Data::of([("v", numbers(&values))]).unwrap();
    let svg = draw(&spec(Kind::ECDF, "v", ""), &data).unwrap().svg;
    let document = Document::parse(&svg).unwrap();
    let (x, y) = (axis(&document, "x", false), axis(&document, "y", false));
    let line = corners(under(all(&document, "steps")[0], "path")[0]);
    let mut sorted = values.clone();
    sorted.sort_by(f64::total_cmp);
    let band = ((2.0_f64 / 0.05).ln() / 80.0).sqrt();
    for (place, height) in line {
        // Within half a pixel of a place the share is one of those on both sides of it.
        let (from, to) = (x.value(place - 0.5), x.value(place + 0.5));
        let below = sorted.partition_point(|v| *v < from) as f64 / 40.0;
        let upto = sorted.partition_point(|v| *v <= to) as f64 / 40.0;
        assert!(height < y.pixel(below) + 0.5 && height > y.pixel(upto) - 0.5);
    }
    for (i, value) in sorted.iter().enumerate() {
        let line = corners(under(all(&document, "steps")[0], "path")[0]);
        let near = line.iter().filter(|p| (p.0 - x.pixel(*value)).abs() < 0.5);
        // Rows that lie within one pixel are one step.
        assert!(near.clone().any(|p| p.1 < y.pixel((i + 1) as f64 / 40.0) + 0.5), "{i}");
    }
    let around = corners(under(all(&document, "band")[0], "path")[0]);
    y.check(around[0].1, band);
}

#[test]
fn bars_and_their_intervals_are_at_their_numbers() {
    for (names, lying) in [
        (["a", "b", "c"], false),
        (
            [
                "a very long name of a model indeed, one",
                "a very long name of a model indeed, two",
                "three",
            ],
            true,
        ),
    ] {
        let data = Data::of([
            ("m", texts(&names)),
            ("v", numbers(&[3.5, -1.25, 2.0])),
            ("low", Values::Numbers(vec![Some(3.0), Some(-2.0), None])),
            ("high", Values::Numbers(vec![Some(4.25), Some(-0.5), None])),
        ])
        .unwrap();
        let mut spec = with_interval(spec(Kind::BAR, "m", "v"));
        spec.width = Some(if lying { 8.0 } else { 16.0 });
        let picture = draw(&spec, &data).unwrap();
        let document = Document::parse(&picture.svg).unwrap();
        let axis = axis(&document, if lying { "x" } else { "y" }, false);
        let (start, length, end) = if lying { ("x", "width", "x") } else { ("y", "height", "y") };
        let bars = all(&document, "bar");
        for (bar, value) in bars.iter().zip([3.5_f64, -1.25, 2.0]) {
            let rect = under(*bar, "rect")[0];
            let (a, b) = (attribute(rect, start), attribute(rect, start) + attribute(rect, length));
            let (low, high) = if lying { (a, b) } else { (b, a) };
            axis.check(low, value.min(0.0));
            axis.check(high, value.max(0.0));
        }
        let intervals: Vec<_> =
            all(&document, "interval").into_iter().map(|g| under(g, "line")[0]).collect();
        assert_eq!(intervals.len(), 2);
        for (line, (low, high)) in intervals.into_iter().zip([(3.0, 4.25), (-2.0, -0.5)]) {
            axis.check(attribute(line, &format!("{end}1")), low);
            axis.check(attribute(line, &format!("{end}2")), high);
        }
        assert!(picture.caption.contains("1 row has no interval"), "{}", picture.caption);
    }
}

#[test]
fn lines_and_bands_pass_their_points() {
    let (x, y) = ([3.0, 1.0, 2.0, 10.0], [1.0, 10.0, 100.0, 1000.0]);
    let (low, high) = (y.map(|v| v / 2.0), y.map(|v| v * 2.0));
    for scale in [Scale::Linear, Scale::Log] {
        let data = Data::of([
            ("x", numbers(&x)),
            ("y", numbers(&y)),
            ("low", numbers(&low)),
            ("high", numbers(&high)),
        ])
        .unwrap();
        let mut spec = with_interval(spec(Kind::LINE, "x", "y"));
        (spec.x_scale, spec.y_scale) = (Some(scale), Some(scale));
        let svg = draw(&spec, &data).unwrap().svg;
        let document = Document::parse(&svg).unwrap();
        let log = scale == Scale::Log;
        let (ax, ay) = (axis(&document, "x", log), axis(&document, "y", log));
        let order = [1, 2, 0, 3];
        let line = corners(under(all(&document, "line")[0], "path")[0]);
        let band = corners(under(all(&document, "band")[0], "path")[0]);
        for (at, row) in order.into_iter().enumerate() {
            ax.check(line[at].0, x[row]);
            ay.check(line[at].1, y[row]);
            ax.check(band[at].0, x[row]);
            ay.check(band[at].1, high[row]);
            ay.check(band[7 - at].1, low[row]);
        }
    }
}

#[test]
fn points_and_their_intervals_are_at_their_numbers() {
    let (x, y) = (sample(30, 4), sample(30, 5));
    let low: Vec<f64> = y.iter().map(|v| v - 2.0).collect();
    let high: Vec<f64> = y.iter().map(|v| v + 3.0).collect();
    let data = Data::of([
        ("x", numbers(&x)),
        ("y", numbers(&y)),
        ("low", numbers(&low)),
        ("high", numbers(&high)),
    ])
    .unwrap();
    let svg = draw(&with_interval(spec(Kind::SCATTER, "x", "y")), &data).unwrap().svg;
    let document = Document::parse(&svg).unwrap();
    let (ax, ay) = (axis(&document, "x", false), axis(&document, "y", false));
    let points = under(all(&document, "points")[0], "circle");
    assert_eq!(points.len(), 30);
    for (i, point) in points.into_iter().enumerate() {
        ax.check(attribute(point, "cx"), x[i]);
        ay.check(attribute(point, "cy"), y[i]);
    }
    for (i, interval) in all(&document, "interval").into_iter().enumerate() {
        let line = under(interval, "line")[0];
        ax.check(attribute(line, "x1"), x[i]);
        ay.check(attribute(line, "y1"), low[i]);
        ay.check(attribute(line, "y2"), high[i]);
    }
}

#[test]
fn panels_share_their_axes() {
    let data = Data::of([
        ("x", numbers(&[0.0, 10.0, 5.0, 5.0])),
        ("y", numbers(&[0.0, 10.0, 5.0, 2.0])),
        ("f", texts(&["a", "a", "b", "c"])),
    ])
    .unwrap();
    let spec = Spec { facet: Some("f".to_string()), ..spec(Kind::SCATTER, "x", "y") };
    let svg = draw(&spec, &data).unwrap().svg;
    let document = Document::parse(&svg).unwrap();
    let points: Vec<_> = all(&document, "points").into_iter().map(|g| under(g, "circle")).collect();
    let ticks: Vec<Vec<f64>> = all(&document, "axes")
        .into_iter()
        .map(|a| {
            a.children()
                .filter(|n| n.attribute("class") == Some("tick x"))
                .map(|n| attribute(under(n, "line")[0], "x1"))
                .collect()
        })
        .collect();
    let at = |panel: usize, row: usize| attribute(points[panel][row], "cx") - ticks[panel][0];
    let middle = (at(0, 0) + at(0, 1)) / 2.0;
    assert!((at(1, 0) - middle).abs() < 0.5 && (at(2, 0) - middle).abs() < 0.5);
    let y = |panel: usize, row: usize| attribute(points[panel][row], "cy");
    assert!((y(1, 0) - (y(0, 0) + y(0, 1)) / 2.0).abs() < 0.5);
}

#[test]
fn cells_stand_under_their_names_and_say_their_numbers() {
    let data = Data::of([
        ("x", texts(&["a", "b", "a", "b"])),
        ("y", texts(&["p", "p", "q", "q"])),
        ("r", numbers(&[1.0, -0.5, 0.25, 0.0])),
    ])
    .unwrap();
    let spec = Spec { color: Some("r".to_string()), ..spec(Kind::HEATMAP, "x", "y") };
    let svg = draw(&spec, &data).unwrap().svg;
    let document = Document::parse(&svg).unwrap();
    let columns: Vec<f64> =
        all(&document, "name x").into_iter().map(|n| attribute(under(n, "text")[0], "x")).collect();
    let cells = all(&document, "cell");
    for (i, (cell, number)) in cells.iter().zip([1.0, -0.5, 0.25, 0.0]).enumerate() {
        let rect = under(*cell, "rect")[0];
        let middle = attribute(rect, "x") + attribute(rect, "width") / 2.0;
        assert!((middle - columns[i % 2]).abs() < 0.5);
        assert_eq!(parse(under(*cell, "text")[0].text().unwrap()), number);
    }
    // Correlations have the palette of -1 to 1: 1 has its end, 0 its middle.
    let fill = |i: usize| under(cells[i], "rect")[0].attribute("fill").unwrap();
    assert_eq!((fill(0), fill(3)), ("#be4b00", "#f7f7f7"));
    let (top, below) = (under(cells[0], "rect")[0], under(cells[2], "rect")[0]);
    let bottom = attribute(top, "y") + attribute(top, "height");
    assert!((bottom - attribute(below, "y")).abs() < 0.02);
}

#[test]
fn contours_are_where_the_numbers_of_the_grid_are_the_same() {
    // A plane, of which a line between two places is known exactly, and a point off the grid.
    let grid: Vec<(f64, f64)> = (0..6)
        .flat_map(|x| (0..4).map(move |y| (f64::from(x) * 0.1, f64::from(y) * 2.0)))
        .collect();
    let with = |last: f64, of: fn(&(f64, f64)) -> f64| {
        numbers(&grid.iter().map(of).chain([last]).collect::<Vec<_>>())
    };
    let mut names = vec![None; grid.len()];
    names.push(Some("twice as strong".to_string()));
    let data = Data::of([
        ("x", with(0.25, |p| p.0)),
        ("y", with(5.0, |p| p.1)),
        ("z", with(9.0, |p| 10.0 * p.0 - p.1)),
        ("name", Values::Texts(names)),
    ])
    .unwrap();
    let mut spec = Spec { reference: Some(0.0), ..spec(Kind::CONTOUR, "x", "y") };
    (spec.color, spec.label) = (Some("z".to_string()), Some("name".to_string()));
    let picture = draw(&spec, &data).unwrap();
    let document = Document::parse(&picture.svg).unwrap();
    let (x, y) = (axis(&document, "x", false), axis(&document, "y", false));
    let contours = all(&document, "contour");
    assert!(contours.len() > 4, "{}", contours.len());
    let mut dashed = 0;
    for contour in contours {
        let level = parse(under(contour, "title")[0].text().unwrap());
        let path = under(contour, "path")[0];
        let places = path.attribute("d").unwrap()[1..].split('L');
        for place in places {
            let (left, top) = place.split_once(' ').unwrap();
            let found = [x.value(left.parse().unwrap()), y.value(top.parse().unwrap())];
            assert!((10.0 * found[0] - found[1] - level).abs() < 0.03, "{level}: {found:?}");
        }
        if path.attribute("stroke-dasharray").is_some() {
            assert_eq!(level, 0.0);
            dashed += 1;
        }
    }
    assert_eq!(dashed, 1);
    let points = all(&document, "point");
    let [point] = points[..] else { panic!("{}", points.len()) };
    let mark = under(point, "rect")[0];
    x.check(attribute(mark, "x") + attribute(mark, "width") / 2.0, 0.25);
    y.check(attribute(mark, "y") + attribute(mark, "height") / 2.0, 5.0);
    assert_eq!(under(point, "title")[0].text(), Some("twice as strong: 9"));
    assert!(picture.caption.contains("Dashed: where it is 0."), "{}", picture.caption);
}

#[test]
fn the_line_around_a_summit_is_closed_and_a_hole_breaks_lines() {
    let places = || (0..5).flat_map(|x| (0..5).map(move |y| (f64::from(x), f64::from(y))));
    let height = |(x, y): (f64, f64)| -(x - 2.0).powi(2) - (y - 2.0).powi(2);
    let drawn = |hole: Option<(f64, f64)>| {
        let kept: Vec<(f64, f64)> = places().filter(|place| Some(*place) != hole).collect();
        let column = |of: fn(&(f64, f64)) -> f64| numbers(&kept.iter().map(of).collect::<Vec<_>>());
        let heights = numbers(&kept.iter().map(|place| height(*place)).collect::<Vec<_>>());
        let data = Data::of([("x", column(|p| p.0)), ("y", column(|p| p.1)), ("z", heights)]);
        let spec = Spec { color: Some("z".to_string()), ..spec(Kind::CONTOUR, "x", "y") };
        draw(&spec, &data.unwrap()).unwrap()
    };
    let ends = |svg: &str| {
        let document = Document::parse(svg).unwrap();
        let summit = all(&document, "contour")
            .into_iter()
            .find(|n| under(*n, "title")[0].text() == Some("−1"))
            .map(|n| under(n, "path")[0].attribute("d").unwrap()[1..].to_string());
        let summit = summit.unwrap();
        let places: Vec<&str> = summit.split('L').collect();
        (places[0].to_string(), places[places.len() - 1].to_string())
    };
    let whole = drawn(None);
    let (first, last) = ends(&whole.svg);
    assert_eq!(first, last);
    let broken = drawn(Some((2.0, 3.0)));
    let (first, last) = ends(&broken.svg);
    assert_ne!(first, last);
    assert!(broken.caption.contains("1 place of the grid has no row"), "{}", broken.caption);
}

#[test]
fn estimates_and_intervals_of_a_forest_are_at_their_numbers() {
    for (kind, scale) in
        [(Kind::FOREST, None), (Kind::FOREST, Some(Scale::Log)), (Kind::LOVE, None)]
    {
        let data = Data::of([
            ("e", numbers(&[0.5, 1.5, 2.5])),
            ("o", texts(&["p", "q", "r"])),
            ("low", Values::Numbers(vec![Some(0.25), Some(1.0), None])),
            ("high", Values::Numbers(vec![Some(0.75), Some(4.0), None])),
        ])
        .unwrap();
        let mut spec = with_interval(spec(kind, "e", "o"));
        spec.x_scale = scale;
        let svg = draw(&spec, &data).unwrap().svg;
        let document = Document::parse(&svg).unwrap();
        let x = axis(&document, "x", scale.is_some());
        let names: Vec<f64> = all(&document, "name y")
            .into_iter()
            .map(|n| attribute(under(n, "text")[0], "y"))
            .collect();
        for (i, estimate) in all(&document, "estimate").into_iter().enumerate() {
            let circle = under(estimate, "circle")[0];
            x.check(attribute(circle, "cx"), [0.5, 1.5, 2.5][i]);
            // A name's baseline is a third of its size below its middle.
            assert!((attribute(circle, "cy") - names[i]).abs() < 5.0);
            let interval = under(estimate, "line");
            assert_eq!(interval.is_empty(), i == 2);
            if let Some(line) = interval.first() {
                x.check(attribute(*line, "x1"), [0.25, 1.0][i]);
                x.check(attribute(*line, "x2"), [0.75, 4.0][i]);
            }
        }
        let lines: Vec<f64> = all(&document, "reference")
            .into_iter()
            .map(|g| attribute(under(g, "line")[0], "x1"))
            .collect();
        let expected = match scale {
            _ if kind == Kind::LOVE => vec![0.0, -0.1, 0.1],
            Some(_) => vec![1.0],
            None => vec![0.0],
        };
        assert_eq!(lines.len(), expected.len());
        lines.iter().zip(expected).for_each(|(pixel, value)| x.check(*pixel, value));
    }
}

#[test]
fn areas_of_a_treemap_are_in_proportion_to_sizes() {
    let sizes = [40.0, 25.0, 20.0, 10.0, 5.0];
    let names = ["a", "b", "c", "d", "e"];
    let plain = Data::of([("n", texts(&names)), ("s", numbers(&sizes))]).unwrap();
    let mut spec = spec(Kind::TREEMAP, "n", "s");
    let area = |node| {
        let rect = under(node, "rect").pop().unwrap();
        attribute(rect, "width") * attribute(rect, "height")
    };
    let svg = draw(&spec, &plain).unwrap().svg;
    let document = Document::parse(&svg).unwrap();
    let areas: Vec<f64> = all(&document, "tile").into_iter().map(area).collect();
    let whole: f64 = areas.iter().sum();
    for (found, size) in areas.iter().zip(sizes) {
        // Half a pixel at each side.
        assert!((found / whole * 100.0 - size).abs() < 0.3, "{found} {size}");
    }
    let groups = texts(&["g", "h", "g", "h", "h"]);
    let nested = Data::of([("n", texts(&names)), ("s", numbers(&sizes)), ("g", groups)]).unwrap();
    spec.color = Some("g".to_string());
    let svg = draw(&spec, &nested).unwrap().svg;
    let document = Document::parse(&svg).unwrap();
    let found: Vec<f64> = all(&document, "group").into_iter().map(area).collect();
    assert!((found[0] / (found[0] + found[1]) - 0.6).abs() < 0.003, "{found:?}");
    for (group, shares) in
        all(&document, "group").into_iter().zip([vec![40.0, 20.0], vec![25.0, 10.0, 5.0]])
    {
        let tiles: Vec<f64> =
            group.children().filter(|n| n.attribute("class") == Some("tile")).map(area).collect();
        let whole: f64 = tiles.iter().sum::<f64>() / shares.iter().sum::<f64>();
        tiles.iter().zip(&shares).for_each(|(t, s)| assert!((t / whole - s).abs() < 0.4));
    }
}

#[test]
fn arrows_lead_from_their_nodes_to_their_nodes() {
    let optional = Values::Texts(vec![Some("b".into()), Some("c".into()), Some("c".into()), None]);
    let data = Data::of([("from", texts(&["a", "b", "a", "d"])), ("to", optional)]).unwrap();
    for width in [16.0, 4.0] {
        let spec = Spec { width: Some(width), ..spec(Kind::GRAPH, "from", "to") };
        let svg = draw(&spec, &data).unwrap().svg;
        let document = Document::parse(&svg).unwrap();
        let place = |name: &str| {
            let node = all(&document, "node")
                .into_iter()
                .find(|n| under(*n, "text")[0].text() == Some(name))
                .unwrap();
            let rect = under(node, "rect")[0];
            ["x", "y", "width", "height"].map(|a| attribute(rect, a))
        };
        let touches = |[x, y, w, h]: [f64; 4], (px, py): (f64, f64)| {
            px > x - 0.5 && px < x + w + 0.5 && py > y - 0.5 && py < y + h + 0.5
        };
        let edges = all(&document, "edge");
        assert_eq!((edges.len(), all(&document, "node").len()), (3, 4));
        for (edge, (from, to)) in edges.into_iter().zip([("a", "b"), ("b", "c"), ("a", "c")]) {
            let paths = under(edge, "path");
            let start = paths[0].attribute("d").unwrap()[1..].split('C').next().unwrap();
            let start: Vec<f64> = start.split(' ').map(|v| v.parse().unwrap()).collect();
            assert!(touches(place(from), (start[0], start[1])), "{from}");
            assert!(touches(place(to), corners(paths[1])[0]), "{to}");
        }
    }
}

#[test]
fn stages_of_a_funnel_are_as_long_as_they_are_many() {
    let data = Data::of([
        ("s", texts(&["all", "some", "few", "none"])),
        ("n", numbers(&[2000.0, 1000.0, 10.0, 0.0])),
    ])
    .unwrap();
    let picture = draw(&spec(Kind::FUNNEL, "s", "n"), &data).unwrap();
    let document = Document::parse(&picture.svg).unwrap();
    let stages = all(&document, "stage");
    let widths: Vec<f64> =
        stages.iter().map(|s| attribute(under(*s, "rect")[0], "width")).collect();
    for (width, n) in widths.iter().zip([2000.0, 1000.0, 10.0, 0.0]) {
        assert!((width - widths[0] * n / 2000.0).abs() < 0.5);
    }
    let words: Vec<Vec<&str>> = stages
        .iter()
        .map(|s| under(*s, "text").iter().filter_map(|t| t.text()).collect())
        .collect();
    assert_eq!(words[1][..3], ["1000", "50 %", "50 %"]);
    assert_eq!(words[2][..3], ["10", "0.5 %", "1 %"]);
    assert!(picture.alt.contains("some: 1000, 50 % of the first"));
}
