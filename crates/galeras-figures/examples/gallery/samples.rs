//! Figures as a study of code models would have them, from numbers made by a fixed recipe.

mod tables;

use galeras_figures::{Column, Data, FigureError, Kind, Scale, Spec, Values};

/// Numbers between 0 and 1 from a seed (Knuth's constants for a linear congruence).
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Draw {
        Draw(seed)
    }

    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// About normal: the sum of twelve.
    pub(crate) fn normal(&mut self, mean: f64, sd: f64) -> f64 {
        mean + sd * ((0..12).map(|_| self.uniform()).sum::<f64>() - 6.0)
    }
}

fn name(text: &str) -> Option<String> {
    Some(text.to_string())
}

pub(crate) fn texts(values: &[&str]) -> Values {
    Values::Texts(values.iter().map(|v| Some((*v).to_string())).collect())
}

pub(crate) fn numbers(values: &[f64]) -> Values {
    Values::Numbers(values.iter().map(|v| Some(*v)).collect())
}

/// Answers of three models to prompts: their scores and lengths, by testbed.
fn answers() -> Result<Data, FigureError> {
    let mut draw = Draw::new(7);
    let (mut model, mut testbed) = (Vec::new(), Vec::new());
    let (mut score, mut tokens) = (Vec::new(), Vec::new());
    for row in 0..420 {
        let which = row % 3;
        model.push(name(["base", "few-shot", "chain of thought"][which]));
        testbed.push(name(["random cut", "with docstring"][row / 3 % 2]));
        let value = draw.normal(0.52 + 0.07 * which as f64, 0.14).clamp(0.0, 1.0);
        score.push(if row % 97 == 0 { None } else { Some(value) });
        tokens.push(Some(draw.normal(3.6 + 0.3 * which as f64, 0.7).exp().round()));
    }
    let mut data = Data::of([
        ("model", Values::Texts(model)),
        ("testbed", Values::Texts(testbed)),
        ("codebleu", Values::Numbers(score)),
    ])?;
    data.push(Column {
        name: "length".to_string(),
        values: Values::Numbers(tokens),
        unit: Some("tokens".to_string()),
        description: Some("tokens of the answer".to_string()),
    })?;
    Ok(data)
}

fn spec(kind: Kind, columns: &[(&str, &str)], title: &str) -> Spec {
    let mut spec = Spec::new(kind);
    for (role, column) in columns {
        let column = Some((*column).to_string());
        match *role {
            "x" => spec.x = column,
            "y" => spec.y = column,
            "low" => spec.low = column,
            "high" => spec.high = column,
            "color" => spec.color = column,
            "facet" => spec.facet = column,
            _ => spec.label = column,
        }
    }
    spec.title = (!title.is_empty()).then(|| title.to_string());
    spec
}

/// Every sample: a name for its files, the spec and the data.
pub(crate) fn all() -> Result<Vec<(&'static str, Spec, Data)>, FigureError> {
    let answers = answers()?;
    let mut logarithmic = spec(Kind::HISTOGRAM, &[("x", "length")], "Length of answers");
    logarithmic.x_scale = Some(Scale::Log);
    let mut violin = spec(
        Kind::VIOLIN,
        &[("x", "model"), ("y", "codebleu"), ("color", "testbed")],
        "Similarity to the reference by model and testbed",
    );
    violin.caption = Some("CodeBLEU of answers".to_string());
    let mut found = vec![
        (
            "histogram",
            spec(Kind::HISTOGRAM, &[("x", "codebleu")], "Similarity to the reference"),
            answers.clone(),
        ),
        ("histogram-log", logarithmic, answers.clone()),
        (
            "histogram-groups",
            spec(
                Kind::HISTOGRAM,
                &[("x", "codebleu"), ("color", "model"), ("facet", "testbed")],
                "",
            ),
            answers.clone(),
        ),
        (
            "ecdf",
            spec(
                Kind::ECDF,
                &[("x", "codebleu"), ("color", "model")],
                "Similarity to the reference",
            ),
            answers.clone(),
        ),
        (
            "box",
            spec(
                Kind::BOX,
                &[("x", "model"), ("y", "codebleu"), ("color", "testbed")],
                "Similarity by model",
            ),
            answers.clone(),
        ),
        (
            "box-facets",
            spec(Kind::BOX, &[("y", "length"), ("color", "model"), ("facet", "testbed")], ""),
            answers.clone(),
        ),
        ("violin", violin, answers),
    ];
    found.extend(estimates()?);
    found.extend(tables::all()?);
    Ok(found)
}

