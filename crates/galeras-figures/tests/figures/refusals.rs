//! A figure that cannot be drawn is refused in a sentence that names the column.

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

fn name(column: &str) -> Option<String> {
    Some(column.to_string())
}

#[test]
fn a_figure_that_cannot_be_drawn_is_refused_in_a_sentence() {
    let data = data();
    let of = |columns| Data::of(columns).unwrap();
    let same = of([("m", texts(&["a", "b", "a"])), ("v", numbers(&[1.0, 2.0, 3.0]))]);
    let negative = of([("m", texts(&["a", "b"])), ("v", numbers(&[1.0, -2.0]))]);
    let groups = (0..9).map(|i| Some(format!("g{i}"))).collect();
    let many = of([("v", numbers(&[1.0; 9])), ("g", Values::Texts(groups))]);
    let none = Data::of([("v", Values::Numbers(Vec::new()))]).unwrap();
    let absent = Values::Numbers(vec![None, Some(f64::NAN), Some(f64::INFINITY)]);
    let absent = Data::of([("v", absent)]).unwrap();
    let zero = Data::of([("v", numbers(&[0.0, -1.0]))]).unwrap();
    let bar = || spec(Kind::BAR, Some("name"), Some("value"));
    let forest = || spec(Kind::FOREST, Some("value"), Some("name"));
    let ecdf = || spec(Kind::ECDF, Some("value"), None);
    let log = Some(Scale::Log);
    let cases = [
        // Columns that are missing or of the wrong type.
        (
            spec(Kind::HISTOGRAM, None, None),
            &data,
            "a histogram needs `x`: the number that is counted",
        ),
        (
            spec(Kind::ECDF, Some("nothing"), None),
            &data,
            "`x` is `nothing`, and there is no such column; there are `name`, `value`, `low`, `high`",
        ),
        (
            spec(Kind::SCATTER, Some("name"), Some("value")),
            &data,
            "`x` of a scatter must be a column of numbers, and `name` holds texts",
        ),
        (
            spec(Kind::HISTOGRAM, Some("value"), Some("low")),
            &data,
            "a histogram does not take `y` (here column `low`); it takes `x`, `color`, `facet`",
        ),
        (
            Spec { low: name("low"), ..bar() },
            &data,
            "`low` is column `low` and `high` is not given: an interval needs both",
        ),
        // Options that do not fit.
        (Spec { bins: Some(3), ..ecdf() }, &data, "an ecdf does not take `bins`"),
        (Spec { width: Some(f64::NAN), ..ecdf() }, &data, "`width` is NaN; it must be 4 to 100 cm"),
        (
            Spec { reference: Some(0.0), x_scale: log, ..forest() },
            &data,
            "`reference` is 0; it must be above 0 on a logarithmic axis",
        ),
        // Rows that cannot be drawn.
        (
            Spec { low: name("low"), high: name("high"), ..forest() },
            &data,
            "in row 2 `low` is 2.5 and above `high`, which is 2.25",
        ),
        (
            spec(Kind::BAR, Some("m"), Some("v")),
            &same,
            "rows 1 and 3 are both `m` = a; a bar shows one row for each: group the rows first",
        ),
        (
            spec(Kind::TREEMAP, Some("m"), Some("v")),
            &negative,
            "in row 2 column `v` is -2, and a treemap cannot show less than 0",
        ),
        (
            spec(Kind::FUNNEL, Some("m"), Some("v")),
            &negative,
            "in row 2 column `v` is -2, and a funnel cannot show less than 0",
        ),
        (
            Spec { color: name("g"), ..spec(Kind::ECDF, Some("v"), None) },
            &many,
            "column `g` gives 9 groups, and an ecdf shows at most 8; filter or group the rows first",
        ),
        // Nothing to draw.
        (
            spec(Kind::HISTOGRAM, Some("v"), None),
            &none,
            "there is nothing to draw: there are no rows",
        ),
        (
            spec(Kind::BOX, None, Some("v")),
            &absent,
            "there is nothing to draw: 1 row without `v`, 2 rows where `v` is not finite left out",
        ),
        (
            Spec { x_scale: log, ..spec(Kind::HISTOGRAM, Some("v"), None) },
            &zero,
            "there is nothing to draw: 2 rows where `v` is not above 0, which a logarithmic axis needs left out",
        ),
    ];
    for (spec, data, words) in cases {
        assert_eq!(draw(&spec, data).unwrap_err().to_string(), words);
    }
    let low = Spec { height: Some(2.0), title: name("t"), ..ecdf() };
    assert!(matches!(draw(&low, &data), Err(FigureError::TooSmall { side: "height", .. })));
}

#[test]
fn what_is_left_out_is_counted_in_the_caption() {
    let values = Values::Numbers(vec![Some(1.0), None, Some(f64::NAN), Some(2.0)]);
    let data = Data::of([("v", values), ("g", texts(&["a", "a", "b", "b"]))]).unwrap();
    let spec = Spec {
        color: Some("g".to_string()),
        caption: Some("Two rows".to_string()),
        ..spec(Kind::ECDF, Some("v"), None)
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
