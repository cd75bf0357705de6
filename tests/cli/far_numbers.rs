//! Whole numbers beyond 2^53 and columns far from zero: sums of them are exact, and estimates do not
//! depend on the distance, or are refused. `tests/reference/far_numbers.json` has moments and coefficients
//! from fractions; the script next to it makes it.

use serde_json::Value;

use crate::harness::{Project, says, text};
use crate::regress_tables::{csv, equal, find, holds, noise, number, ran};

fn exact() -> Value {
    serde_json::from_str(include_str!("../reference/far_numbers.json")).unwrap()
}

/// The rows of the reference, with `x` and `z` as signed and, beyond 2^63, as unsigned numbers, and
/// `near_x` and `near_z`, which are as far apart and doubles; then these steps.
#[track_caller]
fn wide(steps: &str) -> Project {
    let project = Project::steps(&format!(
        "  data: {{ op: read, with: {{ path: data.csv }} }}
  wide:
    op: sql
    from: data
    with:
      query: |
        SELECT *, CAST(x AS BIGINT UNSIGNED) + CAST(9223372036854775807 AS BIGINT UNSIGNED) AS ux,
          CAST(z AS BIGINT UNSIGNED) + CAST(9223372036854775807 AS BIGINT UNSIGNED) AS uz,
          CAST(x - 1152921504606846976 AS DOUBLE) AS near_x,
          CAST(z - 2305843009213693952 AS DOUBLE) AS near_z FROM input
      key: [id]
{steps}"
    ));
    project.with("data.csv", text(&exact(), "csv")).ran()
}

#[test]
fn coefficients_and_descriptions_are_those_of_fractions_and_of_the_numbers_near_zero() {
    let methods = ["pearson", "spearman", "kendall"];
    let steps = methods.map(|method| {
        format!(
            "  {method}: {{ op: correlate, from: wide, with: {{ outcomes: [z, uz, y, near_z], \
             variables: [x, ux, near_x], method: {method} }} }}\n"
        )
    });
    let (peer, project) = (exact(), wide(&steps.concat()));
    for method in methods {
        let rows = project.rows(method);
        for outcome in ["z", "uz", "y"] {
            let near = if outcome == "y" { "y" } else { "near_z" };
            let near = find(&rows, &[("outcome", near), ("variable", "near_x")]);
            for variable in ["x", "ux"] {
                let row = find(&rows, &[("outcome", outcome), ("variable", variable)]);
                let column = if outcome == "y" { "y" } else { "z" };
                let wanted = peer["with_x"][column][method].as_f64().unwrap();
                holds(row, "coefficient", wanted, 1e-11);
                for name in ["coefficient", "ci_low", "ci_high", "p_value", "n"] {
                    assert_eq!(row[name], near[name], "{name} of {row}");
                }
            }
        }
    }
    let columns = "columns: [x, ux, z, uz, y, near_x, near_z]";
    let project = wide(&format!(
        "  plain: {{ op: describe, from: wide, with: {{ {columns} }} }}
  clustered: {{ op: describe, from: wide, with: {{ {columns}, cluster: place }} }}
"
    ));
    let peer = exact();
    let (plain, clustered) = (project.rows("plain"), project.rows("clustered"));
    for (column, like) in [("x", "x"), ("ux", "x"), ("z", "z"), ("uz", "z"), ("y", "y")] {
        let wanted = |name: &str| peer["columns"][like][name].as_f64().unwrap();
        let row = find(&plain, &[("column", column)]);
        assert_eq!(number(row, "std"), wanted("std"), "{row}");
        if column == like {
            assert_eq!(number(row, "mean"), wanted("mean"), "{row}");
        }
        holds(row, "standard_error", wanted("standard_error"), 1e-14);
        let row = find(&clustered, &[("column", column)]);
        holds(row, "standard_error", wanted("clustered_error"), 1e-12);
    }
    for near in ["near_x", "near_z"] {
        let wanted = peer["columns"][&near[5..]]["clustered_error"].as_f64().unwrap();
        holds(find(&clustered, &[("column", near)]), "standard_error", wanted, 1e-12);
    }
}

/// How far from zero columns are put. Values are multiples of an eighth, which are doubles there.
const OFFSETS: [f64; 2] = [1e12, 1e15];

fn eighths(eighths: i64, offset: f64) -> String {
    format!("{:.3}", offset + eighths as f64 / 8.0)
}

