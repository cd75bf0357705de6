//! Marks are at their data, to within half a pixel, for every kind.

use galeras_figures::{Kind, Scale, Spec, draw};
use roxmltree::Document;

use crate::reading::{all, attribute, axis, corners, drawn, end, parse, under, within};
use crate::samples::{Draw, data_of, numbers, spec, table, texts};

fn sample(n: usize, seed: u64) -> Vec<f64> {
    let mut draw = Draw(seed);
    (0..n).map(|_| draw.normal(20.0, 6.0)).collect()
}

#[test]
fn bins_of_a_histogram_have_the_counts_of_the_rows() {
    let values = sample(200, 1);
    for (scale, bins) in [(Scale::Linear, None), (Scale::Linear, Some(7)), (Scale::Log, Some(9))] {
        let spec = Spec { bins, x_scale: Some(scale), ..spec(Kind::HISTOGRAM, "x=v") };
        let data = data_of([("v", numbers(&values))]);
        let document = drawn(&spec, &data);
        let (x, y) = (axis(&document, "x", scale == Scale::Log), axis(&document, "y", false));
        let mut total = 0;
        for (i, bar) in within(&document, "bin", "rect").into_iter().enumerate() {
            let (left, right) = (attribute(bar, "x"), end(bar, "x"));
            let rows = y.value(attribute(bar, "y")).round();
            y.check(attribute(bar, "y"), rows);
            y.check(end(bar, "y"), 0.0);
            // Rows within a hair's breadth of an edge may be on either side of it.
            let inside = |hair: f64| {
                let (from, to) = (x.value(left - hair), x.value(right + hair));
                values.iter().filter(|v| **v >= from && **v < to).count() as f64
            };
            assert!(rows >= inside(-0.02) && rows <= inside(0.02), "{i}: {rows}");
            total += rows as usize;
        }
        assert_eq!(total, values.len());
    }
}

#[test]
fn groups_of_a_histogram_have_outlines_of_their_counts() {
    let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 2.0, 2.1];
    let groups = texts(&["a", "a", "a", "b", "b", "b", "b", "a"]);
    let data = data_of([("v", numbers(&values)), ("g", groups)]);
    let spec = Spec { bins: Some(5), ..spec(Kind::HISTOGRAM, "x=v, color=g") };
    let document = drawn(&spec, &data);
    let (x, y) = (axis(&document, "x", false), axis(&document, "y", false));
    let outlines = within(&document, "bins", "path").into_iter().map(corners);
    for (outline, counts) in outlines.zip([[1.0, 2.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0, 2.0]]) {
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
    let data = data_of([("v", numbers(&values))]);
    let document = drawn(&spec(Kind::ECDF, "x=v"), &data);
    let (x, y) = (axis(&document, "x", false), axis(&document, "y", false));
    let line = corners(within(&document, "steps", "path")[0]);
    let mut sorted = values.clone();
    sorted.sort_by(f64::total_cmp);
    let band = ((2.0_f64 / 0.05).ln() / 80.0).sqrt();
    for (place, height) in line.iter().copied() {
        // Within half a pixel of a place the share is one of those on both sides of it.
        let (from, to) = (x.value(place - 0.5), x.value(place + 0.5));
        let below = sorted.partition_point(|v| *v < from) as f64 / 40.0;
        let upto = sorted.partition_point(|v| *v <= to) as f64 / 40.0;
        assert!(height < y.pixel(below) + 0.5 && height > y.pixel(upto) - 0.5);
    }
    for (i, value) in sorted.iter().enumerate() {
        let near = line.iter().filter(|p| (p.0 - x.pixel(*value)).abs() < 0.5);
        // Rows that lie within one pixel are one step.
        assert!(near.clone().any(|p| p.1 < y.pixel((i + 1) as f64 / 40.0) + 0.5), "{i}");
    }
    let around = corners(within(&document, "band", "path")[0]);
    y.check(around[0].1, band);
}

