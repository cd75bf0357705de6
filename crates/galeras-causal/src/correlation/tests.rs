//! Tests of the correlations: against scipy, by brute force, by invariance, refusals. Tests of
//! the ranks and of the twofold sums, which the correlations are made of, are here too.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::rank::average_ranks;
use crate::tests::{Table, json};

const ALL: [CorrelationMethod; 3] =
    [CorrelationMethod::Pearson, CorrelationMethod::Spearman, CorrelationMethod::Kendall];

#[track_caller]
fn close(found: f64, expected: f64, relative: f64, what: &Value) {
    let distance = (found - expected).abs();
    // Denormal numbers have no six digits.
    let limit = relative * expected.abs() + 1e-306;
    assert!(distance <= limit, "{found:e} instead of {expected:e}: {what}");
}

fn number(entry: &Value, key: &str) -> f64 {
    entry[key].as_f64().unwrap()
}

fn text<'a>(entry: &'a Value, key: &str) -> &'a str {
    entry[key].as_str().unwrap()
}

#[test]
fn pairs_of_the_reference_tables_equal_scipy() {
    let references = json("correlations.json");
    let mut tables = std::collections::BTreeMap::new();
    for entry in references["pairs"].as_array().unwrap() {
        let file = text(entry, "file");
        let table = tables.entry(file).or_insert_with(|| Table::read(&format!("causal/{file}")));
        let rows = entry["rows"].as_u64().unwrap() as usize;
        let [x, y] = ["x", "y"].map(|name| &table.column(text(entry, name))[..rows]);
        let method = method_of(entry);
        let found = correlation(x, y, method, 0.05).unwrap();
        assert_eq!(found.n, rows);
        // A coefficient near zero has the absolute error of its sums.
        let r = number(entry, "r");
        assert!((found.coefficient - r).abs() <= 1e-9 * r.abs().max(1e-3), "{entry}");
        // For a perfect order of ranks SciPy has the limit of its approximation, 0.
        if (method, found.coefficient.abs()) != (CorrelationMethod::Spearman, 1.0) {
            close(found.p_value, number(entry, "p"), 1e-6, entry);
        }
        if entry.get("low").is_some() && found.coefficient.abs() < 1.0 {
            let (low, high) = found.interval.unwrap();
            assert!((low - number(entry, "low")).abs() < 1e-9, "{entry}");
            assert!((high - number(entry, "high")).abs() < 1e-9, "{entry}");
        }
    }
}

fn method_of(entry: &Value) -> CorrelationMethod {
    match text(entry, "method") {
        "pearson" => CorrelationMethod::Pearson,
        "spearman" => CorrelationMethod::Spearman,
        _ => CorrelationMethod::Kendall,
    }
}

#[test]
fn clustered_intervals_are_those_of_the_jackknife() {
    for entry in json("correlations.json")["clustered"].as_array().unwrap() {
        let table = Table::read(&format!("causal/{}", text(entry, "file")));
        let [rows, clusters] = ["rows", "clusters"].map(|key| entry[key].as_u64().unwrap());
        let [x, y] = ["x", "y"].map(|name| &table.column(text(entry, name))[..rows as usize]);
        let codes: Vec<u32> = (0..rows).map(|row| (row % clusters) as u32).collect();
        let found = clustered_correlation(x, y, &codes, method_of(entry), 0.05).unwrap();
        assert_eq!(found.n, x.len());
        let (low, high) = found.interval.unwrap();
        for (found, key) in [(found.coefficient, "r"), (low, "low"), (high, "high")] {
            assert!((found - number(entry, key)).abs() < 1e-9, "{key}: {entry}");
        }
        close(found.p_value, number(entry, "p"), 1e-6, entry);
    }
}

