//! YAML merge keys: arguments that several steps share.

use crate::harness::{Project, refused};

const STEPS: &str = "galeras: 1
steps:
  table:
    op: exec
    with:
      command: for i in 1 2 3 4 5 6; do echo '{\"id\":\"'$i'\",\"x\":'$i'}'; done
      output: { id: utf8!, x: int64! }
  one: { op: sample, from: table, with: &common { n: 2, seed: 1 } }
  two: { op: sample, from: table, with: { <<: *common, n: 3 } }
  three: &three { op: sample, from: two, with: { n: 1, <<: *common } }
  four:
    <<: *three
    from: one
    with:
      <<: [ { seed: 5 }, *common ]
";

#[test]
fn keys_are_taken_over_and_those_that_are_written_count() {
    let project = Project::new(STEPS);
    let outcome = project.run_ok(&[]);
    for (step, rows) in [("one", 2), ("two", 3), ("three", 1), ("four", 2)] {
        assert_eq!(outcome.step(step)["rows"], rows, "{step}");
    }
    // Written out, it is the same: nothing runs.
    project.change("{ <<: *common, n: 3 }", "{ seed: 1, n: 3 }");
    project.change("{ n: 1, <<: *common }", "{ n: 1, seed: 1 }");
    project.rerun("      <<: [ { seed: 5 }, *common ]\n", "      n: 2\n      seed: 5\n").all_hit();
    let text = STEPS.replace(
        "    from: one\n    with:\n      <<: [ { seed: 5 }, *common ]\n",
        "    from: table\n    matrix:\n      - { size: 1, <<: &more { of: a, at: 1 } }\n      - { size: 2, <<: *more, at: 2 }\n    with: { <<: *common, n: '${{ matrix.size }}' }\n",
    );
    let outcome = Project::new(&text).run_ok(&[]);
    assert_eq!(outcome.step("four[size=1]")["rows"], 1);
    assert_eq!(outcome.step("four[size=2]")["rows"], 2);
}

#[test]
fn mistakes_in_merged_keys_have_the_place_where_they_are_written() {
    refused(&STEPS.replace("&common { n: 2", "&common { n: «-2"), "wrong-value", &["`n` must be"]);
    let misspelt = STEPS.replace("&common { n: 2, seed: 1 }", "&common { n: 2, seed: 1, «sed: 1 }");
    refused(&misspelt, "unknown-argument", &["no argument `sed`"]);
    let with = |merge: &str| {
        STEPS.replace("{ <<: *common, n: 3 }", &format!("{{ {merge}, n: 3, seed: 1 }}"))
    };
    let said = "`<<` takes over the keys of a mapping, not the integer `3`";
    refused(&with("<<: «3"), "wrong-type", &[said]);
    refused(&with("<<: [*common, «[]]"), "wrong-type", &["not a list"]);
    refused(&with("<<: *common, «<<: *common"), "duplicate-key", &["`<<` is defined twice"]);
    refused(&with("«'<<': *common"), "unknown-argument", &["no argument `<<`"]);
}
