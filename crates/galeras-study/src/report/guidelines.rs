//! The questions of reviewers about the models of a study: models, prompts, sizes, dates and cost; and
//! the guidelines of <https://llm-guidelines.org>, as far as the workflow and its results answer them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use galeras_pages::model::{Labelled, Section, TableBlock, TableColumn, TextBlock};
use serde_json::{Value, json};

use super::values::{JsonRow, number, rows, text, value};
use crate::runs::value_text;
use crate::{Surveyed, table_name};
use galeras_engine::plan::PlannedStep;
use galeras_engine::runner::RunError;
use galeras_operator::{MAIN, SUMMARY};
use galeras_sql::session::session;

/// Providers that no language model is behind.
const BASELINES: [&str; 3] = ["echo", "reference", "ngram"];
/// The servers of makers of models, whose weights are not open.
const MAKERS: [&str; 2] = ["api.openai.com", "api.anthropic.com"];
/// The arguments that configure a model.
const SETTINGS: [&str; 8] =
    ["temperature", "top_p", "max_tokens", "seed", "samples", "stop", "extra_body", "endpoint"];
/// The most names in a sentence.
const NAMED: usize = 8;

/// A version of a model that answers in a step.
struct ModelUse {
    step: String,
    model: String,
    /// As the server names it; empty if it does not.
    version: String,
    server: String,
    settings: String,
    is_pinned: bool,
    is_replayed: bool,
    has_temperature: bool,
    samples: u64,
    answers: Option<u64>,
    tokens: Option<u64>,
    cost: Option<f64>,
    /// The day of its last answers; empty if there are none.
    day: String,
    points: Option<u64>,
}

/// The models of a study.
pub(super) struct ModelFacts {
    uses: Vec<ModelUse>,
}

fn steps<'a>(surveyed: &'a Surveyed, operator: &'a str) -> impl Iterator<Item = &'a PlannedStep> {
    let all = surveyed.plan.steps.iter();
    all.filter(move |step| step.operator.descriptor().name == operator)
}

/// The names of the steps of an operator, each matrix once.
fn families(surveyed: &Surveyed, operator: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for step in steps(surveyed, operator) {
        if !names.contains(&step.family) {
            names.push(step.family.clone());
        }
    }
    names
}

impl ModelFacts {
    /// `None` if no model answers in the study.
    pub(super) async fn of(surveyed: &Surveyed) -> Result<Option<Self>, RunError> {
        let mut uses = Vec::new();
        for (at, step) in surveyed.plan.steps.iter().enumerate() {
            let args = step.step.args();
            let provider = text_of(&args, "provider");
            let asks = step.operator.descriptor().name == "generate";
            if asks && !BASELINES.contains(&provider.as_str()) {
                uses.extend(model_uses(surveyed, at, step, &args).await?);
            }
        }
        Ok((!uses.is_empty()).then_some(Self { uses }))
    }

