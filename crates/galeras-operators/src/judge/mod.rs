//! `judge`: verdicts in the answers of a model, and their agreement with people.

mod tables;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array, AsArray, StringArray};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::JoinType;
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{cast, lit};
use futures::StreamExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::tables::{AgreementRow, AllVerdicts, Judge, PointRow};
use self::verdict::{NoVerdict, Verdicts, exchanged, verdict};
use super::typed_rows;
use galeras_base::id::ID;
use galeras_base::prose::{name_list, thousands};
use galeras_operator::columns::{is_text, require_column};
use galeras_operator::rejects::{reject_table, reject_values};
use galeras_operator::small_table::{record_batch, table_schema};
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, INPUT, InputPorts, Inputs,
    LowerContext, Lowering, MAIN, Operator, Port, Ports, REJECTS, StepError, TableStep, Tell,
    TypedOperator, args_schema, describe, take_input,
};
use galeras_ratings::RatingAnswer;
use galeras_sql::projection::project;
use galeras_sql::session::column;
use galeras_workflow::code::Code;
use galeras_workflow::{did_you_mean, quote};

/// The optional input with the answers of people: the port `answers` of `review`.
const LABELS: &str = "labels";
const POINTS: &str = "points";
const AGREEMENT: &str = "agreement";
/// Columns of `generate` and `prompt`.
const TREATMENT: &str = "treatment";
const MODEL: &str = "model";
const FINISH_REASON: &str = "finish_reason";
/// The columns that are read of `labels`.
const LABEL_COLUMNS: [&str; 4] = ["id", "question", "decision", "answer"];
/// The most numbers of a scale.
const MAX_SCALE: i64 = 1_000_000;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The verdicts that the prompt allows. The case of letters does not matter.
    #[serde(default)]
    choices: Vec<String>,
    /// Instead of `choices`: the smallest and the largest whole number that the prompt allows.
    #[serde(default)]
    scale: Option<[i64; 2]>,
    /// The choices that count as yes. If absent, the first.
    #[serde(default)]
    positive: Vec<String>,
    /// The smallest number of the scale that counts as yes. If absent, the first above its middle.
    #[serde(default)]
    at_least: Option<i64>,
    /// The word before the verdict, or the field with it in an answer that is JSON. With an empty one
    /// the last line is the verdict alone.
    #[serde(default = "marker")]
    marker: String,
    /// The treatments that show two candidates in the other order -> the treatment with the same
    /// question. Their first two choices are exchanged.
    #[serde(default)]
    swapped: BTreeMap<String, String>,
    /// The question of `review` that the people in `labels` have answered.
    #[serde(default)]
    question: Option<String>,
    /// The column with the whole answer.
    #[serde(default = "raw_response")]
    column: String,
    /// The column with the `id` of the judged data point.
    #[serde(default = "snippet_id")]
    point: String,
}

fn marker() -> String {
    "VERDICT".into()
}

fn raw_response() -> String {
    "raw_response".into()
}

fn snippet_id() -> String {
    "snippet_id".into()
}

struct JudgeOperator;

/// The operator.
pub const JUDGE: &dyn Operator = &JudgeOperator;

