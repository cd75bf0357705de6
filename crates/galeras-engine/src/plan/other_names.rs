//! Names from other tools, such as pandas, for what has another name here.

/// The names, and what to use.
const OTHER_NAMES: &[(&[&str], &str)] = &[
    (
        &["filter", "where"],
        "`validate` keeps the rows that pass its rules, with the reasons for the others; `sql` has \
         WHERE",
    ),
    (
        &[
            "aggregate",
            "drop",
            "group_by",
            "groupby",
            "join",
            "limit",
            "map",
            "merge",
            "mutate",
            "pivot",
            "rename",
            "select",
            "sort",
            "transform",
        ],
        "`sql` does that",
    ),
    (&["append", "concat", "stack"], "`union` stacks tables"),
    (
        &["deduplicate", "distinct", "unique"],
        "`dedup` finds near-duplicates; `sql` has SELECT DISTINCT",
    ),
    (&["csv", "dataset", "input", "json", "load", "parquet"], "`read` reads a file or a URL"),
    (&["bash", "command", "python", "run", "script", "shell"], "`exec` runs a program"),
    (&["ask", "chat", "complete", "infer", "llm", "model"], "`generate` asks a model"),
    (&["eval", "evaluate", "metric", "metrics"], "`score` compares predictions with references"),
    (
        &["grade", "rate", "verdict", "verdicts"],
        "`judge` reads the verdicts of a model, `review` has those of people",
    ),
    (&["stats", "summarise", "summarize", "summary"], "`describe` has means and their intervals"),
    (&["chart", "plot"], "`figure` draws"),
    (
        &["assert", "check", "test"],
        "data tests are under `assert:` of a step; `validate` has rules",
    ),
    (&["export", "output", "save", "write"], "files are written under `outputs:`"),
    (
        &["pass@1", "pass@10", "pass@100", "pass@k", "pass_at_1", "pass_at_k"],
        "it counts answers that passed tests: the function `pass_at_k(n, c, k)` of `sql`",
    ),
    (&["accuracy", "em"], "`exact_match` is the share of right answers"),
    (&["edit_distance", "edit_similarity"], "`levenshtein` counts edits, `similarity` is a share"),
];

/// The advice for a name that other tools have.
pub fn instead_of(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase().replace('-', "_");
    let found = OTHER_NAMES.iter().find(|(names, _)| names.contains(&name.as_str()));
    found.map(|(_, instead)| *instead)
}