#[test]
fn bars_and_their_intervals_are_at_their_numbers() {
    for (name, lying) in [("", false), ("a very long name of a model indeed, ", true)] {
        let rows =
            "m | v | low | high\n$one | 3.5 | 3 | 4.25\n$two | -1.25 | -2 | -0.5\nthree | 2 | |";
        let data = table(&rows.replace('$', name)).unwrap();
        let mut spec = spec(Kind::BAR, "x=m, y=v, low=low, high=high");
        spec.width = Some(if lying { 8.0 } else { 16.0 });
        let picture = draw(&spec, &data).unwrap();
        let document = Document::parse(&picture.svg).unwrap();
        let side = if lying { "x" } else { "y" };
        let axis = axis(&document, side, false);
        let bars = all(&document, "bar");
        for (bar, value) in bars.iter().zip([3.5_f64, -1.25, 2.0]) {
            let rect = under(*bar, "rect")[0];
            let (a, b) = (attribute(rect, side), end(rect, side));
            let (low, high) = if lying { (a, b) } else { (b, a) };
            axis.check(low, value.min(0.0));
            axis.check(high, value.max(0.0));
        }
        let intervals = all(&document, "interval");
        assert_eq!(intervals.len(), 2);
        for (interval, (low, high)) in intervals.into_iter().zip([(3.0, 4.25), (-2.0, -0.5)]) {
            let line = under(interval, "line")[0];
            axis.check(attribute(line, &format!("{side}1")), low);
            axis.check(attribute(line, &format!("{side}2")), high);
        }
        assert!(picture.caption.contains("1 row has no interval"), "{}", picture.caption);
    }
}