#[test]
fn few_or_equal_clusters_have_no_standard_error() {
    let x: Vec<f64> = (0..30).map(|row| f64::from(row % 7)).collect();
    let y: Vec<f64> = (0..30).map(|row| f64::from(row * row % 11)).collect();
    let in_clusters = |x: &[f64], y: &[f64], clusters: u32| {
        let codes: Vec<u32> = (0..30).map(|row| row % clusters).collect();
        let found = clustered_correlation(x, y, &codes, CorrelationMethod::Pearson, 0.05);
        found.map(|found| found.p_value).map_err(|refusal| refusal.to_string())
    };
    assert!(in_clusters(&x, &y, 6).is_ok());
    let few = "too few clusters: 5, at least 6 are needed";
    assert_eq!(in_clusters(&x, &y, 5), Err(few.into()));
    let line = in_clusters(&x, &x, 10).unwrap_err();
    assert!(line.starts_with("the coefficient is 1 or -1"), "{line}");
    let one: Vec<f64> = (0..30).map(|row| f64::from(u8::from(row % 10 == 3))).collect();
    let constant = in_clusters(&x, &one, 10).unwrap_err();
    assert!(constant.contains("one value only where the rows of one cluster"), "{constant}");
}

#[test]
fn partial_correlations_equal_those_of_residuals() {
    for entry in json("correlations.json")["partial"].as_array().unwrap() {
        let table = Table::read(&format!("causal/{}", text(entry, "file")));
        let given = entry["given"].as_array().unwrap().iter();
        let given: Vec<&[f64]> = given.map(|name| table.column(name.as_str().unwrap())).collect();
        let [x, y] = ["x", "y"].map(|name| table.column(text(entry, name)));
        let found = partial(x, y, &given, 0.05).unwrap();
        close(found.coefficient, number(entry, "r"), 1e-9, entry);
        close(found.p_value, number(entry, "p"), 1e-6, entry);
        let (low, high) = found.interval.unwrap();
        assert!(low < found.coefficient && found.coefficient < high);
    }
}

#[test]
fn partial_given_nothing_is_pearson_and_given_one_follows_the_recursion() {
    let table = Table::read("causal/nhefs.csv");
    let [x, y, z] = table.columns(["age", "wt82_71", "smokeyrs"]);
    let pearson = |a, b| correlation(a, b, CorrelationMethod::Pearson, 0.05).unwrap();
    assert_eq!(partial(x, y, &[], 0.05), Ok(pearson(x, y)));
    let [xy, xz, yz] = [pearson(x, y), pearson(x, z), pearson(y, z)].map(|c| c.coefficient);
    let expected = (xy - xz * yz) / ((1.0 - xz * xz) * (1.0 - yz * yz)).sqrt();
    let found = partial(x, y, &[z], 0.05).unwrap().coefficient;
    assert!((found - expected).abs() < 1e-13, "{found} {expected}");
}

#[test]
fn intervals_of_ranks_follow_bonett_and_wright_and_fieller() {
    // r is 23 / 35 and tau 7 / 15.
    let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let y = [2.0, 1.0, 4.0, 6.0, 3.0, 5.0];
    let spearman = correlation(&x, &y, CorrelationMethod::Spearman, 0.05).unwrap();
    let kendall = correlation(&x, &y, CorrelationMethod::Kendall, 0.05).unwrap();
    let expected = |r: f64, error: f64| {
        let half = 1.959963984540054 * error;
        ((r.atanh() - half).tanh(), (r.atanh() + half).tanh())
    };
    for (found, error) in [
        (spearman, ((1.0 + spearman.coefficient.powi(2) / 2.0) / 3.0).sqrt()),
        (kendall, (0.437f64 / 2.0).sqrt()),
    ] {
        let (low, high) = expected(found.coefficient, error);
        let (found_low, found_high) = found.interval.unwrap();
        assert!((low - found_low).abs() < 1e-12 && (high - found_high).abs() < 1e-12);
    }
    assert!((spearman.coefficient - 0.6571428571428571).abs() < 1e-15);
    assert_eq!(kendall.coefficient, 7.0 / 15.0);
}