/// 160 rows of 80 units: arm, outcome, a covariate, another one of units, an instrument and a dose. The
/// numbers but the instrument lie at `offset`.
fn table(offset: f64) -> String {
    let rows = (0..160u64).map(|i| {
        let (unit, size) = (i / 2, noise(i, 3));
        let arm = i64::from((noise(i, 1) + size) % 100 > 50);
        let of_unit = noise(unit, 5);
        let y = 24 * arm + size / 2 + noise(i, 4) / 3 + arm * of_unit / 4;
        let [y, size, age] = [y, size, of_unit].map(|x| eighths(x, offset));
        let paired = ["c", "t"][i as usize % 2];
        let within = 30 * (i as i64 % 2) + noise(i, 6) + 2 * of_unit;
        let (within, dose) = (eighths(within, offset), eighths(80 * (noise(i, 7) % 12), offset));
        let absent = if noise(i, 8) < 9 { String::new() } else { y.clone() };
        let push = noise(i, 1);
        format!(
            "{},{y},{size},{age},u{unit},{paired},{within},{push},{dose},{absent}",
            ["c", "t"][arm as usize]
        )
    });
    csv("arm,y,size,age,unit,paired,within,push,dose,absent", rows)
}

/// Fails unless all numbers of all rows agree, but those of columns that depend on the zero.
#[track_caller]
fn agree(near: &[Value], far: &[Value], except: &[&str], relative: f64, about: &str) {
    assert_eq!(near.len(), far.len(), "{about}");
    for (near, far) in near.iter().zip(far) {
        for (column, value) in near.as_object().unwrap() {
            if except.contains(&column.as_str()) || ["note", "id"].contains(&column.as_str()) {
                continue;
            }
            let about = format!("{about}: {column} of {far:#}\nnear {near:#}");
            match (value.as_f64(), far[column].as_f64()) {
                // Zero up to rounding has no relative error.
                (Some(near), Some(far)) if near.abs().max(far.abs()) < 1e-12 => {}
                (Some(near), Some(far)) => equal(far, near, relative, &about),
                _ => assert_eq!(*value, far[column], "{about}"),
            }
        }
    }
}

/// Runs `with` on the table near and far from zero, and compares these ports.
#[track_caller]
fn far_as_near(with: &str, ports: &[(&str, &[&str])]) {
    let near = ran(&table(0.0), &[("effects", with)]);
    for offset in OFFSETS {
        let far = ran(&table(offset), &[("effects", with)]);
        for (port, except) in ports {
            let step = format!("effects{port}");
            let (near, far) = (near.rows(&step), far.rows(&step));
            assert!(near.iter().any(|row| row["status"] == "ok"), "{step}: {near:#?}");
            agree(&near, &far, except, 1e-9, &format!("{offset:e}, {step}"));
        }
    }
}

#[test]
fn effects_and_paired_effects_far_from_zero_are_those_near_zero() {
    far_as_near(
        "treatment: arm, control: c, outcomes: [y], confounders: [size, age], modifiers: [age],
      instruments: [push], refuters: [placebo, bootstrap, subset], simulations: 5,
      estimators: [difference, ols, lin, matching, stratification, weighting, aipw, iv]",
        &[
            ("", &[]),
            (".refutations", &[]),
            (".sensitivity", &[]),
            (".contours", &[]),
            (".effect_sizes", &[]),
            (".overlap", &[]),
            (".balance", &["mean_treatment", "mean_control"]),
            (".modifiers", &["low", "high"]),
        ],
    );
    far_as_near(
        "treatment: paired, control: c, outcomes: [within], unit: unit, modifiers: [age],
      estimators: [paired, difference, ols, wilcoxon]",
        &[("", &[]), (".effect_sizes", &[]), (".modifiers", &["low", "high"])],
    );
}

