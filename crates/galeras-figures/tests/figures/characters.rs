//! Figures of characters.

use galeras_figures::{FigureError, Kind, Spec, terminal};

use crate::samples::{self, data_of, numbers, spec, table, texts};

#[test]
fn a_histogram_has_a_line_for_each_bin() {
    let data = data_of([("v", numbers(&[1.0, 1.5, 2.0, 2.5, 2.6, 5.0]))]);
    let spec = Spec { bins: Some(4), ..spec(Kind::HISTOGRAM, "x=v") };
    let drawn = terminal(&spec, &data, 40, 20, false).unwrap();
    let expected = "\
1 – 2 │████████████████████▋ 2
2 – 3 │███████████████████████████████ 3
3 – 4 │ 0
4 – 5 │██████████▍ 1
n = 6
";
    assert_eq!(drawn, expected);
}

#[test]
fn a_forest_has_its_estimates_between_their_ends() {
    let data = table("e | o | low | high\n1 | up | 0 | 2\n-1 | down | |").unwrap();
    let spec = spec(Kind::FOREST, "x=e, y=o, low=low, high=high");
    let drawn = terminal(&spec, &data, 60, 20, false).unwrap();
    let lines: Vec<&str> = drawn.lines().collect();
    let at = |line: &str, c: char| line.chars().position(|x| x == c).unwrap();
    let (left, mark, right) = (at(lines[0], '├'), at(lines[0], '●'), at(lines[0], '┤'));
    assert!(mark.abs_diff((left + right) / 2) <= 1, "{drawn}");
    let (zero, hollow) = (at(lines[1], '│'), at(lines[1], '○'));
    assert!(zero.abs_diff(left) <= 1 && (left - hollow).abs_diff(mark - left) <= 1, "{drawn}");
    assert!(lines[0].ends_with("1.00 [0.00, 2.00]") && lines[1].ends_with("−1"));
    // A row is an estimate from many data points.
    assert!(drawn.ends_with("2 estimates\n"), "{drawn}");
    // What others are compared with comes first, unless the order of the rows is meant.
    let data = table("e | o\n1 | T1\n2 | control").unwrap();
    let spec = samples::spec(Kind::FOREST, "x=e, y=o");
    for (control_first, first) in [(true, "control"), (false, "T1")] {
        let spec = Spec { control_first, ..spec.clone() };
        let drawn = terminal(&spec, &data, 60, 20, false).unwrap();
        assert!(drawn.trim_start().starts_with(first), "{drawn}");
    }
}

#[test]
fn lines_are_no_longer_and_no_more_than_there_is_room_for() {
    for (name, spec, data) in samples::all().unwrap() {
        for (columns, rows) in [(30, 6), (80, 24), (200, 60)] {
            let drawn = match terminal(&spec, &data, columns, rows, false) {
                Ok(drawn) => drawn,
                Err(FigureError::NoTerminal(_)) => continue,
                Err(error) => panic!("{name}: {error}"),
            };
            let widest = drawn.lines().map(|l| l.chars().count()).max().unwrap();
            assert!(widest <= columns, "{name} {columns}:\n{drawn}");
            // Six groups have more than six lines, however few there are.
            assert!(rows == 6 || drawn.lines().count() <= rows, "{name} {rows}:\n{drawn}");
        }
    }
}

#[test]
fn texts_of_the_data_do_nothing_to_a_terminal() {
    let names = texts(&["\u{1b}[2Jgone", "\u{202e}back\nand more"]);
    let data = data_of([("e", numbers(&[1.0, 2.0])), ("o", names)]);
    let title = Some("\u{7}bell".to_string());
    let spec = Spec { title, ..spec(Kind::FOREST, "x=e, y=o") };
    let drawn = terminal(&spec, &data, 80, 20, false).unwrap();
    assert!(!drawn.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{drawn:?}");
    assert!(drawn.contains("\\u{1b}[2Jgone") && drawn.contains("back\\nand more"));
    let coloured = terminal(&spec, &data, 80, 20, true).unwrap();
    assert!(coloured.contains("\u{1b}[34m") && coloured.contains("\u{1b}[0m"));
}