    /// The facts for the head of the page.
    pub(super) fn facts(&self, surveyed: &Surveyed) -> Vec<Labelled> {
        let named = |one: &ModelUse| match one.version.as_str() {
            "" => one.model.clone(),
            version if version == one.model => one.model.clone(),
            version => format!("{} ({version})", one.model),
        };
        let mut models: Vec<String> = self.uses.iter().map(named).collect();
        let mut seen = BTreeSet::new();
        models.retain(|model| seen.insert(model.clone()));
        let days: BTreeSet<&str> =
            self.uses.iter().map(|one| one.day.as_str()).filter(|day| !day.is_empty()).collect();
        let days = match (days.first(), days.last()) {
            (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
            (Some(day), _) => (*day).to_string(),
            _ => String::new(),
        };
        let total = |of: fn(&ModelUse) -> Option<u64>| {
            self.uses.iter().map(of).sum::<Option<u64>>().map(count).unwrap_or_default()
        };
        let points = self.uses.iter().filter_map(|one| one.points).max();
        let facts = [
            ("Models", shortened(&models)),
            ("Prompts", shortened(&treatments(surveyed))),
            ("Data points asked about", points.map(count).unwrap_or_default()),
            ("Answers", total(|one| one.answers)),
            ("Answered", days),
            ("Cost of the answers", self.cost().map(dollars).unwrap_or_default()),
        ];
        let facts = facts.into_iter().filter(|(_, value)| !value.is_empty());
        facts.map(|(name, value)| Labelled { name: name.to_string(), value }).collect()
    }

    /// The cost of all answers, if it is known of each model.
    fn cost(&self) -> Option<f64> {
        self.uses.iter().map(|one| one.cost).sum()
    }

    /// The table of models, and the guidelines.
    pub(super) async fn sections(&self, surveyed: &Surveyed) -> Result<Vec<Section>, RunError> {
        let markdown = guidelines(self, surveyed).await?;
        let title = "Reporting guidelines for studies with language models".to_string();
        Ok(vec![Section::Table(self.table()), Section::Text(TextBlock { title, markdown })])
    }

    fn table(&self) -> TableBlock {
        let column = |(name, about): (&str, &str)| TableColumn {
            name: name.to_string(),
            description: about.to_string(),
            ..TableColumn::default()
        };
        let columns = [
            ("step", "the step in which it answers"),
            ("model", "the name that it was asked for by"),
            ("version", "the name that the server answers with"),
            ("server", "the address"),
            ("settings", "the configuration; what is not named is left to the server"),
            ("answers", "answers, each turn and each only once"),
            ("tokens", "tokens read and written"),
            ("cost_usd", "the cost at the workflow's price"),
            ("answered", "the day of the last answers"),
        ];
        let row = |one: &ModelUse| {
            vec![
                json!(one.step),
                json!(one.model),
                json!(one.version),
                json!(one.server),
                json!(one.settings),
                json!(one.answers),
                json!(one.tokens),
                json!(one.cost),
                json!(one.day),
            ]
        };
        TableBlock {
            title: "Models".to_string(),
            columns: columns.map(column).to_vec(),
            rows: self.uses.iter().map(row).collect(),
            file_name: "models".to_string(),
            ..TableBlock::default()
        }
    }
}

/// A row for each version in the summary of a step; one without counts if it is not computed.
async fn model_uses(
    surveyed: &Surveyed,
    at: usize,
    step: &PlannedStep,
    args: &Value,
) -> Result<Vec<ModelUse>, RunError> {
    let is_set = |value: &Value| match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    };
    let settings = SETTINGS.iter().filter_map(|name| {
        let value = args.get(*name).filter(|value| is_set(value))?;
        Some(format!("{name} {}", value_text(value)))
    });
    let settings = settings.collect::<Vec<_>>().join(", ");
    let one = |model: String, version: String| ModelUse {
        step: step.name.clone(),
        model,
        version,
        server: text_of(args, "base_url"),
        settings: settings.clone(),
        is_pinned: args.get("version").is_some_and(Value::is_string),
        is_replayed: text_of(args, "provider") == "replay",
        has_temperature: args.get("temperature").is_some_and(Value::is_number),
        samples: args.get("samples").and_then(Value::as_u64).unwrap_or(1),
        answers: None,
        tokens: None,
        cost: None,
        day: String::new(),
        points: None,
    };
    let Some(manifest) = &surveyed.states[at].manifest else {
        return Ok(vec![one(text_of(args, "model"), String::new())]);
    };
    let session = session(1);
    let day: String = manifest.created.chars().take(10).collect();
    let answered = step.port(MAIN).is_some_and(|port| port.table.field("snippet_id").is_some());
    let points = if answered {
        let df = surveyed.open_port(&session, at, MAIN)?;
        session.register_table("answers", df.into_view())?;
        let query = "SELECT count(DISTINCT snippet_id) AS points FROM answers";
        rows(session.sql(query).await?).await?.first().and_then(|row| whole(row, "points"))
    } else {
        None
    };
    let summary = rows(surveyed.open_port(&session, at, SUMMARY)?).await?;
    let uses = summary.iter().map(|row| {
        let (model, version) = (text(row, "model"), text(row, "reported_model"));
        // Without an answer of the server, the summary repeats the model.
        let version = if text_of(args, "provider") == "replay" && version == model {
            String::new()
        } else {
            version
        };
        let tokens = whole(row, "prompt_tokens").zip(whole(row, "completion_tokens"));
        ModelUse {
            answers: whole(row, "answers"),
            // Answers that were given without their tokens count none.
            tokens: tokens.map(|(read, written)| read + written).filter(|tokens| *tokens > 0),
            cost: number(row, "cost_usd"),
            day: day.clone(),
            points,
            ..one(model, version)
        }
    });
    Ok(uses.collect())
}