impl TypedOperator for JudgeOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "judge",
        version: 1,
        grain: Grain::of::<BoundJudge, _>(),
        effect: Effect::Pure,
        inputs: InputPorts::OneAnd(&[LABELS]),
        doc: include_str!("doc.md"),
        args_schema: args_schema::<Args>,
    };

    fn bind(mut args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let mut errors = Vec::new();
        let input = cx.input();
        args.marker = args.marker.trim().trim_end_matches(':').trim_end().to_string();
        let verdicts = verdicts(&args, &mut errors);
        check_swapped(&args, &mut errors);
        check_labels(&args, cx, &mut errors);
        require_column(cx, "", ID, "a plain value", |kind| !kind.is_nested(), &mut errors);
        require_column(cx, "column", &args.column, "text", is_text, &mut errors);
        require_column(cx, "point", &args.point, "text", is_text, &mut errors);
        for name in [MODEL, TREATMENT] {
            require_column(cx, "", name, "text", is_text, &mut errors);
        }
        let (kind, about) = match args.scale {
            Some(_) => (DataType::Int64, "the verdict, a number of the scale"),
            None => (DataType::Utf8, "the verdict, with two candidates in the order of `swapped`"),
        };
        let added = [
            describe(VERDICT, kind, false, about, None),
            describe(YES, DataType::Boolean, false, "whether the verdict counts as yes", None),
        ];
        let table = input.extended(&added, &[], None).map_err(|error| errors.extend(error));
        ArgError::none(errors)?;
        let (Ok(table), Some(verdicts)) = (table, verdicts) else {
            return Err(Vec::new());
        };
        let has_reason = input.field(FINISH_REASON).is_some_and(|f| is_text(f.data_type()));
        let judged = ["id", MODEL, TREATMENT];
        let ports = vec![
            Port::new(MAIN, table),
            Port::new(REJECTS, reject_table(&input)),
            Port::new(POINTS, table_schema::<PointRow>().keyed(&judged)),
            Port::new(AGREEMENT, table_schema::<AgreementRow>().keyed(&judged[1..])),
        ];
        Ok(Box::new(BoundJudge { args, verdicts, has_reason, added, ports }))
    }
}

/// The position of a choice.
fn place(word: &str, words: &[String]) -> Option<usize> {
    words.iter().position(|other| other.to_lowercase() == word.to_lowercase())
}

/// The verdicts of the arguments; `None` if there is a mistake.
fn verdicts(args: &Args, errors: &mut Vec<ArgError>) -> Option<Verdicts> {
    let before = errors.len();
    let mut refuse = |path: &str, code: Code, message: String| {
        errors.push(ArgError::new(path, code, message));
    };
    let found = match (args.choices.as_slice(), args.scale) {
        ([], Some([low, high])) => {
            let middle = low.saturating_add(high.saturating_sub(low) / 2);
            let at_least = args.at_least.unwrap_or(middle.saturating_add(1));
            if !(1..=MAX_SCALE).contains(&high.saturating_sub(low)) {
                let message =
                    "a scale goes from a smaller to a larger number, a million apart at most";
                refuse("scale", Code::OutOfRange, message.into());
            } else if !(low..=high).contains(&at_least) {
                let message = format!("`at_least` must be on the scale, from {low} to {high}");
                refuse("at_least", Code::OutOfRange, message);
            }
            if !args.positive.is_empty() {
                let message = "`positive` goes with `choices`; for a scale it is `at_least`";
                refuse("positive", Code::ConflictingArguments, message.into());
            }
            Verdicts::Scale { low, high, at_least }
        }
        ([], None) => {
            let message = "the verdicts are missing: `choices`, or a `scale`".to_string();
            let error = ArgError::new("", Code::MissingArgument, message);
            errors.push(error.help("choices: [yes, no]"));
            return None;
        }
        (_, Some(_)) => {
            let message = "the verdicts are either `choices` or on a `scale`";
            refuse("scale", Code::ConflictingArguments, message.into());
            return None;
        }
        (words, None) => {
            if args.at_least.is_some() {
                let message = "`at_least` goes with `scale`; for `choices` it is `positive`";
                refuse("at_least", Code::ConflictingArguments, message.into());
            }
            if words.len() < 2 {
                refuse("choices", Code::OutOfRange, "a verdict needs two choices or more".into());
            }
            for (at, word) in words.iter().enumerate() {
                let path = format!("choices[{at}]");
                if word.trim() != word || word.is_empty() {
                    let message = format!("{} cannot be a choice", quote(word));
                    refuse(&path, Code::WrongArgument, message);
                } else if place(word, &words[..at]).is_some() {
                    let message = format!("the choice {} is there twice", quote(word));
                    refuse(&path, Code::WrongArgument, message);
                }
            }
            let mut positive = Vec::new();
            for (at, word) in args.positive.iter().enumerate() {
                match place(word, words) {
                    Some(place) => positive.push(place),
                    None => {
                        let message = format!("{} is not one of {}", quote(word), name_list(words));
                        refuse(&format!("positive[{at}]"), Code::WrongArgument, message);
                    }
                }
            }
            if args.positive.is_empty() {
                positive.push(0);
            }
            Verdicts::Choices { words: words.to_vec(), positive }
        }
    };
    (errors.len() == before).then_some(found)
}