#[test]
fn doses_and_bounds_far_from_zero_are_those_near_zero() {
    let steps = |offset: f64| {
        let [low, high] = [-80, 800].map(|x| eighths(x, offset));
        let zero = eighths(0, offset);
        let more = "outcomes: [y], confounders: [size], dose: { knots: 3 }";
        let dose = format!("treatment: dose, control: '{zero}', {more}");
        let more = "outcomes: [absent], missing: drop, estimators: [difference]";
        let ranges = format!("ranges: {{ absent: [{low}, {high}] }}");
        let bounds = format!("treatment: arm, control: c, {more}, {ranges}");
        ran(&table(offset), &[("dose", &dose), ("bounds", &bounds)])
    };
    let near = steps(0.0);
    for offset in OFFSETS {
        let far = steps(offset);
        let compared = |step: &str, except: &[&str]| {
            agree(&near.rows(step), &far.rows(step), except, 1e-9, &format!("{offset:e}, {step}"));
        };
        compared("bounds.sensitivity", &[]);
        if offset < 1e13 {
            compared("dose.dose", &["dose", "reference"]);
            compared("dose.trend", &[]);
            continue;
        }
        let words = "do not tell the doses of `dose` apart: subtract";
        says(text(&far.rows("dose.dose")[0], "reason"), &[words]);
        assert!(far.rows("dose.trend").iter().all(|row| row["status"] == "refused"));
    }
    let rows = near.rows("bounds.sensitivity");
    for measure in ["manski_low", "manski_ci_high", "lee_low", "lee_high"] {
        assert_eq!(text(find(&rows, &[("measure", measure)]), "status"), "ok");
    }
    assert!(near.rows("dose.dose").iter().filter(|row| row["status"] == "ok").count() > 10);
}

#[test]
fn pilots_and_mixed_models_far_from_zero_are_those_near_zero() {
    let fitted = |offset: f64| {
        let steps = "  data: { op: read, with: { path: data.csv, position: { column: row }, key: [row] } }
  plan:
    op: power
    from: data
    with: { treatment: paired, control: c, unit: unit, outcomes: [within], units: [50, 200] }
  model: { op: mixed, from: data, with: { outcomes: [within], fixed: [paired, push], random: [unit] } }
  far: { op: mixed, from: data, with: { outcomes: [push], fixed: [age], random: [unit] } }
";
        let project = Project::steps(steps);
        project.with("data.csv", table(offset)).ran()
    };
    let near = fitted(0.0);
    let intercept = |rows: &[Value]| find(rows, &[("term", "(intercept)")]).clone();
    let wanted = intercept(&near.rows("model"));
    assert_eq!(text(&near.rows("far")[0], "status"), "ok");
    for offset in OFFSETS {
        let far = fitted(offset);
        let steps = ["plan", "plan.components", "model.components", "model.fit"];
        for (step, relative) in steps.into_iter().zip([1e-9, 1e-9, 1e-6, 1e-6]) {
            let about = format!("{offset:e}, {step}");
            agree(&near.rows(step), &far.rows(step), &[], relative, &about);
        }
        let here = intercept(&far.rows("model"));
        holds(&here, "standard_error", number(&wanted, "standard_error"), 1e-6);
        holds(&here, "estimate", offset + number(&wanted, "estimate"), 1e-11);
        let slope = |rows: &[Value]| find(rows, &[("term", "push")]).clone();
        agree(&[slope(&near.rows("model"))], &[slope(&far.rows("model"))], &[], 1e-6, "slope");
        assert!(text(&far.rows("far")[0], "reason").starts_with("`age` lies a million times"));
    }
}

#[test]
fn what_doubles_have_lost_is_refused_by_every_step_that_would_use_it() {
    let rows = (0..80u64).map(|i| {
        let big = (1u64 << 60) + 3 * noise(i, 4) as u64;
        let absent = if i % 9 == 0 { String::new() } else { big.to_string() };
        format!("{},{},{big},u{},{absent}", ["c", "t"][i as usize % 2], noise(i, 2), i / 2)
    });
    let steps = "  data: { op: read, with: { path: data.csv, position: { column: row }, key: [row] } }
  effects:
    op: regress
    from: data
    with: { treatment: arm, control: c, outcomes: [y, absent], modifiers: [big], refuters: [], seed: 1,
      missing: drop, estimators: [difference] }
  plan:
    op: power
    from: data
    with: { treatment: arm, control: c, unit: unit, outcomes: [big], units: [50] }
  model: { op: mixed, from: data, with: { outcomes: [y], fixed: [big], random: [unit] } }
";
    let project = Project::steps(steps);
    let project = project.with("data.csv", csv("arm,y,big,unit,absent", rows)).ran();
    let whole = |step: &str, wanted: &[(&str, &str)]| {
        let rows = project.rows(step);
        says(text(find(&rows, wanted), "reason"), &["has integers of 2^53 or more in "]);
    };
    let y = ("outcome", "y");
    whole("effects.modifiers", &[y, ("modifier", "big")]);
    whole("effects.balance", &[("covariate", "big"), ("outcomes", "y")]);
    for measure in ["manski_low", "lee_low"] {
        whole("effects.sensitivity", &[("outcome", "absent"), ("measure", measure)]);
    }
    whole("plan.components", &[]);
    says(text(&project.rows("model")[0], "reason"), &["has integers of 2^53"]);
}