/// The facts of a study about a guideline, and the gaps, some of which only its authors can fill.
#[derive(Default)]
struct Guideline {
    has: Vec<String>,
    lacks: Vec<String>,
}

impl Guideline {
    fn has(&mut self, sentence: String) {
        self.has.push(sentence);
    }

    fn lacks(&mut self, sentence: impl Into<String>) {
        self.lacks.push(sentence.into());
    }

    /// Markdown: the name as a heading, the facts, and the gaps as a list.
    fn write(self, out: &mut String, name: &str) {
        let _ = writeln!(out, "# {name}\n");
        if !self.has.is_empty() {
            let _ = writeln!(out, "{}\n", self.has.join(" "));
        }
        for gap in self.lacks {
            let _ = writeln!(out, "- **Missing:** {gap}");
        }
        out.push('\n');
    }
}

async fn guidelines(models: &ModelFacts, surveyed: &Surveyed) -> Result<String, RunError> {
    let mut out = String::from(
        "The eight guidelines of [llm-guidelines.org](https://llm-guidelines.org), with the answers that \
         the workflow and its results contain. Gaps are for the authors.\n\n",
    );
    usage(models, surveyed).write(&mut out, "1. Usage and role");
    versions(models).write(&mut out, "2. Model version, configuration and customisation");
    prompts(surveyed).write(&mut out, "3. System and prompt design");
    traces(surveyed).write(&mut out, "4. Session traces");
    people(surveyed).await?.write(&mut out, "5. Human validation");
    open_models(models).write(&mut out, "6. An open model as a baseline");
    baselines(models, surveyed).write(&mut out, "7. Baselines, benchmarks and metrics");
    limitations(surveyed).write(&mut out, "8. Limitations and mitigations");
    Ok(out)
}

fn usage(models: &ModelFacts, surveyed: &Surveyed) -> Guideline {
    let mut found = Guideline::default();
    let answering: Vec<String> = models.uses.iter().map(|one| one.step.clone()).collect();
    found.has(format!("Models answer in the steps {}.", codes(&distinct(answering))));
    let judges = families(surveyed, "judge");
    if !judges.is_empty() {
        found.has(format!("Their answers are verdicts in {}: models as judges.", codes(&judges)));
    }
    if surveyed.plan.description().unwrap_or_default().trim().is_empty() {
        found.lacks("the purpose of the models; `description:` of the workflow begins this page.");
    }
    found
}

fn versions(models: &ModelFacts) -> Guideline {
    let mut found = Guideline::default();
    found.has("The table above has models, versions, settings and days.".to_string());
    let of = |keep: fn(&ModelUse) -> bool| {
        let chosen = models.uses.iter().filter(|one| keep(one));
        distinct(chosen.map(|one| one.model.clone()).collect())
    };
    let unknown = of(|one| one.is_replayed && one.version.is_empty());
    if !unknown.is_empty() {
        found.lacks(format!(
            "the version of {}, whose answers are replayed from a table.",
            codes(&unknown)
        ));
    }
    let unpinned = of(|one| !one.is_replayed && !one.is_pinned);
    if !unpinned.is_empty() {
        found.lacks(format!("a pinned version of {}: `galeras lock` pins it.", codes(&unpinned)));
    }
    let free = of(|one| !one.is_replayed && !one.has_temperature);
    if !free.is_empty() {
        found.lacks(format!("the temperature of {}, which is left to the server.", codes(&free)));
    }
    found.lacks("whether a model is quantised or fine-tuned, and how.");
    found
}

