//! Samples that are not of one number by groups: matrices, taxonomies, graphs, funnels.

use galeras_figures::{Data, FigureError, Kind, Spec, Values};

use super::{Draw, numbers, spec, texts};

pub(crate) fn all() -> Result<Vec<(&'static str, Spec, Data)>, FigureError> {
    let names = ["lines", "tokens", "identifiers", "complexity", "age", "score"];
    let (mut x, mut y, mut r) = (vec![], vec![], vec![]);
    let mut draw = Draw::new(5);
    for (i, a) in names.iter().enumerate() {
        for (j, b) in names.iter().enumerate() {
            x.push(*a);
            y.push(*b);
            let near = 1.0 - 0.45 * i.abs_diff(j) as f64;
            r.push(if i == j { 1.0 } else { (near + draw.normal(0.0, 0.1)).clamp(-1.0, 1.0) });
        }
    }
    let correlations =
        Data::of([("a", texts(&x)), ("b", texts(&y)), ("correlation", numbers(&r))])?;
    let (mut x, mut y, mut n) = (vec![], vec![], vec![]);
    for hour in 0..24 {
        for day in ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] {
            x.push(f64::from(hour));
            y.push(day);
            n.push((draw.uniform() * 40.0 * (1.0 - (f64::from(hour) - 14.0).abs() / 16.0)).round());
        }
    }
    let commits = Data::of([("hour", numbers(&x)), ("day", texts(&y)), ("commits", numbers(&n))])?;

    let tokens = [
        ("identifier", "names", 412.0),
        ("attribute", "names", 198.0),
        ("parameter", "names", 97.0),
        ("builtin", "names", 60.0),
        ("def", "keywords", 88.0),
        ("return", "keywords", 80.0),
        ("if", "keywords", 66.0),
        ("for", "keywords", 41.0),
        ("in", "keywords", 39.0),
        ("import", "keywords", 12.0),
        ("(", "punctuation", 260.0),
        (")", "punctuation", 260.0),
        (",", "punctuation", 190.0),
        (":", "punctuation", 150.0),
        ("string", "literals", 120.0),
        ("number", "literals", 70.0),
        ("None", "literals", 20.0),
        ("comment", "comments", 34.0),
        ("docstring", "comments", 50.0),
    ];
    let (mut token, mut class, mut count, mut of) = (vec![], vec![], vec![], vec![]);
    for (side, factor) in [("ground truth", 1.0), ("answers", 0.8)] {
        for (t, c, n) in tokens {
            token.push(t);
            class.push(c);
            count.push((n * (factor + draw.uniform() * 0.4)).round());
            of.push(side);
        }
    }
    let taxonomy = Data::of([
        ("token", texts(&token)),
        ("class", texts(&class)),
        ("count", numbers(&count)),
        ("of", texts(&of)),
    ])?;

    let optional = |values: &[&str]| {
        Values::Texts(values.iter().map(|v| (!v.is_empty()).then(|| (*v).to_string())).collect())
    };
    let model = Data::of([
        (
            "from",
            texts(&[
                "prompt strategy",
                "CodeBLEU",
                "lines of code",
                "complexity",
                "prompt size",
                "prompt strategy",
                "lines of code",
                "complexity",
                "lines of code",
                "lines of code",
                "complexity",
                "prompt strategy",
                "prompt size",
            ]),
        ),
        (
            "to",
            optional(&[
                "",
                "",
                "",
                "",
                "",
                "CodeBLEU",
                "prompt strategy",
                "prompt strategy",
                "CodeBLEU",
                "complexity",
                "CodeBLEU",
                "prompt size",
                "CodeBLEU",
            ]),
        ),
        (
            "role",
            texts(&[
                "treatment",
                "outcome",
                "confounder",
                "confounder",
                "mediator",
                "effect asked for",
                "other arrows",
                "other arrows",
                "other arrows",
                "other arrows",
                "other arrows",
                "other arrows",
                "other arrows",
            ]),
        ),
    ])?;
    let pipeline = Data::of([
        (
            "from",
            texts(&[
                "repositories",
                "methods",
                "methods",
                "deduplicate",
                "cut",
                "ask",
                "score",
                "features",
                "estimate",
            ]),
        ),
        (
            "to",
            texts(&[
                "methods",
                "deduplicate",
                "features",
                "cut",
                "ask",
                "score",
                "estimate",
                "estimate",
                "report",
            ]),
        ),
        (
            "rows",
            texts(&["3", "18,204", "", "12,001", "12,001", "36,003", "36,003", "18,204", "6"]),
        ),
    ])?;
    let attrition = Data::of([
        (
            "stage",
            texts(&[
                "methods found",
                "parsed",
                "without near duplicates",
                "with a docstring",
                "after the models’ cut-off",
            ]),
        ),
        ("rows", numbers(&[18_204.0, 17_950.0, 12_001.0, 4322.0, 871.0])),
        (
            "why",
            optional(&[
                "",
                "do not parse",
                "near duplicates (MinHash, 0.8)",
                "no docstring",
                "older than the cut-off",
            ]),
        ),
    ])?;
    Ok(vec![
        (
            "heatmap",
            spec(
                Kind::HEATMAP,
                &[("x", "a"), ("y", "b"), ("color", "correlation")],
                "Correlations",
            ),
            correlations,
        ),
        (
            "heatmap-counts",
            spec(
                Kind::HEATMAP,
                &[("x", "hour"), ("y", "day"), ("color", "commits")],
                "When people commit",
            ),
            commits,
        ),
        (
            "treemap",
            spec(
                Kind::TREEMAP,
                &[("x", "token"), ("y", "count"), ("color", "class"), ("facet", "of")],
                "Tokens by taxonomy",
            ),
            taxonomy,
        ),
        (
            "graph",
            spec(
                Kind::GRAPH,
                &[("x", "from"), ("y", "to"), ("color", "role")],
                "Structural causal model",
            ),
            model,
        ),
        (
            "graph-pipeline",
            spec(Kind::GRAPH, &[("x", "from"), ("y", "to"), ("label", "rows")], "The workflow"),
            pipeline,
        ),
        (
            "funnel",
            spec(
                Kind::FUNNEL,
                &[("x", "stage"), ("y", "rows"), ("label", "why")],
                "Where the rows went",
            ),
            attrition,
        ),
    ])
}
