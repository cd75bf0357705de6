//! The graph of `regress`: what it says of adjustment, the front door, instruments and
//! independencies, on the graphs of `tests/reference/causal/dags.json` (all sets by brute force,
//! and those of pgmpy and DoWhy); what the estimators make of it; and tests of what it implies, of
//! rows and of the means of units (`tests/reference/regress.json` has statsmodels' and SciPy's).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::{Project, has, says, text, values};
use crate::regress_paired::reference;
use crate::regress_tables::{
    OPTIMUM, alike, analysed, csv, effects, ended, find, made, noise, ran, ran_with,
};

/// The row is refused for this reason.
#[track_caller]
fn refuses(row: &Value, reason: &str) {
    ended(row, "refused", reason);
}

fn dags() -> Value {
    serde_json::from_str(include_str!("../reference/causal/dags.json")).unwrap()
}

fn names(of: &Value) -> Vec<&str> {
    of.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

/// A graph of the file in dagitty's words.
fn dagitty(dag: &Value) -> String {
    let latent = names(&dag["latent"]).into_iter().map(|name| format!("{name} [latent] "));
    let edges = names(&dag["edges"]).into_iter().map(|edge| edge.replace('>', " -> ") + " ");
    format!("dag {{ {}}}", latent.chain(edges).collect::<String>())
}

/// The same in DOT.
fn dot(dag: &Value) -> String {
    let latent = names(&dag["latent"]).into_iter();
    let latent = latent.map(|name| format!("\"{name}\" [latent=\"yes\"]; "));
    let edges = names(&dag["edges"]).into_iter().map(|edge| edge.replace('>', " -> { ") + " }; ");
    format!("digraph {{ {}}}", latent.chain(edges).collect::<String>())
}

/// A table with a column for every node that is observed; the treatment has two values.
fn table(dag: &Value) -> String {
    let observed: BTreeSet<&str> = names(&dag["edges"])
        .into_iter()
        .flat_map(|edge| edge.split('>'))
        .filter(|name| !names(&dag["latent"]).contains(name))
        .collect();
    let treatment = dag["treatment"].as_str().unwrap();
    let rows = (0..120u64).map(|i| {
        let values = observed.iter().enumerate().map(|(at, name)| {
            let value = noise(i, at as u64);
            if *name == treatment { (value % 2).to_string() } else { value.to_string() }
        });
        values.collect::<Vec<_>>().join(",")
    });
    let header: Vec<&str> = observed.iter().copied().collect();
    csv(&header.join(","), rows)
}

fn roles(dag: &Value) -> String {
    let (treatment, outcome) = (text(dag, "treatment"), text(dag, "outcome"));
    format!("treatment: {treatment}, control: '0', outcomes: [{outcome}]")
}

/// A project that has asked a graph of the file, with the steps `effects` (dagitty) and `dot`.
#[track_caller]
fn asked(dag: &Value, with: &str) -> Project {
    let step = |graph: String| format!("{}, graph: '{graph}'{with}", roles(dag));
    ran(&table(dag), &[("effects", &step(dagitty(dag))), ("dot", &step(dot(dag)))])
}

/// The variables of the rows of a kind, as sets.
fn sets(rows: &[Value], kind: &str) -> BTreeSet<BTreeSet<String>> {
    let rows = rows.iter().filter(|row| row["kind"] == kind);
    rows.map(|row| set(text(row, "variables"))).collect()
}

fn set(names: &str) -> BTreeSet<String> {
    names.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn set_of(names: &Value) -> BTreeSet<String> {
    self::names(names).into_iter().map(str::to_owned).collect()
}

fn sets_of(of: &Value) -> BTreeSet<BTreeSet<String>> {
    of.as_array().unwrap().iter().map(set_of).collect()
}

#[test]
fn sets_instruments_and_independencies_are_those_of_brute_force() {
    for (name, dag) in dags().as_object().unwrap() {
        let project = asked(dag, "");
        let rows = project.rows("effects.graph");
        assert_eq!(project.rows("dot.graph"), rows, "{name}: DOT says the same");
        let minimal = sets(&rows, "minimal_adjustment_set");
        assert_eq!(minimal, sets_of(&dag["backdoor_minimal"]), "{name}");
        assert_eq!(sets(&rows, "frontdoor_set"), sets_of(&dag["frontdoor_minimal"]), "{name}");
        let optimal = sets(&rows, "optimal_adjustment_set");
        match dag.get("optimal_adjustment_set") {
            Some(wanted) => assert_eq!(optimal, [set_of(wanted)].into(), "{name}"),
            None => assert!(optimal.is_empty(), "{name}: {optimal:?}"),
        }
        let instruments: BTreeSet<(String, BTreeSet<String>)> = rows
            .iter()
            .filter(|row| row["kind"] == "instrument")
            .map(|row| (text(row, "variables").to_owned(), set(text(row, "given"))))
            .collect();
        let wanted = dag["instruments_given"].as_array().unwrap().iter();
        let wanted = wanted.map(|one| (one[0].as_str().unwrap().to_owned(), set_of(&one[1])));
        assert_eq!(instruments, wanted.collect(), "{name}");
        let independent: BTreeSet<(BTreeSet<String>, BTreeSet<String>)> = rows
            .iter()
            .filter(|row| row["kind"] == "independence")
            .map(|row| (set(text(row, "variables")), set(text(row, "given"))))
            .collect();
        let wanted = dag["implied_ci_minimal"].as_array().unwrap().iter().flat_map(|one| {
            let pair = set_of(&json!([one[0], one[1]]));
            sets_of(&one[2]).into_iter().map(move |given| (pair.clone(), given))
        });
        assert_eq!(independent, wanted.collect(), "{name}");
        let used = find(&rows, &[("kind", "adjustment_set")]);
        if minimal.is_empty() {
            assert_eq!(text(used, "status"), "refused", "{name}");
        } else {
            let used = set(text(used, "variables"));
            let least = minimal.iter().map(BTreeSet::len).min().unwrap();
            assert!(minimal.contains(&used) && used.len() == least, "{name}: {used:?}");
        }
    }
}

#[track_caller]
fn estimates(name: &str, with: &str) -> Vec<Value> {
    asked(&dags()[name], with).rows("effects")
}

#[test]
fn estimators_adjust_for_what_the_graph_says() {
    let with = ", estimators: [difference, ols, lin, aipw]";
    for (name, adjusted) in [
        ("fork", "Z"),
        ("pearl_six_covariates", "X1, X4"),
        ("galeras_observational", "nloc, size, tok, ws"),
        ("chain_mediator", ""),
        ("collider", ""),
        ("galeras_by_design", ""),
    ] {
        let rows = estimates(name, with);
        for estimator in ["ols", "lin"] {
            let row = find(&rows, &[("estimator", estimator), ("status", "ok")]);
            assert_eq!(text(row, "adjusted_for"), adjusted, "{name}");
        }
        let difference = find(&rows, &[("estimator", "difference")]);
        let aipw = find(&rows, &[("estimator", "aipw")]);
        if adjusted.is_empty() {
            assert_eq!(text(difference, "status"), "ok", "{difference}");
            let reason = "there is nothing to adjust for, and so no propensity score";
            ended(aipw, "not_applicable", reason);
        } else {
            let reason = "by the graph, the arms differ in more than the treatment: something has \
                          to be adjusted for";
            refuses(difference, reason);
            assert_eq!(text(aipw, "adjusted_for"), adjusted, "{name}");
        }
    }
    // Without a choice of estimators a graph has those with confounders.
    assert_eq!(asked(&dags()["fork"], "").texts("effects", "estimator"), ["aipw", "ols"]);
}

#[test]
fn the_estimate_is_that_with_the_confounders_given() {
    let dag = dags()["pearl_six_covariates"].clone();
    let graph = format!("graph: '{}'", dagitty(&dag));
    let steps = [
        ("graph", graph.clone()),
        ("given", "confounders: [X1, X4]".into()),
        ("both", format!("confounders: [X4, X5], {graph}")),
        ("same", "confounders: [X4, X5]".into()),
    ];
    let with = format!("{}, estimators: [ols, weighting]", roles(&dag));
    let project = ran_with(&table(&dag), &with, &steps);
    assert_eq!(project.rows("graph"), project.rows("given"));
    assert_eq!(project.rows("both"), project.rows("same"));
    // Confounders are checked against the graph.
    for (name, confounders, shown) in [
        ("collider", "C", "`C`"),
        ("chain_mediator", "M", "`M`"),
        ("pearl_six_covariates", "X3, X5", "`X3` and `X5`"),
    ] {
        let with = format!(", confounders: [{confounders}], estimators: [ols, aipw]");
        let reason = format!(
            "by the graph, adjusting for {shown} does not give the effect: that leaves a backdoor \
             path open, or blocks a part of the effect"
        );
        for row in estimates(name, &with) {
            refuses(&row, &reason);
            assert!(row["estimate"].is_null());
        }
    }
    let dag = dags()["fork"].clone();
    let table = table(&dag);
    let rows = table.lines().enumerate().skip(1);
    let table = csv("X,Y,Z,W", rows.map(|(at, line)| format!("{line},{}", at * at % 13)));
    let with = format!("{}, graph: '{}', confounders: [Z, W]", roles(&dag), dagitty(&dag));
    for row in effects(&table, &with) {
        assert_eq!(text(&row, "reason"), "the confounder `W` is not in the graph");
    }
}

#[test]
fn the_front_door_is_told() {
    let rows = estimates("frontdoor_smoking", ", estimators: [ols, aipw, difference]");
    let reason = "by the graph no set of columns blocks the backdoor paths; the effect is \
                  identified by the front door only, through `M` (estimators: [frontdoor])";
    for estimator in ["ols", "aipw"] {
        refuses(find(&rows, &[("estimator", estimator)]), reason);
    }
    assert_eq!(text(find(&rows, &[("estimator", "difference")]), "status"), "refused");
    // Effects that are not identified are refused with the path.
    let project = asked(&dags()["bow"], ", estimators: [difference, ols, aipw]");
    let reason = "by the graph the effect is not identified: `X <- U -> Y` cannot be blocked: `U` \
                  is latent; no observed variables meet the frontdoor criterion, and no observed \
                  variable is an instrument";
    for row in project.rows("effects") {
        refuses(&row, reason);
    }
    let rows = project.rows("effects.graph");
    let row = find(&rows, &[("kind", "identification")]);
    assert_eq!((text(row, "status"), text(row, "variables")), ("refused", "none"));
    assert!(reason.ends_with(text(row, "reason")), "{row}");
}

/// A treatment that an instrument moves and a latent cause too.
fn instrument() -> String {
    made("Z,X,Y", 300, |i| {
        let (z, u) = (noise(i, 3) % 2, noise(i, 1));
        let arm = i64::from(50 * z + u > 70);
        format!("{z},{arm},{}", 2 * u + 40 * arm + noise(i, 0))
    })
}

#[test]
fn instruments_of_the_graph_are_used() {
    let dag = dags()["instrument"].clone();
    let graph = format!("graph: '{}'", dagitty(&dag));
    let steps = [
        ("graph", graph.clone()),
        ("given", "instruments: [Z]".into()),
        ("both", format!("instruments: [Z], {graph}")),
    ];
    let with = format!("{}, estimators: [iv, ols]", roles(&dag));
    let project = ran_with(&instrument(), &with, &steps);
    let given = project.rows("given");
    let wanted = find(&given, &[("estimator", "iv"), ("status", "ok")]);
    for step in ["graph", "both"] {
        let rows = project.rows(step);
        assert_eq!(find(&rows, &[("estimator", "iv")]), wanted, "{step}");
        let reason = "by the graph no set of columns blocks the backdoor paths; the effect is \
                      identified by the instrument `Z` only (estimators: [iv])";
        refuses(find(&rows, &[("estimator", "ols")]), reason);
    }
}

/// Z moves X; W is a cause of Z and of Y.
const CONDITIONAL: &str =
    "dag { U [latent] W -> Z; W -> Y; Z -> X; U -> X; U -> Y; X -> Y; V -> Y }";

#[test]
fn an_instrument_may_need_a_covariate() {
    let table = made("Z,X,Y,W,V", 300, |i| {
        let (u, w) = (noise(i, 1), noise(i, 4));
        let z = i64::from(noise(i, 3) + w > 100);
        let arm = i64::from(50 * z + u > 70);
        format!("{z},{arm},{},{w},{}", 2 * u + 40 * arm + noise(i, 0) + w, noise(i, 5))
    });
    let with = "treatment: X, control: '0', outcomes: [Y], estimators: [iv]";
    let graph = format!("graph: '{CONDITIONAL}'");
    let steps = [
        ("graph", graph.clone()),
        ("given", "instruments: [Z], confounders: [W]".into()),
        ("both", format!("instruments: [Z], confounders: [W], {graph}")),
        ("alone", format!("instruments: [Z], {graph}")),
        ("other", format!("instruments: [Z], confounders: [V], {graph}")),
        ("found", format!("confounders: [V], {graph}")),
    ];
    let project = ran_with(&table, with, &steps);
    let row = |step: &str| project.rows(step)[0].clone();
    assert_eq!((text(&row("graph"), "status"), text(&row("graph"), "adjusted_for")), ("ok", "W"));
    assert_eq!((row("given"), row("both")), (row("graph"), row("graph")));
    for step in ["alone", "other", "found"] {
        // Z -> Y is open by way of W: no number, or one that is adjusted for W.
        let row = row(step);
        let adjusted = row["adjusted_for"].as_str().unwrap_or_default().contains('W');
        assert!(text(&row, "status") == "refused" || adjusted, "{step}: {row}");
    }
}

#[test]
fn instruments_are_checked_against_the_graph() {
    let dag = dags()["instrument"].clone();
    let graph = dagitty(&dag).replace("Z -> X", "Z -> X Z -> Y");
    let with = format!("{}, estimators: [iv], graph: '{graph}'", roles(&dag));
    let project = ran_with(&instrument(), &with, &[("none", ""), ("given", "instruments: [Z]")]);
    for (step, reason) in [
        ("none", "the graph has no instrument"),
        ("given", "by the graph, `Z` is not an instrument"),
    ] {
        refuses(&project.rows(step)[0], reason);
    }
    // A graph without an effect is reported.
    let with = "treatment: X, control: '0', outcomes: [Y], graph: 'dag { Z -> X; Z -> Y }'";
    let project = analysed(&table(&dags()["fork"]), with);
    let rows = project.rows("effects.graph");
    let row = find(&rows, &[("kind", "identification")]);
    assert!(text(row, "note").contains("the graph says that the effect is zero"), "{row}");
    assert_eq!(find(&project.rows("effects"), &[("estimator", "ols")])["adjusted_for"], json!("Z"));
}

#[test]
fn outcomes_are_adjusted_for_what_each_needs() {
    let graph = "dag { Z -> X; Z -> Y; X -> Y; X -> V; W -> X; W -> V }";
    let table = made("X,Y,V,Z,W", 120, |i| {
        let values: Vec<String> = (0..4).map(|at| noise(i, at).to_string()).collect();
        format!("{},{}", noise(i, 4) % 2, values.join(","))
    });
    let with = format!("treatment: X, control: '0', outcomes: [Y, V], graph: '{graph}'");
    let project = analysed(&table, &with);
    let rows = project.rows("effects");
    for (outcome, adjusted) in [("Y", "Z"), ("V", "W")] {
        let row = find(&rows, &[("outcome", outcome), ("estimator", "ols"), ("status", "ok")]);
        assert_eq!(text(row, "adjusted_for"), adjusted);
    }
    let graph = project.rows("effects.graph");
    for outcome in ["Y", "V"] {
        find(&graph, &[("outcome", outcome), ("kind", "adjustment_set")]);
    }
    // Every covariate of either is in the tables of balance and overlap.
    let balance = project.rows("effects.balance");
    for covariate in ["W", "Z"] {
        find(&balance, &[("covariate", covariate)]);
    }
}

#[test]
fn each_outcome_is_analysed_as_if_it_were_alone() {
    // A is an instrument of Y without a covariate, B one of V.
    let graph = "dag { A -> X; B -> X; A -> C -> V; B -> D -> Y; X -> Y; X -> V }";
    let rows = (0..300u64).map(|i| {
        let (a, b) = (noise(i, 1) % 2, noise(i, 2) % 2);
        let (c, d) = (30 * a + noise(i, 3), 30 * b + noise(i, 4));
        let arm = i64::from(40 * a + 40 * b + noise(i, 0) > 90);
        format!("{arm},{},{},{a},{b},{c},{d}", 2 * d + 20 * arm + noise(i, 5), 2 * c + noise(i, 6))
    });
    let given = format!("estimators: [iv, ols], confounders: [C, D], graph: '{graph}'");
    let with = format!("treatment: X, control: '0', {given}");
    let steps = [("both", "outcomes: [Y, V]"), ("y", "outcomes: [Y]"), ("v", "outcomes: [V]")];
    let project = ran_with(&csv("X,Y,V,A,B,C,D", rows), &with, &steps);
    let both = project.rows("both");
    for (step, outcome) in [("y", "Y"), ("v", "V")] {
        for estimator in ["iv", "ols"] {
            let one = project.rows(step);
            let alone = find(&one, &[("estimator", estimator), ("status", "ok")]);
            let row = find(&both, &[("estimator", estimator), ("outcome", outcome)]);
            let columns = "estimate standard_error p_value adjusted_for n";
            has(row, columns, values(alone, columns));
        }
    }
}

#[test]
fn implied_independencies_are_tested_and_need_every_value() {
    let peer = reference()["partial"].clone();
    let with = "treatment: arm, control: c, outcomes: [y], estimators: [difference],
      graph: 'dag { x -> m -> y; arm -> y; w }'";
    let rows = analysed(text(&peer, "csv"), with).rows("effects.graph");
    let mut tested = 0;
    for row in rows.iter().filter(|row| row["kind"] == "independence") {
        assert_eq!(text(row, "outcome"), "");
        let (a, b) = text(row, "variables").split_once(", ").unwrap();
        let given = match text(row, "given") {
            "" => String::new(),
            given => format!(" | {given}"),
        };
        let (name, turned) = (format!("{a} {b}{given}"), format!("{b} {a}{given}"));
        let wanted = peer.get(&name).or(peer.get(&turned)).unwrap_or_else(|| panic!("{name}"));
        alike(row, wanted, "coefficient p_value", OPTIMUM);
        assert!(text(row, "note").contains("In 120 rows their partial correlation is"), "{row}");
        tested += 1;
    }
    assert_eq!(tested, 7, "{rows:#?}");
    assert!(rows.iter().all(|row| row["verdict"].is_null()), "{rows:#?}");
    // Without the arrow from `x` to `m`, which correlate by 0.71, the data reject the graph.
    let wrong = with.replace("x -> m -> y", "x; m -> y");
    let project = analysed(text(&peer, "csv"), &wrong);
    let rows = project.rows("effects.graph");
    let refuted = rows.iter().filter(|row| row["verdict"] == "refuted");
    let refuted: BTreeSet<BTreeSet<String>> =
        refuted.map(|row| set(text(row, "variables"))).collect();
    assert_eq!(refuted, [set("x, m"), set("x, y")].into());
    let words = "the data reject 2 of 8 independencies that the graph implies";
    says(text(&project.only("effects.findings"), "sentence"), &[words]);
    project.run(&["report", "w.yaml"]).exits(0);
    says(&project.read("w.html"), &["The data reject 2 of 8 independencies"]);
    // Three arms have no order.
    let three = peer["csv"].as_str().unwrap().replacen("\nt,", "\nu,", 3);
    let rows = analysed(&three, with).rows("effects.graph");
    let of_arm = rows.iter().filter(|row| text(row, "variables").contains("arm"));
    let of_arm: Vec<&Value> = of_arm.filter(|row| row["kind"] == "independence").collect();
    assert_eq!(of_arm.len(), 3);
    for row in of_arm {
        let reason = "the treatment has no order, so that it has no correlation";
        ended(row, "not_applicable", reason);
    }
    // The same units three times: no more than one of each is known.
    let table = peer["csv"].as_str().unwrap();
    let rows = table.lines().skip(1).enumerate();
    let rows = rows.flat_map(|(unit, line)| {
        let (_, rest) = line.split_once(',').unwrap();
        ["c", "t", "u"].map(|arm| format!("{unit},{arm},{rest}"))
    });
    let paired = with.replace("[difference]", "[paired], unit: unit");
    let table = csv("unit,arm,x,m,y,w", rows);
    let rows = analysed(&table, &paired).rows("effects.graph");
    let row = rows.iter().find(|row| row["variables"] == "x, y").unwrap();
    alike(row, &peer["x y | m"], "coefficient p_value", OPTIMUM);
    assert!(text(row, "note").contains("In 120 units (by their means) their partial"), "{row}");
    // They need every value.
    let mut lines: Vec<String> = peer["csv"].as_str().unwrap().lines().map(Into::into).collect();
    let cells: Vec<&str> = lines[5].split(',').collect();
    lines[5] = format!("{},{},,{},{}", cells[0], cells[1], cells[3], cells[4]);
    let table = lines.join("\n") + "\n";
    let of = |with: &str| {
        let rows = analysed(&table, with).rows("effects.graph");
        rows.into_iter().find(|row| row["variables"] == "m, w").unwrap()
    };
    let reason = "1 row has no `m` (missing: drop leaves such rows out)";
    refuses(&of(with), reason);
    let row = of(&format!("{with}, missing: drop"));
    assert!(text(&row, "note").contains(" 1 incomplete row is left out. Adjusted for "), "{row}");
}
