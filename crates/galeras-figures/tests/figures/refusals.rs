//! A figure that cannot be drawn is refused in a sentence that names the column.

use galeras_figures::{Data, FigureError, Kind, Scale, Spec, draw};

use crate::samples::{column, numbers, spec, table};

#[test]
fn a_figure_that_cannot_be_drawn_is_refused_in_a_sentence() {
    let data =
        &table("name | value | low | high\na | 1 | 0.5 | 1.5\nb | 2 | 2.5 | 2.25\nc | 3 | 2 | 4");
    let same = &table("m | v\na | 1\nb | 2\na | 3");
    let negative = &table("m | v\na | 1\nb | -2");
    let many = &table("v | g\n1 | a\n1 | b\n1 | c\n1 | d\n1 | e\n1 | f\n1 | g\n1 | h\n1 | i");
    let none = &table("v");
    let absent = &table("v | w\n | a\nNaN | a\ninf | a");
    let zero = &table("v\n0\n-1");
    let ecdf = || spec(Kind::ECDF, "x=value");
    let forest = |more: &str| spec(Kind::FOREST, &format!("x=value, y=name{more}"));
    let (x_scale, width) = (Some(Scale::Log), Some(f64::NAN));
    let cases = [
        // Columns that are missing or of the wrong type.
        (spec(Kind::HISTOGRAM, ""), data),
        (spec(Kind::ECDF, "x=nothing"), data),
        (spec(Kind::SCATTER, "x=name, y=value"), data),
        (spec(Kind::HISTOGRAM, "x=value, y=low"), data),
        (spec(Kind::BAR, "x=name, y=value, low=low"), data),
        // Options that do not fit.
        (Spec { bins: Some(3), ..ecdf() }, data),
        (Spec { width, ..ecdf() }, data),
        (Spec { reference: Some(0.0), x_scale, ..forest("") }, data),
        // Rows that cannot be drawn.
        (forest(", low=low, high=high"), data),
        (spec(Kind::BAR, "x=m, y=v"), same),
        (spec(Kind::TREEMAP, "x=m, y=v"), negative),
        (spec(Kind::FUNNEL, "x=m, y=v"), negative),
        (spec(Kind::ECDF, "x=v, color=g"), many),
        // Nothing to draw.
        (spec(Kind::HISTOGRAM, "x=v"), none),
        (spec(Kind::BOX, "y=v"), absent),
        (Spec { x_scale, ..spec(Kind::HISTOGRAM, "x=v") }, zero),
    ];
    let refusal = |(spec, data): (Spec, &Result<Data, FigureError>)| {
        draw(&spec, data.as_ref().unwrap()).unwrap_err().to_string()
    };
    let refusals: Vec<String> = cases.into_iter().map(refusal).collect();
    let expected = "\
a histogram needs `x`: the number that is counted
`x` is `nothing`, and there is no such column; there are `name`, `value`, `low`, `high`
`x` of a scatter must be a column of numbers, and `name` holds texts
a histogram does not take `y` (here column `low`); it takes `x`, `color`, `facet`
`low` is column `low` and `high` is not given: an interval needs both
an ecdf does not take `bins`
`width` is NaN; it must be 4 to 100 cm
`reference` is 0; it must be above 0 on a logarithmic axis
in row 2 `low` is 2.5 and above `high`, which is 2.25
rows 1 and 3 are both `m` = a; a bar shows one row for each: group the rows first
in row 2 column `v` is -2, and a treemap cannot show less than 0
in row 2 column `v` is -2, and a funnel cannot show less than 0
column `g` gives 9 groups, and an ecdf shows at most 8; filter or group the rows first
there is nothing to draw: there are no rows
there is nothing to draw: 1 row without `v`, 2 rows where `v` is not finite left out
there is nothing to draw: 2 rows where `v` is not above 0, which a logarithmic axis needs left out";
    assert_eq!(refusals.join("\n"), expected);
    let low = Spec { height: Some(2.0), title: Some("t".to_string()), ..ecdf() };
    let error = draw(&low, data.as_ref().unwrap()).unwrap_err();
    let is_height = error.to_string().ends_with(" cm of height are needed");
    assert!(matches!(error, FigureError::TooSmall(_)) && is_height, "{error}");
}

#[test]
fn what_is_left_out_is_counted_in_the_caption() {
    let data = table("v | g\n1 | a\n| a\nNaN | b\n2 | b").unwrap();
    let caption = Some("Two rows".to_string());
    let caption =
        draw(&Spec { caption, ..spec(Kind::ECDF, "x=v, color=g") }, &data).unwrap().caption;
    let start =
        "Two rows. n = 2 (a: 1, b: 1); 1 row without `v`, 1 row where `v` is not finite left out.";
    assert!(caption.starts_with(start), "{caption}");
}

#[test]
fn columns_of_different_lengths_or_of_one_name() {
    for (name, rows, message) in [
        ("b", 2, "column `b` has 2 rows where the others have 1"),
        ("a", 1, "there are two columns `a`"),
    ] {
        let other = column(name, numbers(&vec![1.0; rows]));
        let error = Data::new(vec![column("a", numbers(&[1.0])), other]);
        assert_eq!(error.unwrap_err().to_string(), message);
    }
}