#[test]
fn perfect_correlations_have_p_and_no_interval() {
    let x: Vec<f64> = (0..40).map(|i| f64::from(i) * 0.1).collect();
    let y: Vec<f64> = x.iter().map(|x| 7.3 - x / 3.0).collect();
    for method in ALL {
        let found = correlation(&x, &y, method, 0.05).unwrap();
        assert_eq!((found.coefficient, found.interval), (-1.0, None));
        // 2 of the orders of 40 ranks.
        let expected = if method == CorrelationMethod::Pearson { 0.0 } else { 2.45e-48 };
        assert!((found.p_value - expected).abs() < 1e-50, "{found:?}");
    }
}

/// By counting orders: how many of those of the ranks of y are as perfect as the one given.
#[test]
fn perfect_orders_of_few_rows_have_exact_p() {
    for (x, expected) in [
        (vec![1.0, 2.0, 3.0], 2.0 / 6.0),
        (vec![1.0, 2.0, 3.0, 4.0], 2.0 / 24.0),
        (vec![4.0, 1.0, 3.0, 2.0, 9.0], 2.0 / 120.0),
        // One direction only: with the pair at the other end there is no perfect order.
        (vec![1.0, 1.0, 3.0], 2.0 / 6.0),
        (vec![1.0, 1.0, 3.0, 3.0], 2.0 * 4.0 / 24.0),
    ] {
        let found = correlation(&x, &x, CorrelationMethod::Spearman, 0.05).unwrap();
        assert!((found.p_value - expected).abs() < 1e-14, "{x:?} {found:?}");
    }
}

#[test]
fn nearly_perfect_correlations_keep_the_digits_of_their_distance_from_one() {
    // y = x + e with e = +-1e-6 orthogonal to x and 1: 1 - r^2 = see / (sxx + see) exactly.
    let x = [-3.0, -1.0, 1.0, 3.0];
    let e = [1e-6, -1e-6, -1e-6, 1e-6];
    let y: Vec<f64> = x.iter().zip(e).map(|(x, e)| x + e).collect();
    let found = correlation(&x, &y, CorrelationMethod::Pearson, 0.05).unwrap();
    // With two degrees of freedom p is 1 - |r| (up to 2e-10 relative of (1 - r^2) / 2).
    let complement = 4e-12 / (20.0 + 4e-12);
    assert!((found.p_value / (complement / 2.0) - 1.0).abs() < 1e-8, "{found:?}");
    assert!(found.coefficient < 1.0 && found.interval.is_some());
}

#[test]
fn far_from_zero_the_digits_stay() {
    let small = [0.001, 0.007, 0.003, 0.010, 0.004, 0.0];
    let y = [3.0, 8.0, 2.0, 9.0, 5.0, 1.0];
    let base = 1_073_741_824.0;
    // Multiples of 2^-20 are exact beside 2^30.
    let ticks: Vec<f64> = small.iter().map(|v: &f64| (v * 1_048_576.0).round()).collect();
    let far: Vec<f64> = ticks.iter().map(|tick| base + tick / 1_048_576.0).collect();
    for method in ALL {
        assert_eq!(correlation(&ticks, &y, method, 0.1), correlation(&far, &y, method, 0.1));
    }
    // Powers of two change nothing, at either end of the range of doubles.
    for factor in [2f64.powi(-1000), 2f64.powi(1000), -2f64.powi(1009)] {
        let scaled: Vec<f64> = ticks.iter().map(|v| v * factor).collect();
        let found = correlation(&scaled, &y, CorrelationMethod::Pearson, 0.05).unwrap();
        let plain = correlation(&ticks, &y, CorrelationMethod::Pearson, 0.05).unwrap();
        assert_eq!(found.coefficient.abs(), plain.coefficient);
        assert_eq!(found.p_value, plain.p_value);
    }
}

