//! Figures as a study of code models would have them, from numbers made by a fixed recipe.

use galeras_figures::{Column, Data, FigureError, Kind, Scale, Spec, Values};

/// Numbers between 0 and 1 from a seed (Knuth's constants for a linear congruence).
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
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

pub(crate) fn texts(values: &[&str]) -> Values {
    Values::Texts(values.iter().map(|v| Some((*v).to_string())).collect())
}

pub(crate) fn numbers(values: &[f64]) -> Values {
    Values::Numbers(values.iter().map(|v| Some(*v)).collect())
}

pub(crate) fn column(name: &str, values: Values) -> Column {
    Column { name: name.to_string(), values, unit: None, description: None }
}

/// A table of these columns.
pub(crate) fn data_of<const N: usize>(columns: [(&str, Values); N]) -> Data {
    Data::new(columns.map(|(name, values)| column(name, values)).into()).unwrap()
}

/// A table from a line of names and lines of cells. An empty cell is absent; a column whose other
/// cells are all numbers is one of numbers.
pub(crate) fn table(text: &str) -> Result<Data, FigureError> {
    let mut lines =
        text.trim().lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let names = lines.next().unwrap_or_default();
    let rows: Vec<Vec<&str>> = lines.collect();
    let values = |at: usize| {
        let cells = rows.iter().map(|row| Some(row[at]).filter(|cell| !cell.is_empty()));
        match cells.clone().map(|cell| cell.map(str::parse).transpose()).collect() {
            Ok(numbers) => Values::Numbers(numbers),
            Err(_) => Values::Texts(cells.map(|cell| cell.map(str::to_string)).collect()),
        }
    };
    Data::new(names.iter().enumerate().map(|(at, name)| column(name, values(at))).collect())
}

/// A figure of these columns: `x=model, y=score`.
pub(crate) fn spec(kind: Kind, columns: &str) -> Spec {
    let mut spec = Spec::new(kind);
    for (role, column) in columns.split(", ").filter_map(|part| part.split_once('=')) {
        let place = match role {
            "x" => &mut spec.x,
            "y" => &mut spec.y,
            "low" => &mut spec.low,
            "high" => &mut spec.high,
            "color" => &mut spec.color,
            "facet" => &mut spec.facet,
            _ => &mut spec.label,
        };
        *place = Some(column.to_string());
    }
    spec
}

/// Answers of three models to prompts: their scores and lengths, by testbed.
fn answers() -> Result<Data, FigureError> {
    let mut draw = Draw(7);
    let (mut model, mut testbed) = (Vec::new(), Vec::new());
    let (mut score, mut tokens) = (Vec::new(), Vec::new());
    for row in 0..420 {
        let which = row % 3;
        model.push(["base", "few-shot", "chain of thought"][which]);
        testbed.push(["random cut", "with docstring"][row / 3 % 2]);
        let value = draw.normal(0.52 + 0.07 * which as f64, 0.14).clamp(0.0, 1.0);
        score.push(if row % 97 == 0 { None } else { Some(value) });
        tokens.push(draw.normal(3.6 + 0.3 * which as f64, 0.7).exp().round());
    }
    Data::new(vec![
        column("model", texts(&model)),
        column("testbed", texts(&testbed)),
        column("codebleu", Values::Numbers(score)),
        Column {
            unit: Some("tokens".to_string()),
            description: Some("tokens of the answer".to_string()),
            ..column("length", numbers(&tokens))
        },
    ])
}

/// Standardised mean differences of covariates before and after adjustment.
fn balance() -> Result<Data, FigureError> {
    let mut draw = Draw(3);
    let mut rows = "covariate | when | standardised mean difference".to_string();
    for covariate in COVARIATES.split(", ") {
        for (at, spread) in [("before", 0.3), ("after", 0.05)] {
            rows.push_str(&format!("\n{covariate} | {at} | {}", draw.normal(0.0, spread)));
        }
    }
    table(&rows)
}

const COVARIATES: &str = "lines of code, cyclomatic complexity, number of parameters, \
    age of the repository, stars, identifier length";

fn curve() -> Result<Data, FigureError> {
    let mut rows = "samples | pass@k | low | high | prompt".to_string();
    for (group, factor) in [("with docstring", 1.0), ("without", 0.6)] {
        for at in 1..=10 {
            let mean = factor * (1.0 - (-f64::from(at) / 4.0).exp());
            let (low, high) = (mean - 0.08, mean + 0.08);
            rows.push_str(&format!("\n{at} | {mean} | {low} | {high} | {group}"));
        }
    }
    table(&rows)
}