fn check_swapped(args: &Args, errors: &mut Vec<ArgError>) {
    if !args.swapped.is_empty() && args.scale.is_some() {
        let message = "`swapped` exchanges two choices, and a scale has none";
        errors.push(ArgError::new("swapped", Code::ConflictingArguments, message));
    }
    for (name, of) in &args.swapped {
        if args.swapped.contains_key(of) {
            let message = format!("{} is itself in the other order", quote(of));
            let error = ArgError::new(format!("swapped.{name}"), Code::WrongArgument, message);
            errors.push(error.help("name the treatment that shows A first: swapped: { ba: ab }"));
        }
    }
}

fn check_labels(args: &Args, cx: &BindContext, errors: &mut Vec<ArgError>) {
    let help = "from: { input: answers, labels: people.answers }";
    let Some(labels) = cx.inputs.get(LABELS) else {
        if args.question.is_some() {
            let message = "`question` is about the input `labels`, which is missing";
            let error = ArgError::new("question", Code::ConflictingArguments, message);
            errors.push(error.help(help));
        }
        return;
    };
    if args.question.is_none() {
        let message = "the input `labels` needs a `question`, the one that people have answered";
        errors.push(ArgError::new("", Code::MissingArgument, message).help("question: right"));
    }
    let missing = LABEL_COLUMNS.iter().find(|name| labels.field(name).is_none());
    if let Some(name) = missing.filter(|_| !labels.open) {
        let message = format!(
            "the input `labels` has no column `{name}`: it is the port `answers` of a step `review`"
        );
        errors.push(ArgError::at_port(LABELS, Code::UnknownColumn, message).help(help));
    }
}

#[derive(Debug)]
struct BoundJudge {
    args: Args,
    verdicts: Verdicts,
    /// The input has the reason for the end of an answer.
    has_reason: bool,
    added: [FieldRef; 2],
    ports: Vec<Port>,
}

