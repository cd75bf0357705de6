//! `regress`: what a graph implies of the data is tested: partial correlations of rows, and of the
//! means of units. `tests/reference/regress.json` holds what statsmodels and SciPy find.

use serde_json::Value;

use crate::harness::text;
use crate::regress_paired::reference;
use crate::regress_tables::{OPTIMUM, analysed, csv, holds};

#[test]
fn implied_independencies_are_tested() {
    let peer = reference()["partial"].clone();
    let with = "treatment: arm, control: c, outcomes: [y], estimators: [difference],
      graph: 'dag { x -> m -> y; arm -> y; w }'";
    let project = analysed(peer["csv"].as_str().unwrap(), with);
    let rows = project.rows("effects.graph");
    let mut tested = 0;
    for row in rows.iter().filter(|row| row["kind"] == "independence") {
        assert_eq!(text(row, "outcome"), "");
        let pair = text(row, "variables").replace(',', "");
        let name = match text(row, "given") {
            "" => pair.clone(),
            given => format!("{pair} | {given}"),
        };
        let turned = {
            let (a, b) = pair.split_once(' ').unwrap();
            name.replacen(&pair, &format!("{b} {a}"), 1)
        };
        let wanted = peer.get(&name).or(peer.get(&turned)).unwrap_or_else(|| panic!("{name}"));
        holds(row, "coefficient", wanted["coefficient"].as_f64().unwrap(), OPTIMUM);
        holds(row, "p_value", wanted["p_value"].as_f64().unwrap(), OPTIMUM);
        assert!(text(row, "note").contains("In 120 rows their partial correlation is"), "{row}");
        tested += 1;
    }
    assert_eq!(tested, 7, "{rows:#?}");
    // Three arms have no order.
    let three = peer["csv"].as_str().unwrap().replacen("\nt,", "\nu,", 3);
    let rows = analysed(&three, with).rows("effects.graph");
    let of_arm = rows.iter().filter(|row| text(row, "variables").contains("arm"));
    let of_arm: Vec<&Value> = of_arm.filter(|row| row["kind"] == "independence").collect();
    assert_eq!(of_arm.len(), 3);
    for row in of_arm {
        let reason = "the treatment has no order, so that it has no correlation";
        assert_eq!((text(row, "status"), text(row, "reason")), ("not_applicable", reason));
    }
}

#[test]
fn implied_independencies_are_tested_over_units() {
    // The same units three times: no more than one of each is known.
    let peer = reference()["partial"].clone();
    let table = peer["csv"].as_str().unwrap();
    let rows = table.lines().skip(1).enumerate();
    let rows = rows.flat_map(|(unit, line)| {
        let (_, rest) = line.split_once(',').unwrap();
        ["c", "t", "u"].map(|arm| format!("{unit},{arm},{rest}"))
    });
    let with = "treatment: arm, control: c, outcomes: [y], unit: unit, estimators: [paired],
      graph: 'dag { x -> m -> y; arm -> y; w }'";
    let project = analysed(&csv("unit,arm,x,m,y,w", rows), with);
    let rows = project.rows("effects.graph");
    let row = rows.iter().find(|row| row["variables"] == "x, y").unwrap();
    for column in ["coefficient", "p_value"] {
        holds(row, column, peer["x y | m"][column].as_f64().unwrap(), OPTIMUM);
    }
    assert!(text(row, "note").contains("In 120 units (by their means) their partial"), "{row}");
}

#[test]
fn implied_independencies_need_every_value() {
    let peer = reference()["partial"].clone();
    let mut lines: Vec<String> = peer["csv"].as_str().unwrap().lines().map(Into::into).collect();
    let cells: Vec<&str> = lines[5].split(',').collect();
    lines[5] = format!("{},{},,{},{}", cells[0], cells[1], cells[3], cells[4]);
    let table = lines.join("\n") + "\n";
    let with = "treatment: arm, control: c, outcomes: [y], estimators: [difference],
      graph: 'dag { x -> m -> y; arm -> y; w }'";
    let of = |with: &str| {
        let rows = analysed(&table, with).rows("effects.graph");
        rows.into_iter().find(|row| row["variables"] == "m, w").unwrap()
    };
    let reason = "1 row has no `m` (missing: drop leaves such rows out)";
    let row = of(with);
    assert_eq!((text(&row, "status"), text(&row, "reason")), ("refused", reason));
    let row = of(&format!("{with}, missing: drop"));
    assert!(text(&row, "note").contains(" 1 incomplete row is left out. Adjusted for "), "{row}");
}
