//! Crates of algorithms and clients are built without DataFusion, Arrow and the engine.

use std::collections::BTreeSet;
use std::process::Command;

use crate::fail_if_any;
use crate::sources::{ROOT, names_in};

/// Crates that know tables. All others below `crates/` are algorithms and clients.
const KNOW_TABLES: &[&str] = &[
    "galeras-cluster",
    "galeras-display",
    "galeras-effects",
    "galeras-engine",
    "galeras-operator",
    "galeras-operators",
    "galeras-sql",
    "galeras-store",
    "galeras-study",
];

#[test]
fn crates_of_algorithms_depend_on_neither_arrow_nor_datafusion() {
    let mut problems = Vec::new();
    let names = names_in("crates");
    let stale = KNOW_TABLES.iter().filter(|known| !names.iter().any(|name| name == *known));
    problems.extend(stale.map(|name| format!("there is no crate {name}")));
    for name in names.iter().filter(|name| !KNOW_TABLES.contains(&name.as_str())) {
        let tree = Command::new(env!("CARGO"))
            .args(["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none"])
            .args(["--package", name.as_str()])
            .current_dir(ROOT)
            .output()
            .unwrap();
        assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
        let tree = String::from_utf8(tree.stdout).unwrap();
        let packages: BTreeSet<&str> =
            tree.lines().filter_map(|line| line.split(' ').next()).collect();
        assert!(packages.contains(name.as_str()), "cargo tree is read wrongly: {tree}");
        for forbidden in ["arrow-array", "datafusion", "parquet", "galeras"] {
            if packages.contains(forbidden) {
                problems.push(format!("{name} depends on {forbidden}"));
            }
        }
    }
    fail_if_any(problems);
}
