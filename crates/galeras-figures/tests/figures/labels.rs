//! Labels have room: none overlaps another or leaves the picture, for any names in the data.

use std::sync::Arc;

use base64::Engine as _;
use galeras_figures::{
    Data, FigureError, Kind, Role, Spec, Takes, Theme, Values, draw, font_css, png,
};
use resvg::usvg::{Group, Node, Options, Rect, Tree, fontdb};
use roxmltree::Document;

use crate::reading::{all, drawn, under};
use crate::samples::{self, Draw, data_of, numbers, spec, texts};

/// Where each text is, as a renderer sets it in the font that the picture carries.
fn texts_of(svg: &str) -> Vec<(String, Rect)> {
    fn walk(group: &Group, found: &mut Vec<(String, Rect)>) {
        for node in group.children() {
            match node {
                Node::Group(group) => walk(group, found),
                Node::Text(text) => {
                    let words = text.chunks().iter().map(|c| c.text()).collect::<String>();
                    found.push((words, text.abs_bounding_box()));
                }
                _ => {}
            }
        }
    }
    let mut fonts = fontdb::Database::new();
    let css = font_css(&[svg]);
    for part in css.split("base64,").skip(1) {
        let file = &part[..part.find(')').unwrap()];
        fonts.load_font_data(base64::engine::general_purpose::STANDARD.decode(file).unwrap());
    }
    let options = Options { fontdb: Arc::new(fonts), ..Options::default() };
    let tree = Tree::from_str(svg, &options).unwrap();
    let mut found = Vec::new();
    walk(tree.root(), &mut found);
    found
}

#[track_caller]
pub(crate) fn check(name: &str, svg: &str) {
    let document = Document::parse(svg).unwrap_or_else(|e| panic!("{name}: {e}"));
    let view = document.root_element().attribute("viewBox").unwrap();
    let view: Vec<f32> = view.split(' ').map(|v| v.parse().unwrap()).collect();
    let texts = texts_of(svg);
    for (i, (words, a)) in texts.iter().enumerate() {
        let inside = a.left() >= -0.1
            && a.top() >= -0.1
            && a.right() <= view[2] + 0.1
            && a.bottom() <= view[3] + 0.1;
        assert!(inside, "{name}: `{words}` leaves the picture of {view:?}: {a:?}");
        for (other, b) in &texts[i + 1..] {
            let meet = a.left() + 0.4 < b.right()
                && b.left() + 0.4 < a.right()
                && a.top() + 0.4 < b.bottom()
                && b.top() + 0.4 < a.bottom();
            assert!(!meet, "{name}: `{words}` {a:?} and `{other}` {b:?} overlap");
        }
    }
}

/// Nothing in the picture does anything or leads anywhere.
#[track_caller]
fn check_inert(name: &str, svg: &str) {
    let document = Document::parse(svg).unwrap_or_else(|e| panic!("{name}: {e}"));
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        let tag = node.tag_name().name();
        let known = ["svg", "g", "title", "rect", "line", "circle", "path", "text"];
        assert!(known.contains(&tag), "{name}: <{tag}>");
        for attribute in node.attributes() {
            let (key, value) = (attribute.name(), attribute.value());
            let known = !key.starts_with("on") && !["href", "id", "style", "src"].contains(&key);
            let inert = key == "aria-label" || !value.contains("url(") && !value.contains(':');
            assert!(known && inert, "{name}: {key}={value}");
        }
    }
    let hidden = |c: char| c.is_control() && c != '\n' || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!svg.contains(hidden), "{name}");
}

#[test]
fn every_sample_in_every_size_has_room_for_its_labels() {
    let mut drawn = 0;
    for (name, spec, data) in samples::all().unwrap() {
        for width in [6.0, 8.0, 12.5, 16.0, 40.0] {
            for height in [None, Some(7.0)] {
                let mut spec = spec.clone();
                (spec.width, spec.height) = (Some(width), height);
                match draw(&spec, &data) {
                    Ok(picture) => {
                        check(&format!("{name} {width} {height:?}"), &picture.svg);
                        check_inert(name, &picture.svg);
                        drawn += 1;
                    }
                    Err(FigureError::TooSmall(_)) if width < 12.0 || height.is_some() => {}
                    Err(error) => panic!("{name} {width}: {error}"),
                }
            }
        }
    }
    assert!(drawn > 150, "{drawn}");
}

/// Names as bad as they come.
fn hostile() -> Vec<String> {
    let mut names = vec![
        "x".repeat(200),
        "a name of very many short words that goes on and on ".repeat(4),
        "漢字の長い名前".repeat(30),
        "العربية نص طويل".repeat(10),
        "\u{202e}reversed\u{202c}".to_string(),
        "\u{1b}[31mred\u{1b}[0m\u{7}\0".to_string(),
        "<script>alert(1)</script>".to_string(),
        "\"' onload='x' & </text></svg><svg onload=alert(1)>".to_string(),
        "]]><!-- --><![CDATA[".to_string(),
        "$\\frac{a}{b}$ and \\$5".to_string(),
        "👩‍👩‍👧‍👦🏳️‍🌈".repeat(20),
        "e\u{301}".repeat(120),
        String::new(),
        " ".repeat(50),
        "url(http://example.org/a.svg#b)".to_string(),
        "line\nline\r\n\ttab".to_string(),
    ];
    names.extend((names.len()..60).map(|i| format!("category number {i}")));
    names
}

