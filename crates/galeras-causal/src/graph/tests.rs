//! Tests of the graph queries: reference answers, brute force, and limits.

mod oracle;
mod text;

use std::time::Instant;

use proptest::prelude::*;
use serde_json::Value;

use super::separation::{MOST_SETS, Meter};
use super::*;
use oracle::Oracle;

/// The number of random graphs: as many as take a few seconds.
const CASES: u32 = if cfg!(debug_assertions) { 400 } else { 2_000 };

/// The most seconds for a bounded query on a busy machine.
const MOST_SECONDS: f64 = if cfg!(debug_assertions) { 200.0 } else { 20.0 };

fn graph(text: &str) -> CausalGraph {
    CausalGraph::parse(text).unwrap()
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

fn sets(value: &Value) -> Vec<Vec<String>> {
    value.as_array().unwrap().iter().map(strings).collect()
}

fn reasons(text: &str) -> String {
    match identify(&graph(text), "X", "Y").unwrap().by {
        Identification::NotIdentified { reason } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn reference_graphs_give_the_reference_answers() {
    let cases = crate::tests::json("causal/dags.json");
    let cases = cases.as_object().unwrap();
    assert!(cases.len() >= 9);
    for (name, case) in cases {
        let mut dot = String::from("digraph {\n");
        let mut dagitty = String::from("dag {\n");
        for latent in strings(&case["latent"]) {
            dot += &format!("  \"{latent}\" [latent=\"yes\"];\n");
            dagitty += &format!("{latent} [latent]\n");
        }
        for edge in strings(&case["edges"]) {
            let (from, to) = edge.split_once('>').unwrap();
            dot += &format!("  \"{from}\" -> \"{to}\";\n");
            dagitty += &format!("{to} <- {from}\n");
        }
        let graph = CausalGraph::parse(&(dot + "}")).unwrap();
        assert_eq!(graph, CausalGraph::parse(&(dagitty + "}")).unwrap(), "{name}");
        let (x, y) = (case["treatment"].as_str().unwrap(), case["outcome"].as_str().unwrap());

        let backdoor = graph.minimal_backdoor(x, y).unwrap();
        assert_eq!(backdoor.sets, sets(&case["backdoor_minimal"]), "{name}");
        assert!(backdoor.complete);
        let frontdoor = graph.minimal_frontdoor(x, y).unwrap();
        assert_eq!(frontdoor.sets, sets(&case["frontdoor_minimal"]), "{name}");
        assert!(frontdoor.complete);
        let optimal = graph.optimal_adjustment(x, y).unwrap();
        assert_eq!(optimal, case.get("optimal_adjustment_set").map(strings), "{name}");

        let instruments = graph.instruments(x, y).unwrap();
        let found: Vec<Value> =
            instruments.list.iter().map(|one| serde_json::json!([one.name, one.given])).collect();
        assert_eq!(Value::Array(found), case["instruments_given"], "{name}");
        assert!(instruments.complete);
        let implied = graph.implied_independencies();
        let found: Vec<Value> =
            implied.list.iter().map(|one| serde_json::json!([one.a, one.b, one.given])).collect();
        assert_eq!(Value::Array(found), case["implied_ci_minimal"], "{name}");
        assert!(implied.complete);
    }
}

#[test]
fn d_separation_of_textbook_structures() {
    let chain = graph("digraph { A -> B -> C }");
    assert!(!chain.d_separated(&["A"], &["C"], &[]).unwrap());
    assert!(chain.d_separated(&["A"], &["C"], &["B"]).unwrap());
    let collider = graph("digraph { A -> C; B -> C; C -> D }");
    assert!(collider.d_separated(&["A"], &["B"], &[]).unwrap());
    assert!(!collider.d_separated(&["A"], &["B"], &["D"]).unwrap());
    assert!(collider.d_separated(&[], &["B"], &["D"]).unwrap());
    assert!(!collider.d_separated(&["A"], &["A"], &[]).unwrap());
    assert!(matches!(
        collider.d_separated(&["Q"], &["B"], &[]),
        Err(QueryError::UnknownNode { name, .. }) if name == "Q"
    ));
}

#[test]
fn m_bias_needs_no_adjustment_and_adjusting_for_the_collider_harms() {
    let text = "dag { U1 [latent] U2 [latent] U1 -> {X M} U2 -> {M Y} X -> Y }";
    let graph = graph(text);
    assert_eq!(graph.minimal_backdoor("X", "Y").unwrap().sets, [Vec::<String>::new()]);
    assert!(!graph.is_valid_backdoor("X", "Y", &["M"]).unwrap());
    assert!(!graph.is_valid_backdoor("X", "Y", &["U1"]).unwrap());
}

#[test]
fn a_frontdoor_set_may_need_a_confounder_of_its_mediator() {
    let graph = graph("dag { X <-> Y  X -> M -> Y  C -> {M Y} }");
    assert_eq!(graph.minimal_frontdoor("X", "Y").unwrap().sets, [["C", "M"]]);
}

#[test]
fn identification_prefers_backdoor_then_frontdoor_then_instrument() {
    let confounded = graph("digraph { Z -> {X Y}; W -> Y; X -> Y }");
    assert_eq!(confounded.minimal_backdoor("X", "Y").unwrap().sets, [["Z"]]);
    assert_eq!(confounded.optimal_adjustment("X", "Y").unwrap().unwrap(), ["W", "Z"]);
    let found = identify(&confounded, "X", "Y").unwrap();
    assert!(found.directed_path && found.notes.is_empty());
    assert_eq!(found.by, Identification::Backdoor { adjustment: vec!["Z".into()] });
    let found = identify(&graph("dag { X <-> Y X -> M -> Y Z -> X }"), "X", "Y").unwrap();
    assert!(matches!(found.by, Identification::Frontdoor { mediators, .. } if mediators == ["M"]));
    let found = identify(&graph("dag { X <-> Y X -> Y Z -> X Z <- C -> Y }"), "X", "Y").unwrap();
    assert_eq!(
        found.by,
        Identification::Instrument { instrument: "Z".into(), given: vec!["C".into()] }
    );
    assert_eq!(found.notes, ["an instrument identifies the effect in a linear model only"]);
}

#[test]
fn refusals_name_the_open_path() {
    let end = "; no observed variables meet the frontdoor criterion, and no observed variable \
               is an instrument";
    for (text, reason) in [
        (
            "digraph { U [latent=yes]; U -> {X Y}; X -> Y }",
            "`X <- U -> Y` cannot be blocked: `U` is latent",
        ),
        ("dag { X <-> Y X -> Y }", "`X <-> Y` cannot be blocked: `<->` is a latent common cause"),
        (
            "dag { X <-> M X -> M -> Y }",
            "`X <-> M -> Y` cannot be blocked: `<->` is a latent common cause and `M` is a \
             descendant of the treatment",
        ),
        ("dag { Y -> X }", "`X <- Y` cannot be blocked: the outcome causes the treatment"),
        // C is a confounder, and a collider between two latent causes: no choice is right.
        (
            "dag { C -> {X Y} X <-> C C <-> Y X -> Y }",
            "`X <-> C <-> Y` is opened by adjusting for `C` or a descendant, and without that \
             another backdoor path stays open",
        ),
    ] {
        assert_eq!(reasons(text), format!("{reason}{end}"), "{text}");
    }
    assert_eq!(reasons("dag { X [latent] X -> Y }"), "the treatment `X` is latent");
}

#[test]
fn questions_about_other_nodes_are_refused() {
    let fork = graph("digraph { Z -> X; Z -> Y }");
    let error = identify(&fork, "T", "Y").unwrap_err().to_string();
    assert_eq!(error, "the graph has no node `T`; it has `X`, `Y`, `Z`");
    let error = identify(&fork, "Y", "Y").unwrap_err().to_string();
    assert_eq!(error, "`Y` cannot be both the treatment and the outcome");
    let error = identify(&graph("dag {}"), "T", "Y").unwrap_err().to_string();
    assert_eq!(error, "the graph has no node `T`; it has none");
    assert!(!fork.has_directed_path("X", "Y").unwrap());
    let found = identify(&fork, "X", "Y").unwrap();
    assert!(!found.directed_path);
    assert!(found.notes[0].contains("the effect is zero"), "{:?}", found.notes);
    assert!(fork.optimal_adjustment("X", "Y").unwrap().is_none());
    assert!(fork.minimal_frontdoor("X", "Y").unwrap().sets.is_empty());
}

/// A graph of `n` nodes with an edge for every pair (i < j) that `edge` accepts.
fn graph_of(n: usize, mut edge: impl FnMut(usize, usize) -> bool, extra: &str) -> CausalGraph {
    let mut text = String::from("digraph {");
    for i in 0..n {
        text += &format!("v{i:03};");
        for j in i + 1..n {
            if edge(i, j) {
                text += &format!("v{i:03}->v{j:03};");
            }
        }
    }
    CausalGraph::parse(&(text + extra + "}")).unwrap()
}

#[test]
fn two_hundred_nodes_are_answered_quickly() {
    let mut state = 7u64;
    let mut chance = |percent: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % 100 < percent
    };
    let graphs = [
        ("sparse", graph_of(200, |_, _| chance(2), "")),
        ("dense", graph_of(200, |_, _| chance(50), "")),
        ("full", graph_of(200, |_, _| true, "")),
        ("empty", graph_of(200, |_, _| false, "")),
        // 2^66 minimal sets: three nodes in a row on each of 66 backdoor paths.
        ("ladder", {
            let mut extra = String::new();
            for i in 0..66 {
                let (a, b, c) = (3 * i + 1, 3 * i + 2, 3 * i + 3);
                extra += &format!("v{b:03}->v{a:03}->v000;v{b:03}->v{c:03}->v199;");
            }
            graph_of(200, |_, _| false, &extra)
        }),
        ("confounded", graph_of(200, |i, j| j == 199 || i % 3 == 0, "v000->v199[dir=both]")),
    ];
    // The limits count work, which takes long in an unoptimised build.
    let few = cfg!(debug_assertions);
    let ends = [("v000", "v199"), ("v100", "v199"), ("v150", "v160")];
    for (name, graph) in graphs.iter().filter(|(name, _)| !few || *name == "ladder") {
        for (x, y) in ends.into_iter().take(if few { 1 } else { 3 }) {
            let started = Instant::now();
            let found = identify(graph, x, y).unwrap();
            // Results of a truncated search must still be instruments.
            let cut = graph.mask(&[graph.find(x).unwrap()]);
            for one in graph.instruments(x, y).unwrap().list.iter().step_by(97) {
                let given: Vec<usize> =
                    one.given.iter().map(|name| graph.find(name).unwrap()).collect();
                let reached = separation::reachable(
                    graph.without_edges_from(&cut),
                    &[graph.find(&one.name).unwrap()],
                    &given,
                    &mut Meter::new(0),
                );
                assert!(reached[graph.find(x).unwrap()] && !reached[graph.find(y).unwrap()]);
            }
            let minimal = graph.minimal_backdoor(x, y).unwrap();
            for set in minimal.sets.iter().take(20) {
                let set: Vec<&str> = set.iter().map(String::as_str).collect();
                assert!(graph.is_valid_backdoor(x, y, &set).unwrap());
            }
            let seconds = started.elapsed().as_secs_f64();
            assert!(seconds < MOST_SECONDS, "{name} {x} {y}: {seconds}");
            if *name == "ladder" && x == "v000" {
                assert!(matches!(found.by, Identification::Backdoor { .. }));
                assert!(!minimal.complete);
                assert_eq!(minimal.sets.len(), MOST_SETS);
            }
        }
        let started = Instant::now();
        let implied = graph.implied_independencies();
        assert!(implied.complete || implied.list.len() > 1_000, "{name}");
        let seconds = started.elapsed().as_secs_f64();
        assert!(seconds < MOST_SECONDS, "{name}: {seconds}");
    }
}

fn random_graph() -> impl Strategy<Value = (Oracle, CausalGraph)> {
    let sizes = 2..=7usize;
    sizes
        .prop_flat_map(|n| {
            let pairs = n * (n - 1) / 2;
            let order = Just((0..n).collect::<Vec<usize>>()).prop_shuffle();
            (Just(n), prop::collection::vec(0..5u8, pairs), order, prop::collection::vec(0..4u8, n))
        })
        .prop_map(|(n, edges, order, latent)| {
            let mut oracle = Oracle { n, edge: vec![vec![false; n]; n], latent: 0 };
            let mut text = String::from("dag {");
            for (v, &chosen) in latent.iter().enumerate() {
                text += &format!(" v{v}");
                if chosen == 0 {
                    oracle.latent |= 1 << v;
                    text += " [latent]";
                }
            }
            let mut choice = edges.iter();
            for i in 0..n {
                for j in i + 1..n {
                    if *choice.next().unwrap() < 2 {
                        oracle.edge[order[i]][order[j]] = true;
                        text += &format!(" v{} -> v{}", order[i], order[j]);
                    }
                }
            }
            (oracle, CausalGraph::parse(&(text + "}")).unwrap())
        })
}

fn named(sets: &[u32]) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = sets
        .iter()
        .map(|set| (0..32).filter(|v| set >> v & 1 == 1).map(|v| format!("v{v}")).collect())
        .collect();
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(CASES) })]
    #[test]
    fn answers_equal_those_of_listing_all_paths((oracle, graph) in random_graph()) {
        for x in 0..oracle.n {
            for y in 0..oracle.n {
                if x == y { continue; }
                let (a, b) = (format!("v{x}"), format!("v{y}"));
                let backdoor = oracle.backdoor(x, y);
                let found = graph.minimal_backdoor(&a, &b).unwrap();
                prop_assert!(found.complete);
                prop_assert_eq!(&found.sets, &named(&Oracle::minimal(&backdoor)));
                if let Some(optimal) = graph.optimal_adjustment(&a, &b).unwrap() {
                    let bits = optimal.iter().fold(0u32, |s, v| s | 1 << v[1..].parse::<u32>().unwrap());
                    prop_assert!(backdoor.contains(&bits));
                }
                let found = graph.minimal_frontdoor(&a, &b).unwrap();
                prop_assert!(found.complete);
                let frontdoor = oracle.frontdoor(x, y);
                prop_assert_eq!(found.sets, named(&Oracle::minimal(&frontdoor)));
                let found = graph.instruments(&a, &b).unwrap();
                prop_assert!(found.complete);
                let mut wanted = Vec::new();
                for (z, sets) in oracle.instruments(x, y) {
                    for given in named(&sets) {
                        wanted.push(Instrument { name: format!("v{z}"), given });
                    }
                }
                prop_assert_eq!(found.list, wanted);
                if let Identification::NotIdentified { reason } = identify(&graph, &a, &b).unwrap().by {
                    let names_a_path = reason.starts_with('`') || reason.starts_with("the ");
                    prop_assert!(names_a_path, "{}", reason);
                }
                for given in 0..1u32 << oracle.n {
                    if given >> x & 1 == 1 || given >> y & 1 == 1 || given % 5 != 0 { continue; }
                    let set = &named(&[given])[0];
                    let set: Vec<&str> = set.iter().map(String::as_str).collect();
                    let separated = graph.d_separated(&[&a], &[&b], &set).unwrap();
                    prop_assert_eq!(separated, oracle.separated(x, y, given));
                }
            }
        }
        let found = graph.implied_independencies();
        prop_assert!(found.complete);
        let mut wanted = Vec::new();
        for (a, b, sets) in oracle.independencies() {
            wanted.push(Independence {
                a: format!("v{a}"),
                b: format!("v{b}"),
                given: named(&sets),
            });
        }
        prop_assert_eq!(found.list, wanted);
    }
}