fn sizes() -> Result<Data, FigureError> {
    let mut draw = Draw(11);
    let mut rows = "lines | seconds | kind".to_string();
    for i in 0..300 {
        let lines = draw.normal(40.0, 12.0).max(3.0);
        let seconds = (lines * 0.08 + draw.normal(0.0, 0.9) + f64::from(i % 3)).max(0.1);
        let kind = ["function", "method", "property"][i as usize % 3];
        rows.push_str(&format!("\n{lines} | {seconds} | {kind}"));
    }
    table(&rows)
}

fn correlations(draw: &mut Draw) -> Result<Data, FigureError> {
    let names = ["lines", "tokens", "identifiers", "complexity", "age", "score"];
    let mut rows = "a | b | correlation".to_string();
    for (i, j) in (0..36).map(|at| (at / 6, at % 6)) {
        let near = 1.0 - 0.45 * f64::from(i32::abs_diff(i, j));
        let r = if i == j { 1.0 } else { (near + draw.normal(0.0, 0.1)).clamp(-1.0, 1.0) };
        rows.push_str(&format!("\n{} | {} | {r}", names[i as usize], names[j as usize]));
    }
    table(&rows)
}

fn commits(draw: &mut Draw) -> Result<Data, FigureError> {
    let mut rows = "hour | day | commits".to_string();
    for hour in 0..24 {
        for day in ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] {
            let share = 1.0 - (f64::from(hour) - 14.0).abs() / 16.0;
            let commits = (draw.uniform() * 40.0 * share).round();
            rows.push_str(&format!("\n{hour} | {day} | {commits}"));
        }
    }
    table(&rows)
}

const TOKENS: &str = "identifier names 412; attribute names 198; parameter names 97; \
    builtin names 60; def keywords 88; return keywords 80; if keywords 66; for keywords 41; \
    in keywords 39; import keywords 12; ( punctuation 260; ) punctuation 260; , punctuation 190; \
    : punctuation 150; string literals 120; number literals 70; None literals 20; \
    comment comments 34; docstring comments 50";

fn taxonomy(draw: &mut Draw) -> Result<Data, FigureError> {
    let mut rows = "token | class | count | of".to_string();
    for (side, factor) in [("ground truth", 1.0), ("answers", 0.8)] {
        for entry in TOKENS.split("; ") {
            let [token, class, n] = entry.split(' ').collect::<Vec<_>>()[..] else { continue };
            let n: f64 = n.parse().unwrap_or(f64::NAN);
            let count = (n * (factor + draw.uniform() * 0.4)).round();
            rows.push_str(&format!("\n{token} | {class} | {count} | {side}"));
        }
    }
    table(&rows)
}

const LEADERBOARD: &str = "
    model          | pass rate | low  | high | cost
    gpt-4o         | 0.71      | 0.66 | 0.76 | 12.1
    claude-3       | 0.69      | 0.64 | 0.74 | 14.9
    codellama-34b  | 0.48      | 0.43 | 0.53 | 0.9
    starcoder2     | 0.41      | 0.36 | 0.46 | 0.35
    deepseek-coder | 0.55      | 0.5  | 0.6  | 1.4";

const EFFECTS: &str = "
    outcome                | adjusted  | effect | low    | high
    CodeBLEU               | naive     | 0.12   | 0.09   | 0.15
    Levenshtein similarity | naive     | 0.08   | 0.05   | 0.11
    passes the tests       | naive     | 0.21   | 0.15   | 0.27
    CodeBLEU               | back-door | 0.061  | 0.03   | 0.092
    Levenshtein similarity | back-door | 0.034  | -0.002 | 0.07
    passes the tests       | back-door | 0.142  | 0.08   | 0.204
    has a docstring        | back-door | -0.02  |        | ";

const CAUSAL_MODEL: &str = "
    from            | to              | role
    prompt strategy |                 | treatment
    CodeBLEU        |                 | outcome
    lines of code   |                 | confounder
    complexity      |                 | confounder
    prompt size     |                 | mediator
    prompt strategy | CodeBLEU        | effect asked for
    lines of code   | prompt strategy | other arrows
    complexity      | prompt strategy | other arrows
    lines of code   | CodeBLEU        | other arrows
    lines of code   | complexity      | other arrows
    complexity      | CodeBLEU        | other arrows
    prompt strategy | prompt size     | other arrows
    prompt size     | CodeBLEU        | other arrows";

