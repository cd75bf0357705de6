//! Tests plans of real operators. They are here because `plan` does not know the operators.

use crate::registry::REGISTRY;
use galeras_engine::plan::{PlanSettings, plan};

const WORKFLOW: &str = "galeras: 1
steps:
  a: { op: read, with: { path: rows.csv, key: [id] } }
  b: { op: sample, from: a, with: { n: 1, seed: 1 } }
  c: { op: read, with: { path: rows.csv, key: [id] } }
  d: { op: union, from: { b: b, c: c }, with: { label: of } }
  e: { op: sample, from: b, with: { n: 1, seed: 2 } }
";

#[tokio::test]
async fn steps_are_independent_if_neither_needs_the_other() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rows.csv"), "id,n\na,1\nb,2\n").unwrap();
    std::fs::write(folder.path().join("w.yaml"), WORKFLOW).unwrap();
    let settings = PlanSettings {
        downloads: folder.path().join("downloads"),
        working_dir: folder.path().to_path_buf(),
        ..PlanSettings::default()
    };
    let (plan, diagnostics) = plan(&folder.path().join("w.yaml"), REGISTRY, &settings).await;
    assert!(diagnostics.is_empty(), "{:?}", diagnostics.as_slice());
    let plan = plan.unwrap();
    let count = plan.steps.len();
    assert_eq!(count, 5);
    let needs = |step: usize, other: usize| plan.with_ancestors(&[step]).contains(&other);
    for set in 0..1_u32 << count {
        let wanted: Vec<bool> = (0..count).map(|at| set >> at & 1 == 1).collect();
        for step in 0..count {
            let beside = |at: &usize| wanted[*at] && !needs(step, *at) && !needs(*at, step);
            let all = (0..count).filter(beside).count();
            for most in 0..=count {
                let told = plan.independent_of(step, &wanted, most);
                assert_eq!(told, all.min(most), "step {step} of {wanted:?}, at most {most}");
            }
        }
    }
}