fn estimates() -> Result<Vec<(&'static str, Spec, Data)>, FigureError> {
    let leaderboard = Data::of([
        ("model", texts(&["gpt-4o", "claude-3", "codellama-34b", "starcoder2", "deepseek-coder"])),
        ("pass rate", numbers(&[0.71, 0.69, 0.48, 0.41, 0.55])),
        ("low", numbers(&[0.66, 0.64, 0.43, 0.36, 0.5])),
        ("high", numbers(&[0.76, 0.74, 0.53, 0.46, 0.6])),
        ("cost", numbers(&[12.1, 14.9, 0.9, 0.35, 1.4])),
    ])?;
    let interval = [("low", "low"), ("high", "high")];
    let with = |columns: &[(&'static str, &'static str)]| [columns, &interval[..]].concat();
    let mut cost = spec(
        Kind::SCATTER,
        &with(&[("x", "cost"), ("y", "pass rate"), ("label", "model")]),
        "What a better answer costs",
    );
    cost.x_scale = Some(Scale::Log);
    cost.x_label = Some("cost (dollars per 1000 answers)".to_string());

    let effects = Data::of([
        (
            "outcome",
            texts(&[
                "CodeBLEU",
                "Levenshtein similarity",
                "passes the tests",
                "CodeBLEU",
                "Levenshtein similarity",
                "passes the tests",
                "has a docstring",
            ]),
        ),
        (
            "adjusted",
            texts(&["naive", "naive", "naive", "back-door", "back-door", "back-door", "back-door"]),
        ),
        ("effect", numbers(&[0.12, 0.08, 0.21, 0.061, 0.034, 0.142, -0.02])),
        (
            "low",
            Values::Numbers(vec![
                Some(0.09),
                Some(0.05),
                Some(0.15),
                Some(0.03),
                Some(-0.002),
                Some(0.08),
                None,
            ]),
        ),
        (
            "high",
            Values::Numbers(vec![
                Some(0.15),
                Some(0.11),
                Some(0.27),
                Some(0.092),
                Some(0.07),
                Some(0.204),
                None,
            ]),
        ),
    ])?;
    let mut draw = Draw::new(3);
    let covariates = [
        "lines of code",
        "cyclomatic complexity",
        "number of parameters",
        "age of the repository",
        "stars",
        "identifier length",
    ];
    let (mut covariate, mut when, mut smd) = (Vec::new(), Vec::new(), Vec::new());
    for c in covariates {
        for (at, spread) in [("before", 0.3), ("after", 0.05)] {
            covariate.push(name(c));
            when.push(name(at));
            smd.push(Some(draw.normal(0.0, spread)));
        }
    }
    let balance = Data::of([
        ("covariate", Values::Texts(covariate)),
        ("when", Values::Texts(when)),
        ("standardised mean difference", Values::Numbers(smd)),
    ])?;
    let (mut x, mut y, mut low, mut high, mut group) = (vec![], vec![], vec![], vec![], vec![]);
    for (g, factor) in [("with docstring", 1.0), ("without", 0.6)] {
        for at in 1..=10 {
            let mean = factor * (1.0 - (-f64::from(at) / 4.0).exp());
            x.push(f64::from(at));
            y.push(mean);
            low.push(mean - 0.08);
            high.push(mean + 0.08);
            group.push(g);
        }
    }
    let curve = Data::of([
        ("samples", numbers(&x)),
        ("pass@k", numbers(&y)),
        ("low", numbers(&low)),
        ("high", numbers(&high)),
        ("prompt", texts(&group)),
    ])?;
    let mut draw = Draw::new(11);
    let (mut size, mut time, mut kind) = (vec![], vec![], vec![]);
    for i in 0..300 {
        let s = draw.normal(40.0, 12.0).max(3.0);
        size.push(s);
        time.push((s * 0.08 + draw.normal(0.0, 0.9) + f64::from(i % 3)).max(0.1));
        kind.push(["function", "method", "property"][i as usize % 3]);
    }
    let sizes =
        Data::of([("lines", numbers(&size)), ("seconds", numbers(&time)), ("kind", texts(&kind))])?;
    Ok(vec![
        (
            "bar",
            spec(Kind::BAR, &with(&[("x", "model"), ("y", "pass rate")]), "Leaderboard"),
            leaderboard.clone(),
        ),
        ("scatter-labels", cost, leaderboard),
        (
            "forest",
            spec(
                Kind::FOREST,
                &with(&[("y", "outcome"), ("x", "effect"), ("color", "adjusted")]),
                "Effect of few-shot prompts",
            ),
            effects.clone(),
        ),
        (
            "forest-facets",
            spec(
                Kind::FOREST,
                &with(&[("y", "outcome"), ("x", "effect"), ("facet", "adjusted")]),
                "",
            ),
            effects,
        ),
        (
            "love",
            spec(
                Kind::LOVE,
                &[("y", "covariate"), ("x", "standardised mean difference"), ("color", "when")],
                "Balance of covariates",
            ),
            balance,
        ),
        (
            "line",
            spec(
                Kind::LINE,
                &with(&[("x", "samples"), ("y", "pass@k"), ("color", "prompt")]),
                "More samples, more passes",
            ),
            curve,
        ),
        (
            "scatter",
            spec(
                Kind::SCATTER,
                &[("x", "lines"), ("y", "seconds"), ("color", "kind")],
                "Time to answer",
            ),
            sizes,
        ),
    ])
}