impl BoundStep for BoundJudge {
    fn args(&self) -> Value {
        json!(self.args)
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

/// The columns that answers get.
const VERDICT: &str = "verdict";
const YES: &str = "yes";
/// Hidden columns: the id of an answer in the input and in a small table; a rule and a reason.
const KEY: &str = "__id";
const ANSWER: &str = "__answer";
const RULE: &str = "__rule";
const REASON: &str = "__reason";

#[derive(Serialize)]
struct VerdictRow {
    #[serde(rename = "__answer")]
    id: String,
    verdict: Value,
    yes: bool,
}

#[derive(Serialize)]
struct RejectedRow {
    #[serde(rename = "__answer")]
    id: String,
    #[serde(rename = "__rule")]
    rule: &'static str,
    #[serde(rename = "__reason")]
    reason: String,
}

/// The answers of the input.
#[derive(Default)]
struct JudgedAnswers {
    verdicts: Vec<VerdictRow>,
    rejected: Vec<RejectedRow>,
    by_judge: AllVerdicts,
    points: BTreeSet<String>,
    treatments: BTreeSet<String>,
}

impl BoundJudge {
    async fn answers(&self, input: DataFrame) -> Result<JudgedAnswers, StepError> {
        let text = |name: &str| cast(column(name), DataType::Utf8);
        let reason = if self.has_reason { text(FINISH_REASON) } else { lit("") };
        let columns = vec![
            text(ID).alias("c0"),
            text(&self.args.point).alias("c1"),
            text(MODEL).alias("c2"),
            text(TREATMENT).alias("c3"),
            text(&self.args.column).alias("c4"),
            reason.alias("c5"),
        ];
        let mut found = JudgedAnswers::default();
        let mut stream = input.select(columns)?.execute_stream().await?;
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            let [ids, points, models, treatments, texts, reasons] =
                [0, 1, 2, 3, 4, 5].map(|at| batch.column(at).as_string::<i32>());
            if ids.null_count() + points.null_count() > 0 {
                let point = &self.args.point;
                return Err(StepError::new(format!("`id` or `{point}` is null in some rows")));
            }
            for row in 0..batch.num_rows() {
                let text = texts.is_valid(row).then(|| texts.value(row));
                let value = |array: &StringArray| {
                    if array.is_valid(row) { array.value(row).to_string() } else { String::new() }
                };
                let (id, point) = (value(ids), value(points));
                let (model, shown) = (value(models), value(treatments));
                found.points.insert(point.clone());
                found.treatments.insert(shown.clone());
                match verdict(text, &value(reasons), &self.args.marker, &self.verdicts) {
                    Ok(given) => {
                        let other_order = self.args.swapped.get(&shown);
                        let given = if other_order.is_some() { exchanged(given) } else { given };
                        let yes = self.verdicts.is_positive(given);
                        found.verdicts.push(VerdictRow {
                            id,
                            verdict: self.verdicts.value(given),
                            yes,
                        });
                        let treatment = other_order.unwrap_or(&shown).clone();
                        let by_point =
                            found.by_judge.entry(Judge { model, treatment }).or_default();
                        by_point.entry(point).or_default().entry(shown).or_default().push(given);
                    }
                    Err(NoVerdict { rule, reason }) => {
                        found.rejected.push(RejectedRow { id, rule, reason });
                    }
                }
            }
        }
        Ok(found)
    }

    /// Fails if `swapped` names a treatment that is not there: a misspelt one would not be exchanged.
    fn check_treatments(&self, found: &BTreeSet<String>) -> Result<(), StepError> {
        let mut named = self.args.swapped.iter().flat_map(|(name, of)| [name, of]);
        let Some(missing) = named.find(|name| !found.contains(*name)) else { return Ok(()) };
        if found.is_empty() {
            return Ok(());
        }
        let listed: Vec<&String> = found.iter().collect();
        let message = format!("`swapped` names the treatment {}, which is missing", quote(missing));
        let help = format!("the treatments of the answers are {}", name_list(&listed));
        Err(StepError::new(message).help(help))
    }

    /// Yes or no of people, by data point: the decision, or else most answers. Points without a
    /// majority have no label.
    async fn labels(&self, labels: DataFrame) -> Result<BTreeMap<String, bool>, StepError> {
        let wanted = self.args.question.as_deref().unwrap_or_default();
        let [id, question, decision, answer] = LABEL_COLUMNS;
        let text = |name: &str| cast(column(name), DataType::Utf8).alias(name);
        let decision = cast(column(decision), DataType::Boolean).alias(decision);
        let columns = vec![text(id), text(question), decision, text(answer)];
        let mut questions: BTreeSet<String> = BTreeSet::new();
        let mut decided: BTreeMap<String, Option<bool>> = BTreeMap::new();
        let mut balance: BTreeMap<String, i64> = BTreeMap::new();
        for batch in labels.select(columns)?.collect().await? {
            let [ids, names, answers] = [0, 1, 3].map(|at| batch.column(at).as_string::<i32>());
            let decisions = batch.column(2).as_boolean();
            let all_valid = |row: &usize| ids.is_valid(*row) && answers.is_valid(*row);
            for row in (0..batch.num_rows()).filter(all_valid) {
                questions.insert(names.value(row).to_string());
                if names.value(row) != wanted {
                    continue;
                }
                let label = match answers.value(row) {
                    answer if answer == RatingAnswer::Yes.word() => Some(true),
                    answer if answer == RatingAnswer::No.word() => Some(false),
                    _ => None,
                };
                let id = ids.value(row).to_string();
                if decisions.is_valid(row) && decisions.value(row) {
                    decided.insert(id, label);
                } else {
                    *balance.entry(id).or_default() +=
                        label.map_or(0, |yes| if yes { 1 } else { -1 });
                }
            }
        }
        if !questions.is_empty() && !questions.contains(wanted) {
            let message = format!("`labels` has no answer to the question {}", quote(wanted));
            let names = questions.iter().map(String::as_str);
            let listed: Vec<&str> = names.clone().collect();
            return Err(StepError::new(message).help(match did_you_mean(wanted, names) {
                Some(near) => format!("did you mean `question: {near}`?"),
                None => format!("the questions are {}", name_list(&listed)),
            }));
        }
        let majority =
            balance.into_iter().filter(|(_, sum)| *sum != 0).map(|(id, sum)| (id, sum > 0));
        let mut found: BTreeMap<String, bool> = majority.collect();
        for (id, label) in decided {
            match label {
                Some(label) => found.insert(id, label),
                None => found.remove(&id),
            };
        }
        Ok(found)
    }

    /// Warns of answers without a verdict. If none has one, it is an error: the marker is wrong, or
    /// the prompt does not ask for it.
    fn report(&self, cx: &LowerContext, found: &JudgedAnswers) -> Result<(), StepError> {
        let Some(first) = found.rejected.first() else { return Ok(()) };
        let all = found.rejected.len() + found.verdicts.len();
        let (without, all) = (thousands(found.rejected.len()), thousands(all));
        if found.verdicts.is_empty() {
            let message = format!("none of {all} answers has a verdict: {}", first.reason);
            let help = match self.args.marker.as_str() {
                "" => "ask for a last line with the verdict alone".to_string(),
                word => {
                    format!("ask for a last line of `{word}:` and the verdict, or set `marker`")
                }
            };
            return Err(StepError::new(message).help(help));
        }
        (cx.tell)(Tell::Warning(format!(
            "no verdict in {without} of {all} answers: {}; the port `rejects` lists them",
            first.reason
        )));
        Ok(())
    }
}

impl TableStep for BoundJudge {
    fn bounded(&self) -> bool {
        true
    }

    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        mut inputs: Inputs,
    ) -> BoxFuture<'a, Result<Ports, StepError>> {
        Box::pin(async move {
            let input = take_input(&mut inputs, INPUT)?;
            let labels = match inputs.remove(LABELS) {
                Some(labels) => self.labels(labels).await?,
                None => BTreeMap::new(),
            };
            let mut found = self.answers(input.clone()).await?;
            // The first one is named in a message, which must not depend on the order of rows.
            found.rejected.sort_by(|a, b| a.id.cmp(&b.id));
            self.check_treatments(&found.treatments)?;
            self.report(cx, &found)?;
            if let Some(first) = labels.keys().next()
                && !labels.keys().any(|id| found.points.contains(id))
            {
                (cx.tell)(Tell::Warning(format!(
                    "none of the {} data points with a label was judged, {} among them: labels of \
                     other data?",
                    thousands(labels.len()),
                    quote(first)
                )));
            }
            let (points, agreements) = tables::rows(&found.by_judge, &self.verdicts, &labels);

            let session = &cx.session;
            let hidden = |name: &str| Arc::new(Field::new(name, DataType::Utf8, false));
            let [verdict, yes] = self.added.clone();
            let judged = Schema::new(vec![hidden(ANSWER), verdict, yes]);
            let judged = typed_rows::table(session, &Arc::new(judged), found.verdicts)?;
            let rejected = Schema::new([ANSWER, RULE, REASON].map(hidden).to_vec());
            let rejected = typed_rows::table(session, &Arc::new(rejected), found.rejected)?;
            let keyed = input.with_column(KEY, cast(column(ID), DataType::Utf8))?;
            let join = |small: DataFrame| -> Result<DataFrame, StepError> {
                Ok(small.join(keyed.clone(), JoinType::Inner, &[ANSWER], &[KEY], None)?)
            };
            let reasons = reject_values(column(RULE), column(REASON));
            Ok(vec![
                (MAIN, project(join(judged)?, &self.ports[0].table, Vec::new())?),
                (REJECTS, project(join(rejected)?, &self.ports[1].table, reasons)?),
                (POINTS, session.read_batch(record_batch(&points)?)?),
                (AGREEMENT, session.read_batch(record_batch(&agreements)?)?),
            ])
        })
    }
}