fn prompts(surveyed: &Surveyed) -> Guideline {
    let mut found = Guideline::default();
    let names = treatments(surveyed);
    if names.is_empty() {
        found.lacks("the prompts: no step `prompt` has their templates.");
    } else {
        found.has(format!(
            "Prompts are templates over the columns of a data point, one for each of {}; the panels \
             of {} have them. All models of a step get the same.",
            codes(&names),
            codes(&families(surveyed, "prompt"))
        ));
    }
    match families(surveyed, "few_shot").as_slice() {
        [] => found.has("No step adds examples (`few_shot`).".to_string()),
        shots => found.has(format!("Examples are chosen in {}.", codes(shots))),
    }
    let commands = [families(surveyed, "execute"), families(surveyed, "exec")].concat();
    if !commands.is_empty() {
        found.has(format!("Programs run in {}.", codes(&commands)));
    }
    found.lacks("how the prompts were developed.");
    found
}

fn traces(surveyed: &Surveyed) -> Guideline {
    let mut found = Guideline::default();
    found.has(
        "Every conversation is a row with its `messages`, `raw_response`, `reasoning` and \
         `finish_reason`; `galeras bundle` shares them with the workflow."
            .to_string(),
    );
    let has_answers = |output: &&galeras_engine::plan::PlannedOutput| {
        output.input.schema.field("raw_response").is_some()
    };
    match surveyed.plan.outputs.iter().find(has_answers) {
        Some(output) => found.has(format!("The output {} has them.", code(&output.name))),
        None => found.lacks("an output with `raw_response`, for readers without the bundle."),
    }
    found
}

async fn people(surveyed: &Surveyed) -> Result<Guideline, RunError> {
    let mut found = Guideline::default();
    let mut rated = 0;
    for (at, step) in surveyed.plan.steps.iter().enumerate() {
        let operator = step.operator.descriptor().name;
        if surveyed.stored(at, "agreement").is_none() || !["review", "judge"].contains(&operator) {
            continue;
        }
        let name = code(&table_name(&step.name, "agreement"));
        for row in rows(surveyed.open_port(&session(1), at, "agreement")?).await? {
            let statistic = |name: &str, word: &str| {
                number(&row, name).map(|value| format!(", {word} {value:.2}")).unwrap_or_default()
            };
            let of = |name: &str| whole(&row, name).unwrap_or(0);
            if operator == "judge" {
                if of("labelled") > 0 {
                    found.has(format!(
                        "{name}: {} as a judge agrees with people on {:.0} % of {} data points{}.",
                        code(&text(&row, "model")),
                        number(&row, "agreement").unwrap_or(0.0) * 100.0,
                        count(of("labelled")),
                        statistic("kappa", "Cohen's kappa")
                    ));
                }
                continue;
            }
            rated += of("rated");
            if of("rated") > 0 {
                let agreement = match number(&row, "kappa") {
                    Some(_) => statistic("kappa", "Cohen's kappa"),
                    None => statistic("alpha", "Krippendorff's alpha"),
                };
                found.has(format!(
                    "{name}: {} of {} data points were rated for {} by {} people{agreement}.",
                    count(of("rated")),
                    count(of("points")),
                    code(&text(&row, "question")),
                    count(of("raters"))
                ));
            }
        }
    }
    if rated == 0 {
        found.lacks(
            "ratings by people: `review` has the questions, `galeras view` the pages for them, and \
             `judge` compares a model with them.",
        );
    }
    Ok(found)
}

fn open_models(models: &ModelFacts) -> Guideline {
    let mut found = Guideline::default();
    let is_elsewhere = |one: &&ModelUse| {
        !one.server.is_empty() && !MAKERS.iter().any(|maker| one.server.contains(*maker))
    };
    let elsewhere: Vec<&ModelUse> = models.uses.iter().filter(is_elsewhere).collect();
    if elsewhere.is_empty() {
        found.lacks("a model with open weights, at a server of your own or of its host.");
        return found;
    }
    let servers = distinct(elsewhere.iter().map(|one| one.server.clone()).collect());
    let names = distinct(elsewhere.iter().map(|one| one.model.clone()).collect());
    found.has(format!("{} answered at {}.", codes(&names), codes(&servers)));
    found.lacks("whether their weights are open, and the revision of the weights.");
    found
}

