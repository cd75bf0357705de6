//! The results of the operators' documented examples, pinned by operator and version: whoever
//! changes a result has to raise the version, or every stored result of the old code would pass
//! for one of the new.
//!
//! `GALERAS_UPDATE=1` renews the file of digests. It refuses to change the digest of a version
//! that is there, unless what the example gives to the operator has changed as well.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

mod examples;

use examples::{DATA, example, galeras_in, needs_a_network, operators, project, root};

const FILE: &str = "tests/reference/example_digests.txt";

const HEADER: &str = "\
# Logical digests of the tables that the operators' documented examples give.
# operator version example port digest
#
# `port` has the step before it, `example` is a hash of the example, its data, and the versions
# of the other operators in it. Renewed by
# GALERAS_UPDATE=1 cargo test -p galeras-tests --test example_digests
";

/// Where a digest is pinned.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pin {
    operator: String,
    /// `step.port`.
    port: String,
}

/// The pinned result.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PinnedResult {
    version: u64,
    /// A hash of the operator's input.
    example: String,
    digest: String,
}

impl PinnedResult {
    /// True if a result may replace this one without a new version.
    fn may_become(&self, new: &Self) -> bool {
        self.digest == new.digest || new.version > self.version || new.example != self.example
    }
}

type Results = BTreeMap<Pin, PinnedResult>;

#[test]
fn a_changed_result_has_a_new_version() {
    let (pinned, now) = (read_pins(), results_of_all_examples());
    for (pin, old) in &pinned {
        let Some(new) = now.get(pin) else { continue };
        let (Pin { operator, port }, was, is) = (pin, old.version, new.version);
        assert!(was <= is, "the version of `{operator}` fell from {was} to {is}");
        assert!(
            old.may_become(new),
            "`{operator}` version {is} gives another result at `{port}` of its example:\n  \
             was {}\n  is  {}\nraise the operator's version, or undo the change",
            old.digest,
            new.digest
        );
    }
    if std::env::var_os("GALERAS_UPDATE").is_some() {
        fs::write(root().join(FILE), text(&now)).unwrap();
        return;
    }
    let mut pins: BTreeSet<&Pin> = now.keys().chain(pinned.keys()).collect();
    pins.retain(|pin| now.get(*pin) != pinned.get(*pin));
    let name = |pin: &Pin| {
        let gone = if now.contains_key(pin) { "" } else { " (gone)" };
        format!("`{}` at `{}`{gone}", pin.operator, pin.port)
    };
    let stale: Vec<String> = pins.into_iter().map(name).collect();
    assert!(
        stale.is_empty(),
        "{FILE} is stale: {}; run GALERAS_UPDATE=1 cargo test -p galeras-tests --test \
         example_digests",
        stale.join(", ")
    );
}

/// Runs the examples; those that need a network have no pins.
fn results_of_all_examples() -> Results {
    let operators = operators();
    let versions: BTreeMap<&str, u64> =
        operators.iter().map(|(name, version)| (name.as_str(), *version)).collect();
    let mut results = Results::new();
    for (operator, version) in operators.iter().filter(|(name, _)| !needs_a_network(name)) {
        let steps = example(operator);
        let operator_of = operators_of_steps(&steps);
        let given = given(operator, &steps, &operator_of, &versions);
        let folder = project(&steps);
        let events =
            galeras_in(folder.path(), &["run", "w.yaml", "--allow", "exec", "--format", "json"]);
        let before = results.len();
        for (step, port, digest) in digests(&events) {
            // Times and layers of the sandbox differ from run to run.
            if operator_of.get(&step) == Some(operator) && port != "runs" {
                let pin = Pin { operator: operator.clone(), port: format!("{step}.{port}") };
                let example = given.clone();
                results.insert(pin, PinnedResult { version: *version, example, digest });
            }
        }
        assert!(results.len() > before, "the example of `{operator}` does not run it");
    }
    results
}

/// The operator of each step of an example.
fn operators_of_steps(steps: &str) -> BTreeMap<String, String> {
    let mut operators = BTreeMap::new();
    let mut step = "";
    for line in steps.lines() {
        match (line.strip_suffix(':'), line.strip_prefix("  op: ")) {
            (Some(name), _) if !line.starts_with(' ') => step = name,
            (_, Some(operator)) => {
                operators.insert(step.to_string(), operator.trim().to_string());
            }
            _ => {}
        }
    }
    operators
}

/// A hash of all that an example gives to an operator: its text, the data, and the versions of
/// the other operators, whose results may be its inputs.
fn given(
    operator: &str,
    steps: &str,
    operator_of: &BTreeMap<String, String>,
    versions: &BTreeMap<&str, u64>,
) -> String {
    let mut text = format!("{steps}\n{DATA}\n");
    for other in operator_of.values().filter(|other| *other != operator) {
        let _ = writeln!(text, "{other} {}", versions[other.as_str()]);
    }
    format!("{:016x}", fnv1a(text.as_bytes()))
}

/// The FNV-1a hash, which is the same in every version of Rust.
fn fnv1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Step, port and digest of every result of a run.
fn digests(events: &str) -> Vec<(String, String, String)> {
    let last = events.lines().last().expect("a run has events");
    let finished: Value = serde_json::from_str(last).unwrap();
    assert_eq!((&finished["event"], &finished["status"]), (&"finished".into(), &"ok".into()));
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let mut digests = Vec::new();
    for step in finished["steps"].as_array().unwrap() {
        for port in step["ports"].as_array().unwrap() {
            digests.push((text(&step["step"]), text(&port["port"]), text(&port["digest"])));
        }
    }
    digests
}

/// The committed pins; none if there is no file yet.
fn read_pins() -> Results {
    let text = fs::read_to_string(root().join(FILE)).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let [operator, version, example, port, digest] =
                line.split_whitespace().collect::<Vec<_>>()[..]
            else {
                panic!("{FILE}: `{line}` does not have five words");
            };
            let pin = Pin { operator: operator.into(), port: port.into() };
            let version = version.parse().unwrap();
            (pin, PinnedResult { version, example: example.into(), digest: digest.into() })
        })
        .collect()
}

fn text(results: &Results) -> String {
    let mut text = HEADER.to_string();
    for (Pin { operator, port }, PinnedResult { version, example, digest }) in results {
        let _ = writeln!(text, "{operator} {version} {example} {port} {digest}");
    }
    text
}

#[test]
fn a_result_is_replaced_only_with_a_new_version_or_another_example() {
    let old = PinnedResult { version: 1, example: "a".into(), digest: "x".into() };
    let changed = PinnedResult { digest: "y".into(), ..old.clone() };
    assert!(old.may_become(&old.clone()));
    assert!(!old.may_become(&changed));
    assert!(old.may_become(&PinnedResult { version: 2, ..changed.clone() }));
    assert!(old.may_become(&PinnedResult { example: "b".into(), ..changed }));
}

#[test]
fn pins_are_written_as_they_are_read() {
    let steps = "methods:\n  op: methods\n  with: { corpus: python-stdlib }\ncut:\n  op: cut\n";
    let operators = operators_of_steps(steps);
    assert_eq!((operators["methods"].as_str(), operators["cut"].as_str()), ("methods", "cut"));
    let pin = Pin { operator: "cut".into(), port: "cut.out".into() };
    let result = PinnedResult { version: 2, example: "0f".into(), digest: "ab".into() };
    let written = text(&Results::from([(pin, result)]));
    assert!(written.ends_with("\ncut 2 0f cut.out ab\n"), "{written}");
}