#[test]
fn impossible_correlations_are_refused() {
    let x = [1.0, 2.0, 4.0, 3.0];
    let tenths = [0.3, 0.1 + 0.2, 0.3, 0.3];
    for method in ALL {
        let of = |x: &[f64], y: &[f64]| correlation(x, y, method, 0.05).unwrap_err();
        assert_eq!(of(&x, &[5.0; 4]), Refusal::Constant(ColumnRef::Y));
        assert_eq!(of(&tenths, &x), Refusal::Constant(ColumnRef::X));
        assert_eq!(of(&[0.0; 4], &x), Refusal::Constant(ColumnRef::X));
        assert_eq!(of(&x[..2], &x[..2]), Refusal::TooFew { what: "rows", found: 2, needed: 3 });
        assert_eq!(of(&[], &[]), Refusal::TooFew { what: "rows", found: 0, needed: 3 });
        assert!(matches!(of(&x, &x[..3]), Refusal::UnusableColumn { .. }));
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let text = of(&x, &[1.0, value, 2.0, 3.0]).to_string();
            assert!(text.starts_with("`y` is ") && text.contains("row 1"), "{text}");
        }
        for alpha in [0.0, 1.0, -1.0, f64::NAN] {
            assert!(correlation(&x, &x, method, alpha).is_err());
        }
    }
    let z = [1.0, 5.0, 2.0, 2.5];
    let twice = z.map(|v| 3.0 - 2.0 * v);
    let of = |x: &[f64], y: &[f64], given: &[&[f64]]| partial(x, y, given, 0.05).unwrap_err();
    assert_eq!(of(&x, &twice, &[&z]), Refusal::Collinear { column: ColumnRef::Y });
    assert_eq!(of(&x, &z, &[&z, &twice]), Refusal::TooFew { what: "rows", found: 4, needed: 5 });
    assert_eq!(of(&x, &z, &[&[1.0; 4]]), Refusal::Constant(ColumnRef::Covariate(0)));
    assert!(matches!(of(&x, &z, &[&z[..2]]), Refusal::UnusableColumn { .. }));
}

#[test]
fn small_samples_have_no_interval() {
    let (x, y) = ([1.0, 2.0, 4.0, 3.0], [2.0, 1.0, 3.0, 4.0]);
    let interval =
        |rows: usize, method| correlation(&x[..rows], &y[..rows], method, 0.05).unwrap().interval;
    assert_eq!(ALL.map(|method| interval(3, method)), [None; 3]);
    assert_eq!(ALL.map(|method| interval(4, method).is_some()), [true, true, false]);
}

#[test]
fn ranks_share_the_mean_of_ties() {
    let found = average_ranks(&[3.0, 1.0, 3.0, -0.0, 0.0, 3.0, 9.0]);
    assert_eq!(found.ranks, [5.0, 3.0, 5.0, 1.5, 1.5, 5.0, 7.0]);
    assert_eq!(found.ties, [2, 3]);
    assert_eq!(found.tie_term(), 6.0 + 24.0);
    assert_eq!(average_ranks(&[]).ranks, [0.0; 0]);
    assert_eq!(average_ranks(&[f64::NAN, 1.0, f64::NAN]).ranks.len(), 3);
}

#[test]
fn twofold_sums_keep_what_cancels() {
    let values = [1e16, 1.0, -1e16, 1e-17, 3.0, 1e100, -1e100];
    let sum = compensated::sum(values[..5].iter().copied());
    assert_eq!((sum.high, sum.low), (4.0, 1e-17));
    assert_eq!(compensated::mean(&[f64::MAX, f64::MAX, f64::MAX]), f64::MAX);
    assert_eq!(compensated::mean(&[5e-324, 5e-324]), 5e-324);
    assert_eq!(compensated::mean(&[]), 0.0);
    let two = compensated::Twofold { high: 2.0, low: 0.0 };
    let root = two.root();
    let rest = root.times(root).plus(two.negated());
    assert!(rest.high.abs() < 1e-31 && root.over(root).high == 1.0);
}