fn baselines(models: &ModelFacts, surveyed: &Surveyed) -> Guideline {
    let mut found = Guideline::default();
    let known: Vec<String> = steps(surveyed, "generate")
        .map(|step| text_of(&step.step.args(), "provider"))
        .filter(|provider| BASELINES.contains(&provider.as_str()))
        .collect();
    match distinct(known).as_slice() {
        [] => found.lacks(
            "a baseline that is not a language model: `provider: echo`, `reference` or `ngram`.",
        ),
        known => found.has(format!("Baselines without a language model: {}.", codes(known))),
    }
    let metrics = steps(surveyed, "score").flat_map(|step| {
        let metrics = step.step.args().pointer("/spec/metrics").and_then(Value::as_array).cloned();
        metrics.unwrap_or_default().iter().map(value_text).collect::<Vec<_>>()
    });
    let metrics = distinct(metrics.collect());
    if !metrics.is_empty() {
        found.has(format!("Metrics: {}.", codes(&metrics)));
    }
    let tested = families(surveyed, "execute");
    if !tested.is_empty() {
        found.has(format!("Answers are run in {}.", codes(&tested)));
    }
    let samples = models.uses.iter().map(|one| one.samples);
    match samples.max().unwrap_or(1) {
        0 | 1 => found.lacks("repeats: every prompt has one answer (`samples`)."),
        most => found.has(format!("A prompt has up to {most} answers.")),
    }
    let effects = [families(surveyed, "regress"), families(surveyed, "mixed")].concat();
    match effects.as_slice() {
        [] => found.lacks("a test of differences between models or prompts (`regress`, `mixed`)."),
        effects => found.has(format!("Differences are estimated in {}.", codes(effects))),
    }
    if families(surveyed, "power").is_empty() {
        found.lacks("a reason for the number of data points and answers (`power`).");
    }
    found.lacks("why the benchmark and the metrics suit the question.");
    found
}

fn limitations(surveyed: &Surveyed) -> Guideline {
    let mut found = Guideline::default();
    found.has(
        "The page has the rows that were lost and why, and refused or doubtful estimates."
            .to_string(),
    );
    let deduplicated = families(surveyed, "dedup");
    if !deduplicated.is_empty() {
        found.has(format!("Near-duplicates are removed in {}.", codes(&deduplicated)));
    }
    found
        .lacks("whether the models have seen the data in training, and other threats to validity.");
    found
}

/// The names of the treatments of all prompts.
fn treatments(surveyed: &Surveyed) -> Vec<String> {
    let named = steps(surveyed, "prompt").flat_map(|step| {
        let all = step.step.args().get("treatments").and_then(Value::as_array).cloned();
        let all = all.unwrap_or_default();
        all.iter().map(|treatment| text_of(treatment, "name")).collect::<Vec<_>>()
    });
    distinct(named.collect())
}

fn text_of(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_string()
}

/// The names in their order, each once.
fn distinct(mut names: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// A name as code in Markdown.
fn code(name: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().collect();
    format!("`{}`", words.join(" ").replace('`', "'"))
}

/// Names as code, a part of many.
fn codes(names: &[String]) -> String {
    let coded: Vec<String> = names.iter().map(|name| code(name)).collect();
    shortened(&coded)
}

fn shortened(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// A count in a row.
fn whole(row: &JsonRow, name: &str) -> Option<u64> {
    value(row, name).as_u64()
}

/// A count with commas.
fn count(n: u64) -> String {
    galeras_base::prose::thousands(n as usize)
}

fn dollars(cost: f64) -> String {
    match cost {
        cost if cost > 0.0 && cost < 0.01 => "less than $0.01".to_string(),
        cost => format!("${cost:.2}"),
    }
}