const PIPELINE: &str = "
    from         | to          | rows
    repositories | methods     | 3
    methods      | deduplicate | 18,204
    methods      | features    |
    deduplicate  | cut         | 12,001
    cut          | ask         | 12,001
    ask          | score       | 36,003
    score        | estimate    | 36,003
    features     | estimate    | 18,204
    estimate     | report      | 6";

const ATTRITION: &str = "
    stage                     | rows  | why
    methods found             | 18204 |
    parsed                    | 17950 | do not parse
    without near duplicates   | 12001 | near duplicates (MinHash, 0.8)
    with a docstring          | 4322  | no docstring
    after the models’ cut-off | 871   | older than the cut-off";

/// Every sample: a name for its files, the spec and the data.
pub(crate) fn all() -> Result<Vec<(&'static str, Spec, Data)>, FigureError> {
    let mut found: Vec<(&'static str, Spec, Data)> = Vec::new();
    let mut add = |name, kind, columns, title: &str, data: &Data| {
        let title = (!title.is_empty()).then(|| title.to_string());
        found.push((name, Spec { title, ..spec(kind, columns) }, data.clone()));
    };
    let data = answers()?;
    add("histogram", Kind::HISTOGRAM, "x=codebleu", "Similarity to the reference", &data);
    add("histogram-log", Kind::HISTOGRAM, "x=length", "Length of answers", &data);
    let columns = "x=codebleu, color=model, facet=testbed";
    add("histogram-groups", Kind::HISTOGRAM, columns, "", &data);
    add("ecdf", Kind::ECDF, "x=codebleu, color=model", "Similarity to the reference", &data);
    let columns = "x=model, y=codebleu, color=testbed";
    add("box", Kind::BOX, columns, "Similarity by model", &data);
    add("box-facets", Kind::BOX, "y=length, color=model, facet=testbed", "", &data);
    let title = "Similarity to the reference by model and testbed";
    add("violin", Kind::VIOLIN, columns, title, &data);
    let data = table(LEADERBOARD)?;
    add("bar", Kind::BAR, "x=model, y=pass rate, low=low, high=high", "Leaderboard", &data);
    let columns = "x=cost, y=pass rate, label=model, low=low, high=high";
    add("scatter-labels", Kind::SCATTER, columns, "What a better answer costs", &data);
    let data = table(EFFECTS)?;
    let columns = "y=outcome, x=effect, color=adjusted, low=low, high=high";
    add("forest", Kind::FOREST, columns, "Effect of few-shot prompts", &data);
    let columns = "y=outcome, x=effect, facet=adjusted, low=low, high=high";
    add("forest-facets", Kind::FOREST, columns, "", &data);
    let columns = "y=covariate, x=standardised mean difference, color=when";
    add("love", Kind::LOVE, columns, "Balance of covariates", &balance()?);
    let columns = "x=samples, y=pass@k, color=prompt, low=low, high=high";
    add("line", Kind::LINE, columns, "More samples, more passes", &curve()?);
    add("scatter", Kind::SCATTER, "x=lines, y=seconds, color=kind", "Time to answer", &sizes()?);
    let mut draw = Draw(5);
    let data = correlations(&mut draw)?;
    add("heatmap", Kind::HEATMAP, "x=a, y=b, color=correlation", "Correlations", &data);
    let columns = "x=hour, y=day, color=commits";
    add("heatmap-counts", Kind::HEATMAP, columns, "When people commit", &commits(&mut draw)?);
    let columns = "x=token, y=count, color=class, facet=of";
    add("treemap", Kind::TREEMAP, columns, "Tokens by taxonomy", &taxonomy(&mut draw)?);
    let data = table(CAUSAL_MODEL)?;
    add("graph", Kind::GRAPH, "x=from, y=to, color=role", "Structural causal model", &data);
    let data = table(PIPELINE)?;
    add("graph-pipeline", Kind::GRAPH, "x=from, y=to, label=rows", "The workflow", &data);
    let data = table(ATTRITION)?;
    add("funnel", Kind::FUNNEL, "x=stage, y=rows, label=why", "Where the rows went", &data);
    for (name, spec, _) in &mut found {
        match *name {
            "histogram-log" => spec.x_scale = Some(Scale::Log),
            "violin" => spec.caption = Some("CodeBLEU of answers".to_string()),
            "scatter-labels" => {
                spec.x_scale = Some(Scale::Log);
                spec.x_label = Some("cost (dollars per 1000 answers)".to_string());
            }
            _ => {}
        }
    }
    Ok(found)
}