#[test]
fn lines_and_bands_pass_their_points() {
    let (x, y) = ([3.0, 1.0, 2.0, 10.0], [1.0, 10.0, 100.0, 1000.0]);
    let (low, high) = (y.map(|v| v / 2.0), y.map(|v| v * 2.0));
    for scale in [Scale::Linear, Scale::Log] {
        let columns = [("x", x), ("y", y), ("low", low), ("high", high)];
        let data = data_of(columns.map(|(name, v)| (name, numbers(&v))));
        let mut spec = spec(Kind::LINE, "x=x, y=y, low=low, high=high");
        (spec.x_scale, spec.y_scale) = (Some(scale), Some(scale));
        let document = drawn(&spec, &data);
        let log = scale == Scale::Log;
        let (ax, ay) = (axis(&document, "x", log), axis(&document, "y", log));
        let order = [1, 2, 0, 3];
        let [line, band] =
            ["line", "band"].map(|class| corners(within(&document, class, "path")[0]));
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
    let columns = [("x", &x), ("y", &y), ("low", &low), ("high", &high)];
    let data = data_of(columns.map(|(name, v)| (name, numbers(v))));
    let document = drawn(&spec(Kind::SCATTER, "x=x, y=y, low=low, high=high"), &data);
    let (ax, ay) = (axis(&document, "x", false), axis(&document, "y", false));
    let points = under(all(&document, "points")[0], "circle");
    assert_eq!(points.len(), 30);
    for (i, point) in points.into_iter().enumerate() {
        ax.check(attribute(point, "cx"), x[i]);
        ay.check(attribute(point, "cy"), y[i]);
    }
    for (i, line) in within(&document, "interval", "line").into_iter().enumerate() {
        ax.check(attribute(line, "x1"), x[i]);
        ay.check(attribute(line, "y1"), low[i]);
        ay.check(attribute(line, "y2"), high[i]);
    }
}

#[test]
fn panels_share_their_axes() {
    let data = table("x | y | f\n0 | 0 | a\n10 | 10 | a\n5 | 5 | b\n5 | 2 | c").unwrap();
    let document = drawn(&spec(Kind::SCATTER, "x=x, y=y, facet=f"), &data);
    let points: Vec<_> = all(&document, "points").into_iter().map(|g| under(g, "circle")).collect();
    let ticks = within(&document, "tick x", "line");
    let first = |panel: usize| attribute(ticks[panel * ticks.len() / 3], "x1");
    let at = |panel: usize, row: usize| attribute(points[panel][row], "cx") - first(panel);
    let middle = (at(0, 0) + at(0, 1)) / 2.0;
    assert!((at(1, 0) - middle).abs() < 0.5 && (at(2, 0) - middle).abs() < 0.5);
    let y = |panel: usize, row: usize| attribute(points[panel][row], "cy");
    assert!((y(1, 0) - (y(0, 0) + y(0, 1)) / 2.0).abs() < 0.5);
}

#[test]
fn cells_stand_under_their_names_and_say_their_numbers() {
    let data = table("x | y | r\na | p | 1\nb | p | -0.5\na | q | 0.25\nb | q | 0").unwrap();
    let document = drawn(&spec(Kind::HEATMAP, "x=x, y=y, color=r"), &data);
    let columns = within(&document, "name x", "text");
    let cells = all(&document, "cell");
    for (i, (cell, number)) in cells.iter().zip([1.0, -0.5, 0.25, 0.0]).enumerate() {
        let rect = under(*cell, "rect")[0];
        let middle = (attribute(rect, "x") + end(rect, "x")) / 2.0;
        assert!((middle - attribute(columns[i % 2], "x")).abs() < 0.5);
        assert_eq!(parse(under(*cell, "text")[0].text().unwrap()), number);
    }
    // Correlations have the palette of -1 to 1: 1 has its end, 0 its middle.
    let fill = |i: usize| under(cells[i], "rect")[0].attribute("fill").unwrap();
    assert_eq!((fill(0), fill(3)), ("#be4b00", "#f7f7f7"));
    let (top, below) = (under(cells[0], "rect")[0], under(cells[2], "rect")[0]);
    assert!((end(top, "y") - attribute(below, "y")).abs() < 0.02);
}

#[test]
fn contours_are_where_the_numbers_of_the_grid_are_the_same() {
    // A plane, of which a line between two places is known exactly, and a point off the grid.
    let mut rows = "x | y | z | name\n0.25 | 5 | 9 | twice as strong".to_string();
    for (x, y) in (0..24).map(|i| (f64::from(i / 4) * 0.1, f64::from(i % 4) * 2.0)) {
        rows.push_str(&format!("\n{x} | {y} | {} |", 10.0 * x - y));
    }
    let data = table(&rows).unwrap();
    let columns = spec(Kind::CONTOUR, "x=x, y=y, color=z, label=name");
    let picture = draw(&Spec { reference: Some(0.0), ..columns }, &data).unwrap();
    let document = Document::parse(&picture.svg).unwrap();
    let (x, y) = (axis(&document, "x", false), axis(&document, "y", false));
    let contours = all(&document, "contour");
    assert!(contours.len() > 4, "{}", contours.len());
    let mut dashed = 0;
    for contour in contours {
        let level = parse(under(contour, "title")[0].text().unwrap());
        let path = under(contour, "path")[0];
        for (left, top) in corners(path) {
            let found = [x.value(left), y.value(top)];
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
    x.check((attribute(mark, "x") + end(mark, "x")) / 2.0, 0.25);
    y.check((attribute(mark, "y") + end(mark, "y")) / 2.0, 5.0);
    assert_eq!(under(point, "title")[0].text(), Some("twice as strong: 9"));
    assert!(picture.caption.contains("Dashed: where it is 0."), "{}", picture.caption);
}

#[test]
fn the_line_around_a_summit_is_closed_and_a_hole_breaks_lines() {
    let drawn = |hole: Option<(i32, i32)>| {
        let mut rows = "x | y | z".to_string();
        for (x, y) in (0..25).map(|i| (i / 5, i % 5)).filter(|place| Some(*place) != hole) {
            rows.push_str(&format!("\n{x} | {y} | {}", -(x - 2).pow(2) - (y - 2).pow(2)));
        }
        draw(&spec(Kind::CONTOUR, "x=x, y=y, color=z"), &table(&rows).unwrap()).unwrap()
    };
    let ends = |svg: &str| {
        let document = Document::parse(svg).unwrap();
        let mut contours = all(&document, "contour").into_iter();
        let summit = contours.find(|n| under(*n, "title")[0].text() == Some("−1")).unwrap();
        let places = corners(under(summit, "path")[0]);
        (places[0], places[places.len() - 1])
    };
    let (first, last) = ends(&drawn(None).svg);
    assert_eq!(first, last);
    let broken = drawn(Some((2, 3)));
    let (first, last) = ends(&broken.svg);
    assert_ne!(first, last);
    assert!(broken.caption.contains("1 place of the grid has no row"), "{}", broken.caption);
}

#[test]
fn estimates_and_intervals_of_a_forest_are_at_their_numbers() {
    let rows = "e | o | low | high\n0.5 | p | 0.25 | 0.75\n1.5 | q | 1 | 4\n2.5 | r | |";
    let data = table(rows).unwrap();
    for (kind, scale, references) in [
        (Kind::FOREST, None, vec![0.0]),
        (Kind::FOREST, Some(Scale::Log), vec![1.0]),
        (Kind::LOVE, None, vec![0.0, -0.1, 0.1]),
    ] {
        let mut spec = spec(kind, "x=e, y=o, low=low, high=high");
        spec.x_scale = scale;
        let document = drawn(&spec, &data);
        let x = axis(&document, "x", scale.is_some());
        let names =
            all(&document, "name y").into_iter().map(|n| attribute(under(n, "text")[0], "y"));
        let names: Vec<f64> = names.collect();
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
        let lines = all(&document, "reference");
        assert_eq!(lines.len(), references.len());
        for (line, value) in lines.into_iter().zip(references) {
            x.check(attribute(under(line, "line")[0], "x1"), value);
        }
    }
}

#[test]
fn areas_of_a_treemap_are_in_proportion_to_sizes() {
    let data =
        table("n | s | g\na | 40 | g\nb | 25 | h\nc | 20 | g\nd | 10 | h\ne | 5 | h").unwrap();
    let area = |node| {
        let rect = under(node, "rect").pop().unwrap();
        attribute(rect, "width") * attribute(rect, "height")
    };
    let document = drawn(&spec(Kind::TREEMAP, "x=n, y=s"), &data);
    let areas: Vec<f64> = all(&document, "tile").into_iter().map(area).collect();
    let whole: f64 = areas.iter().sum();
    for (found, size) in areas.iter().zip([40.0, 25.0, 20.0, 10.0, 5.0]) {
        // Half a pixel at each side.
        assert!((found / whole * 100.0 - size).abs() < 0.3, "{found} {size}");
    }
    let document = drawn(&spec(Kind::TREEMAP, "x=n, y=s, color=g"), &data);
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
    let data = table("from | to\na | b\nb | c\na | c\nd |").unwrap();
    for width in [16.0, 4.0] {
        let spec = Spec { width: Some(width), ..spec(Kind::GRAPH, "x=from, y=to") };
        let document = drawn(&spec, &data);
        let place = |name: &str| {
            let mut nodes = all(&document, "node").into_iter();
            let node = nodes.find(|n| under(*n, "text")[0].text() == Some(name)).unwrap();
            let rect = under(node, "rect")[0];
            [attribute(rect, "x"), attribute(rect, "y"), end(rect, "x"), end(rect, "y")]
        };
        let touches = |[left, top, right, bottom]: [f64; 4], (x, y): (f64, f64)| {
            x > left - 0.5 && x < right + 0.5 && y > top - 0.5 && y < bottom + 0.5
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
    let data = table("s | n\nall | 2000\nsome | 1000\nfew | 10\nnone | 0").unwrap();
    let picture = draw(&spec(Kind::FUNNEL, "x=s, y=n"), &data).unwrap();
    let document = Document::parse(&picture.svg).unwrap();
    let stages = all(&document, "stage");
    let widths: Vec<f64> =
        stages.iter().map(|s| attribute(under(*s, "rect")[0], "width")).collect();
    for (width, n) in widths.iter().zip([2000.0, 1000.0, 10.0, 0.0]) {
        assert!((width - widths[0] * n / 2000.0).abs() < 0.5);
    }
    for (stage, words) in [(1, ["1000", "50 %", "50 %"]), (2, ["10", "0.5 %", "1 %"])] {
        let texts = under(stages[stage], "text");
        assert_eq!(texts.iter().filter_map(|t| t.text()).take(3).collect::<Vec<_>>(), words);
    }
    assert!(picture.alt.contains("some: 1000, 50 % of the first"));
}

#[test]
fn names_of_columns_are_words_and_other_names_stay() {
    let columns = [
        ("outcome", texts(&["rouge_l", "exact_match"])),
        ("model", texts(&["my_model", "my_model"])),
        ("mean", numbers(&[0.25, 0.5])),
    ];
    let svg =
        draw(&spec(Kind::FOREST, "y=outcome, x=mean, facet=model"), &data_of(columns)).unwrap().svg;
    for (name, there) in
        [(">rouge l<", true), (">exact match<", true), ("rouge_l", false), (">my_model<", true)]
    {
        assert_eq!(svg.contains(name), there, "{name} in {svg}");
    }
}