/// Counts pairs one by one: total, discordant, same minus opposite order, ties of x and of y.
fn count_slowly(x: &[f64], y: &[f64]) -> [i128; 5] {
    let mut counts = [0; 5];
    for i in 0..x.len() {
        for j in 0..i {
            let (a, b) = (x[i] - x[j], y[i] - y[j]);
            counts[0] += 1;
            counts[1] += i128::from(a * b < 0.0);
            counts[2] += i128::from(a * b > 0.0) - i128::from(a * b < 0.0);
            counts[3] += i128::from(a == 0.0);
            counts[4] += i128::from(b == 0.0);
        }
    }
    counts
}

fn two_columns() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    prop::collection::vec((0i32..9, -20i32..20), 3..60)
        .prop_map(|rows| rows.into_iter().map(|(a, b)| (f64::from(a), f64::from(b))).unzip())
}

proptest! {
    #[test]
    fn pairs_are_those_counted_one_by_one((x, y) in two_columns()) {
        let found = count(&x, &y);
        let [a, b] = found.ties;
        let found = [found.total, found.discordant, found.excess, a.pairs, b.pairs];
        prop_assert_eq!(found, count_slowly(&x, &y));
    }

    #[test]
    fn rows_may_come_in_any_order(
        rows in prop::collection::vec((-1e3f64..1e3, -1e9f64..1e9, 0u64..u64::MAX), 3..50),
    ) {
        let mut moved = rows.clone();
        moved.sort_by_key(|row| row.2);
        let columns = |rows: &[(f64, f64, u64)]| -> (Vec<f64>, Vec<f64>) {
            rows.iter().map(|&(x, y, _)| (x, y)).unzip()
        };
        let ((x, y), (u, v)) = (columns(&rows), columns(&moved));
        for method in ALL {
            let first = correlation(&x, &y, method, 0.05);
            prop_assert_eq!(&first, &correlation(&u, &v, method, 0.05));
            prop_assert_eq!(first.is_ok(), correlation(&y, &x, method, 0.05).is_ok());
        }
    }

    #[test]
    fn shift_and_scale_change_the_sign_at_most((x, y) in two_columns(), shift in -9i32..9) {
        let moved: Vec<f64> = x.iter().map(|x| f64::from(shift) - 4.0 * x).collect();
        for method in ALL {
            let (a, b) = (correlation(&x, &y, method, 0.05), correlation(&moved, &y, method, 0.05));
            prop_assert_eq!(a.is_ok(), b.is_ok());
            if let (Ok(a), Ok(b)) = (a, b) {
                prop_assert_eq!(a.coefficient, -b.coefficient);
                prop_assert_eq!(a.p_value, b.p_value);
                prop_assert!((0.0..=1.0).contains(&a.p_value), "{a:?}");
                prop_assert!(a.coefficient.abs() <= 1.0);
                if let Some((low, high)) = a.interval {
                    prop_assert!(-1.0 <= low && low <= a.coefficient);
                    prop_assert!(a.coefficient <= high && high <= 1.0);
                }
            }
        }
    }

    #[test]
    fn any_doubles_give_an_answer_or_a_refusal(
        rows in prop::collection::vec((any::<f64>(), any::<f64>(), any::<f64>()), 0..12),
    ) {
        let (x, y, z): (Vec<f64>, Vec<f64>, Vec<f64>) = rows.into_iter().collect();
        for method in ALL {
            if let Ok(found) = correlation(&x, &y, method, 0.05) {
                prop_assert!(found.coefficient.abs() <= 1.0, "{found:?}");
                prop_assert!((0.0..=1.0).contains(&found.p_value), "{found:?}");
            }
        }
        if let Ok(found) = partial(&x, &y, &[&z], 0.05) {
            prop_assert!(found.coefficient.abs() <= 1.0 && found.p_value <= 1.0, "{found:?}");
        }
    }
}