fn every_kind(names: &[String], x: &[f64]) -> Vec<(Spec, Data)> {
    let n = names.len();
    let all = |at: fn(usize, usize) -> usize| {
        Values::Texts((0..n).map(|i| Some(names[at(i, n)].clone())).collect())
    };
    let off = |by: f64| numbers(&x.iter().map(|v| v + by).collect::<Vec<_>>());
    let (name, panels) = (names[0].as_str(), names.get(6).map_or("panels", String::as_str));
    let data = data_of([
        (name, all(|i, _| i)),
        ("turned", all(|i, n| (i * 7 + 3) % n)),
        ("few", all(|i, n| i % n.min(8))),
        (panels, all(|i, n| i % n.min(4))),
        ("value", numbers(x)),
        ("low", off(-1.0)),
        ("high", off(1.0)),
    ]);
    let mut found = Vec::new();
    for kind in Kind::all() {
        let column = |role| {
            let usage = kind.usage(role)?;
            let names_at_x = kind.usage(Role::X).is_some_and(|x| x.takes == Takes::Category);
            Some(match (role, usage.takes) {
                (Role::X | Role::Low, Takes::Number) => "low",
                (Role::Y, Takes::Number) => "value",
                (_, Takes::Number) => "high",
                (Role::Color, _) => "few",
                (Role::Label, _) => "turned",
                (Role::Y, _) if names_at_x => "turned",
                _ => name,
            })
        };
        let text = |t: &str| (!t.is_empty()).then(|| t.to_string());
        let column = |role| column(role).map(str::to_string);
        let mut spec = Spec::new(*kind);
        (spec.x, spec.y, spec.color) = (column(Role::X), column(Role::Y), column(Role::Color));
        (spec.low, spec.high) = (column(Role::Low), column(Role::High));
        spec.label = column(Role::Label);
        (spec.title, spec.caption) = (text(&names[1 % n]), text(&names[6 % n]));
        found.push((spec.clone(), data.clone()));
        if kind.usage(Role::Facet).is_some() && *kind != Kind::HEATMAP {
            spec.facet = text(panels);
            found.push((spec, data.clone()));
        }
    }
    found
}

#[test]
fn sixty_hostile_names_are_cropped_and_inert() {
    let names = hostile();
    let mut draw_ = Draw(9);
    let x: Vec<f64> = (0..60).map(|_| draw_.normal(40.0, 9.0).max(1.0)).collect();
    let mut drawn = 0;
    for (spec, data) in every_kind(&names, &x) {
        for width in [8.0, 16.0, 30.0] {
            let spec = Spec { width: Some(width), theme: Some(Theme::Print), ..spec.clone() };
            let name = format!("{} {width} {:?}", spec.kind, spec.facet.is_some());
            match draw(&spec, &data) {
                Ok(picture) => {
                    check(&name, &picture.svg);
                    check_inert(&name, &picture.svg);
                    let words = picture.caption + &picture.alt;
                    let hidden = |c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c);
                    assert!(!words.contains(hidden), "{name}");
                    drawn += 1;
                }
                Err(FigureError::TooSmall(_)) if width < 30.0 => {}
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }
    assert!(drawn > 50, "{drawn}");
}

#[test]
fn what_is_cropped_is_there_when_the_pointer_rests_on_it() {
    let long = "the mean of the similarity of answers to their references ".repeat(4);
    let data = data_of([("o", texts(&[&long, "b"])), ("e", numbers(&[1.0, 2.0]))]);
    let document = drawn(&spec(Kind::FOREST, "x=e, y=o"), &data);
    let cropped = all(&document, "cropped")[0];
    assert_eq!(under(cropped, "title")[0].text(), Some(long.trim()));
    assert!(under(cropped, "text").iter().any(|n| n.text().unwrap().ends_with('…')));
}

#[test]
fn degenerate_tables_are_drawn_without_overlap() {
    for values in [vec![0.0], vec![1e300], vec![5e-324], vec![123_456_789.0]] {
        for (spec, data) in every_kind(&["only".to_string()], &values) {
            // Ends of an interval of such numbers may be no other numbers.
            match draw(&spec, &data) {
                Ok(picture) => {
                    check(&format!("{} {values:?}", spec.kind), &picture.svg);
                    let is_finite = !picture.svg.contains("NaN") && !picture.svg.contains("inf");
                    assert!(is_finite, "{}", spec.kind);
                    assert!(png(&picture.svg, 40.0).is_ok());
                }
                Err(FigureError::NoRows(_)) => assert_eq!(values[0], 0.0, "{}", spec.kind),
                Err(error) => panic!("{} {values:?}: {error}", spec.kind),
            }
        }
    }
}
