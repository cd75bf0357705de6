//! What cannot be drawn is refused in a sentence that names the column.

use galeras_figures::{Data, FigureError, Kind, Scale, Spec, Values, draw};

use crate::samples::{numbers, texts};

fn data() -> Data {
    Data::of([
        ("name", texts(&["a", "b", "c"])),
        ("value", numbers(&[1.0, 2.0, 3.0])),
        ("low", numbers(&[0.5, 2.5, 2.0])),
        ("high", numbers(&[1.5, 2.25, 4.0])),
    ])
    .unwrap()
}

fn spec(kind: Kind, x: Option<&str>, y: Option<&str>) -> Spec {
    Spec { x: x.map(str::to_string), y: y.map(str::to_string), ..Spec::new(kind) }
}

fn says(spec: &Spec, data: &Data, words: &str) {
    let error = draw(spec, data).unwrap_err().to_string();
    assert_eq!(error, words);
}

#[test]
fn columns_that_are_missing_or_of_the_wrong_type() {
    let data = data();
    says(
        &spec(Kind::Histogram, None, None),
        &data,
        "a histogram needs `x`: the number that is counted",
    );
    says(
        &spec(Kind::Ecdf, Some("nothing"), None),
        &data,
        "`x` is `nothing`, and there is no such column; there are `name`, `value`, `low`, `high`",
    );
    says(
        &spec(Kind::Scatter, Some("name"), Some("value")),
        &data,
        "`x` of a scatter must be a column of numbers, and `name` holds texts",
    );
    says(
        &spec(Kind::Histogram, Some("value"), Some("low")),
        &data,
        "a histogram does not take `y` (here column `low`); it takes `x`, `color`, `facet`",
    );
    let half =
        Spec { low: Some("low".to_string()), ..spec(Kind::Bar, Some("name"), Some("value")) };
    says(&half, &data, "`low` is column `low` and `high` is not given: an interval needs both");
}

#[test]
fn options_that_do_not_fit() {
    let data = data();
    let bins = Spec { bins: Some(3), ..spec(Kind::Ecdf, Some("value"), None) };
    says(&bins, &data, "an ecdf does not take `bins`");
    let wide = Spec { width: Some(f64::NAN), ..spec(Kind::Ecdf, Some("value"), None) };
    says(&wide, &data, "`width` is NaN; it must be 4 to 100 cm");
    let mut log = spec(Kind::Forest, Some("value"), Some("name"));
    (log.reference, log.x_scale) = (Some(0.0), Some(Scale::Log));
    says(&log, &data, "`reference` is 0; it must be above 0 on a logarithmic axis");
    let low = Spec {
        height: Some(2.0),
        title: Some("t".to_string()),
        ..spec(Kind::Ecdf, Some("value"), None)
    };
    assert!(matches!(draw(&low, &data), Err(FigureError::TooSmall { side: "height", .. })));
}

#[test]
fn rows_that_cannot_be_drawn() {
    let mut upside_down = spec(Kind::Forest, Some("value"), Some("name"));
    (upside_down.low, upside_down.high) = (Some("low".to_string()), Some("high".to_string()));
    says(&upside_down, &data(), "in row 2 `low` is 2.5 and above `high`, which is 2.25");
    let twice =
        Data::of([("m", texts(&["a", "b", "a"])), ("v", numbers(&[1.0, 2.0, 3.0]))]).unwrap();
    says(
        &spec(Kind::Bar, Some("m"), Some("v")),
        &twice,
        "rows 1 and 3 are both `m` = a; a bar shows one row for each: group the rows first",
    );
    let negative = Data::of([("m", texts(&["a", "b"])), ("v", numbers(&[1.0, -2.0]))]).unwrap();
    for kind in [Kind::Treemap, Kind::Funnel] {
        let words = format!("in row 2 column `v` is -2, and a {kind} cannot show less than 0");
        says(&spec(kind, Some("m"), Some("v")), &negative, &words);
    }
    let many: Vec<String> = (0..9).map(|i| format!("g{i}")).collect();
    let many = Data::of([
        ("v", numbers(&[1.0; 9])),
        ("g", Values::Texts(many.into_iter().map(Some).collect())),
    ])
    .unwrap();
    let groups = Spec { color: Some("g".to_string()), ..spec(Kind::Ecdf, Some("v"), None) };
    says(
        &groups,
        &many,
        "column `g` gives 9 groups, and an ecdf shows at most 8; filter or group the rows first",
    );
}

#[test]
fn nothing_to_draw_says_what_was_left_out() {
    let none = Data::of([("v", Values::Numbers(Vec::new()))]).unwrap();
    says(
        &spec(Kind::Histogram, Some("v"), None),
        &none,
        "there is nothing to draw: there are no rows",
    );
    let absent =
        Data::of([("v", Values::Numbers(vec![None, Some(f64::NAN), Some(f64::INFINITY)]))])
            .unwrap();
    says(
        &spec(Kind::Box, None, Some("v")),
        &absent,
        "there is nothing to draw: 1 row without `v`, 2 rows where `v` is not finite left out",
    );
    let zero = Data::of([("v", numbers(&[0.0, -1.0]))]).unwrap();
    let log = Spec { x_scale: Some(Scale::Log), ..spec(Kind::Histogram, Some("v"), None) };
    says(
        &log,
        &zero,
        "there is nothing to draw: 2 rows where `v` is not above 0, which a logarithmic axis needs left out",
    );
}

#[test]
fn what_is_left_out_is_counted_in_the_caption() {
    let values = Values::Numbers(vec![Some(1.0), None, Some(f64::NAN), Some(2.0)]);
    let data = Data::of([("v", values), ("g", texts(&["a", "a", "b", "b"]))]).unwrap();
    let spec = Spec {
        color: Some("g".to_string()),
        caption: Some("Two rows".to_string()),
        ..spec(Kind::Ecdf, Some("v"), None)
    };
    let caption = draw(&spec, &data).unwrap().caption;
    assert!(
        caption.starts_with("Two rows. n = 2 (a: 1, b: 1); 1 row without `v`, 1 row where `v` is not finite left out."),
        "{caption}"
    );
}

#[test]
fn columns_of_different_lengths_or_of_one_name() {
    let error = Data::of([("a", numbers(&[1.0])), ("b", numbers(&[1.0, 2.0]))]).unwrap_err();
    assert_eq!(error.to_string(), "column `b` has 2 rows where the others have 1");
    let error = Data::of([("a", numbers(&[1.0])), ("a", numbers(&[1.0]))]).unwrap_err();
    assert_eq!(error.to_string(), "there are two columns `a`");
}
