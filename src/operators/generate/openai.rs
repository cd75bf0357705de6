//! Answers of an OpenAI-compatible server, each kept as soon as it is there.
//!
//! What a request says, which rows share an answer, conversations turn by turn, the versions of
//! models. `galeras_chat` sends the requests, the runner keeps the answers.

use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datafusion::dataframe::DataFrame;
use futures::StreamExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::{OnceCell, Semaphore};
use tokio_util::sync::CancellationToken;

use super::args::GenerateArgs;
use super::conversation::Chat;
use super::rows::{
    AnswerForm, ModelAnswer, ModelTurn, NoAnswer, PromptRows, REFUSAL, SampleOutcome, tables,
};
use crate::code::Code;
use crate::digest::Digest;
use crate::functions::Message;
use crate::operator::{
    Access, Answers, ArgError, BoundStep, Demand, Fact, INPUT, LowerContext, Lowering, PaidResult,
    PaidStep, Port, ServerAddress, StepError, Tell, Versioned,
};
use galeras_chat::{
    Ask, Budget, ChatClient, ChatError, ChatNotice, ChatSettings, Endpoint, Price, Usd,
};
use galeras_net::Secret;

/// The version of what questions are made of.
const QUESTION: u32 = 1;

/// A step that asks a server.
#[derive(Debug)]
pub(super) struct OpenAi {
    pub(super) args: GenerateArgs,
    pub(super) model: String,
    pub(super) key: Vec<String>,
    /// The version that the lock file pins.
    pub(super) pinned: Option<String>,
    pub(super) ports: Vec<Port>,
}

impl OpenAi {
    /// What names the model.
    pub(super) fn of(base_url: &str, model: &str) -> Value {
        json!({"base_url": base_url, "model": model})
    }

    fn named(&self) -> Value {
        Self::of(self.args.base_url(), &self.model)
    }

    fn price(&self) -> Option<Price> {
        self.args.price.as_ref().and_then(|price| price.per_million().ok())
    }

    /// The key that the environment holds. Its value stays in the `Secret`.
    fn secret(&self) -> Result<Option<Secret>, StepError> {
        let Some(name) = self.args.api_key_env() else { return Ok(None) };
        let value = std::env::var(name).unwrap_or_default();
        if value.trim().is_empty() {
            return Err(StepError::new(missing_key(name)));
        }
        Secret::new(name, &value).map(Some).map_err(|error| StepError::new(error.to_string()))
    }

    fn client(&self) -> Result<ChatClient, StepError> {
        let failed = |error: ChatError| StepError::new(error.to_string());
        let endpoint = Endpoint::new(self.args.base_url(), self.secret()?).map_err(failed)?;
        let budget = match (self.args.max_usd, self.price()) {
            (Some(limit), Some(price)) => {
                let limit = Usd::from_str(&limit.to_string()).map_err(StepError::new)?;
                Some(Arc::new(Budget::new(limit, price)))
            }
            _ => None,
        };
        let settings = ChatSettings {
            concurrency: self.args.concurrency(),
            requests_per_minute: self.args.requests_per_minute,
            tokens_per_minute: self.args.tokens_per_minute,
            timeout: Duration::from_secs_f64(self.args.timeout_seconds()),
            tries: self.args.tries(),
            budget,
            // Only waits are drawn from it: processes that were all refused should not come
            // back together.
            seed: u64::from(std::process::id()),
            ..ChatSettings::default()
        };
        ChatClient::new(endpoint, settings).map_err(failed)
    }

    /// The body of a request.
    fn body(&self, messages: &[Message], sample: u32) -> Map<String, Value> {
        let args = &self.args;
        let mut body = args.extra_body.clone();
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                body.insert(name.into(), value);
            }
        };
        set("model", Some(json!(self.model)));
        set("messages", Some(json!(messages)));
        set("temperature", args.temperature.map(|n| json!(n)));
        set("top_p", args.top_p.map(|n| json!(n)));
        set("max_tokens", args.max_tokens.map(|n| json!(n)));
        set("stop", (!args.stop.is_empty()).then(|| json!(args.stop)));
        // With one seed for all, a server that obeys it would give the same answer each time.
        set("seed", args.seed.map(|seed| json!(seed.wrapping_add(i64::from(sample)))));
        body
    }

    /// What is asked next, and the digest that the answer is kept under.
    fn question(&self, chat: &Chat) -> (Map<String, Value>, Digest) {
        let body = self.body(&chat.messages, chat.sample);
        let question = json!({"v": QUESTION, "body": body, "sample": chat.sample});
        (body, Digest::of_json(&question))
    }

    /// The first of the answers to a question that is of the pinned version, newest first.
    fn known(&self, answers: &dyn Answers, question: &Digest) -> Option<ModelTurn> {
        let all = answers.known(question);
        let turns =
            all.iter().rev().filter_map(|text| serde_json::from_str::<ModelTurn>(text).ok());
        let turn = turns.into_iter().find(|turn| self.has_pinned_version(turn));
        turn.map(|turn| ModelTurn { question: Some(*question), ..turn })
    }

    fn has_pinned_version(&self, turn: &ModelTurn) -> bool {
        self.pinned.as_ref().is_none_or(|pinned| turn.model.as_ref() == Some(pinned))
    }
}

fn missing_key(name: &str) -> String {
    format!("the environment variable {name} is not set; it must hold the server's API key")
}

impl BoundStep for OpenAi {
    fn args(&self) -> Value {
        let args = &self.args;
        json!({
            "provider": "openai",
            "base_url": args.base_url(),
            "model": self.model,
            "version": self.pinned,
            "messages": args.messages(),
            "temperature": args.temperature,
            "top_p": args.top_p,
            "max_tokens": args.max_tokens,
            "stop": args.stop,
            "seed": args.seed,
            "extra_body": args.extra_body,
            "samples": args.samples(),
            "extract": args.extract,
            "price": args.price,
        })
    }

    fn recipe_args(&self) -> Option<Value> {
        Some(self.named())
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn fact(&self) -> Option<Fact> {
        Some(Fact::Version { of: self.named() })
    }

    fn missing(&self) -> Vec<ArgError> {
        let Err(error) = self.secret() else { return Vec::new() };
        let path = if self.args.api_key_env.is_some() { "api_key_env" } else { "provider" };
        vec![ArgError::new(path, Code::MissingSecret, error.to_string())]
    }

    fn demands(&self) -> Vec<Demand> {
        let Some(to) = ServerAddress::of(self.args.base_url()) else { return Vec::new() };
        let access = match self.args.api_key_env() {
            Some(name) => Access::Variable { name: name.to_string(), to },
            None => Access::Host { to },
        };
        let at = if self.args.api_key_env.is_some() { "api_key_env" } else { "base_url" };
        vec![Demand::new(at, access)]
    }

    fn versioned(&self) -> Option<&dyn Versioned> {
        Some(self)
    }

    fn work_unit(&self) -> &'static str {
        "answers"
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Paid(self)
    }
}

impl Versioned for OpenAi {
    fn version<'a>(
        &'a self,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<String, StepError>> {
        Box::pin(async move {
            let hello = [Message { role: "user".into(), content: "Hi".into() }];
            let mut body = self.body(&hello, 0);
            // The shortest answer that a server gives; where it is limited under another name, it is
            // left at that.
            if !body.contains_key("max_completion_tokens") {
                body.insert("max_tokens".into(), json!(1));
            }
            let failed = |error: ChatError| StepError::new(error.to_string());
            let ask = Ask::new(body).map_err(failed)?;
            let answer = self.client()?.ask(&ask, &|_| {}, cancel).await.map_err(failed)?;
            answer.model.ok_or_else(|| StepError::new("the server does not say which model it is"))
        })
    }
}

impl PaidStep for OpenAi {
    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        answers: &'a dyn Answers,
        mut inputs: BTreeMap<String, DataFrame>,
    ) -> BoxFuture<'a, Result<PaidResult, StepError>> {
        Box::pin(async move {
            let input = inputs
                .remove(INPUT)
                .ok_or_else(|| StepError::new("`generate` needs an input table"))?;
            let rows = PromptRows::read(input, &self.key).await?;
            let work = Work::new(self, &rows, answers);
            let (outcomes, fresh) = (work.outcomes, work.fresh);
            let mut results = work.results;
            let waiting: Vec<bool> = results.iter().map(Option::is_none).collect();
            let computed = outcomes.iter().filter(|o| waiting[o.answer]).count() as u64;
            let reused = outcomes.len() as u64 - computed;
            (cx.tell)(Tell::Total { work: computed, reused });
            if !fresh.is_empty() {
                let mut rows_of = vec![0; results.len()];
                outcomes.iter().for_each(|outcome| rows_of[outcome.answer] += 1);
                let client = self.client()?;
                if client.endpoint().shows_key() {
                    let to = client.endpoint();
                    let text = format!("the API key is sent to {to} unencrypted; use https://");
                    (cx.tell)(Tell::Warning(text));
                }
                let places = Semaphore::new(self.args.concurrency());
                let (asked, stopped) = (Mutex::default(), AtomicBool::new(false));
                let asking = Asking { step: self, cx, answers, client, places, asked, stopped };
                asking.all(fresh, &rows_of, &mut results).await?;
            }
            let failed = |answer: &Resolution| matches!(answer, Some(Err(why)) if why.again);
            let retry = outcomes.iter().filter(|o| failed(&results[o.answer])).count();
            cx.retry.fetch_add(retry as u64, Ordering::Relaxed);
            let results: Option<Vec<_>> = results.into_iter().collect();
            let results =
                results.ok_or_else(|| StepError::new("a defect: a question was not asked"))?;
            let form = AnswerForm {
                model: &self.model,
                extract: self.args.extract.is_code(),
                price: self.price(),
                ports: &self.ports,
            };
            let ports = tables(cx, &form, &rows, &outcomes, &results)?;
            Ok(PaidResult { ports, computed, reused })
        })
    }
}

/// The answer to a conversation, or why there is none; nothing as long as it is asked.
type Resolution = Option<Result<ModelAnswer, NoAnswer>>;

/// What there is to ask.
struct Work {
    outcomes: Vec<SampleOutcome>,
    results: Vec<Resolution>,
    /// Conversations that want an answer, with their place among the results.
    fresh: Vec<(usize, Chat)>,
}

impl Work {
    /// Rows with equal conversations share their answers. What is known is taken from there.
    fn new(step: &OpenAi, rows: &PromptRows, answers: &dyn Answers) -> Self {
        let conversations = rows.conversations(step.args.messages());
        let samples = step.args.samples();
        let mut work = Self { outcomes: Vec::new(), results: Vec::new(), fresh: Vec::new() };
        let mut seen: HashMap<&[Message], usize> = HashMap::new();
        for (row, messages) in conversations.iter().enumerate() {
            let next = work.results.len();
            let first = match messages {
                Ok(messages) => *seen.entry(messages).or_insert(next),
                Err(_) => next,
            };
            for sample in 0..samples {
                let answer = first + sample as usize;
                if answer == work.results.len() {
                    let result = match messages {
                        Ok(messages) => work.look_up(step, Chat::new(messages, sample), answers),
                        Err(why) => Some(Err(why.clone())),
                    };
                    work.results.push(result);
                }
                work.outcomes.push(SampleOutcome { row, sample, answer });
            }
        }
        work
    }

    fn look_up(&mut self, step: &OpenAi, mut chat: Chat, answers: &dyn Answers) -> Resolution {
        while let Some(turn) = step.known(answers, &step.question(&chat).1) {
            if !chat.answered(turn) {
                return Some(Ok(chat.answer));
            }
        }
        self.fresh.push((self.results.len(), chat));
        None
    }
}

/// Requests that are under way.
struct Asking<'a> {
    step: &'a OpenAi,
    cx: &'a LowerContext,
    answers: &'a dyn Answers,
    client: ChatClient,
    /// As many requests go side by side. An answer that is being kept takes no place.
    places: Semaphore,
    /// What is being asked: conversations that begin the same share the beginning.
    asked: Mutex<HashMap<Digest, Arc<OnceCell<ModelTurn>>>>,
    /// Nothing more is sent; what is under way comes to its end, as it may have been paid.
    stopped: AtomicBool,
}

/// Why a conversation ended without an answer.
enum Ended {
    /// A request of it failed.
    Unanswered(NoAnswer),
    /// Others are asked in vain, too.
    All(StepError),
    /// It was not begun, or not gone on with, because of that.
    Skipped,
}

impl Asking<'_> {
    /// Asks until every conversation has its answer, or will not get one.
    async fn all(
        &self,
        fresh: Vec<(usize, Chat)>,
        rows_of: &[u64],
        results: &mut [Resolution],
    ) -> Result<(), StepError> {
        // The warnings of a server that is down would be as many as rows.
        let mut warned = false;
        let (mut done, mut kept) = (0, 0);
        let mut stop = None;
        let mut asked = futures::stream::iter(fresh)
            .map(|(place, chat)| async move { (place, self.one(chat).await) })
            .buffer_unordered(2 * self.step.args.concurrency());
        while let Some((place, result)) = asked.next().await {
            let result = match result {
                Ok(answer) => {
                    kept += rows_of[place];
                    Ok(answer)
                }
                Err(Ended::Unanswered(why)) => {
                    if !std::mem::replace(&mut warned, true) {
                        let text = format!("{} (the next run tries again)", why.reason);
                        (self.cx.tell)(Tell::Warning(text));
                    }
                    Err(why)
                }
                Err(ended) => {
                    self.stopped.store(true, Ordering::Relaxed);
                    if let (Ended::All(error), None) = (ended, &stop) {
                        stop = Some(error);
                    }
                    continue;
                }
            };
            results[place] = Some(result);
            done += rows_of[place];
            (self.cx.tell)(Tell::Progress(done));
        }
        drop(asked);
        match stop {
            None => Ok(()),
            Some(error) => Err(with_kept(error, kept)),
        }
    }

    /// Goes through the turns of a conversation.
    async fn one(&self, mut chat: Chat) -> Result<ModelAnswer, Ended> {
        loop {
            if self.stopped.load(Ordering::Relaxed) {
                return Err(Ended::Skipped);
            }
            let (body, question) = self.step.question(&chat);
            // A turn after a new answer may have been asked before, when that answer was the same.
            let turn = match self.step.known(self.answers, &question) {
                Some(turn) => turn,
                None => {
                    let cell = {
                        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
                        Arc::clone(asked.entry(question).or_default())
                    };
                    cell.get_or_try_init(|| self.ask(body, &question)).await?.clone()
                }
            };
            if !chat.answered(turn) {
                return Ok(chat.answer);
            }
        }
    }

    /// Asks, and keeps the answer.
    async fn ask(&self, body: Map<String, Value>, question: &Digest) -> Result<ModelTurn, Ended> {
        let all = |error: StepError| Ended::All(error);
        let ask = Ask::new(body).map_err(|error| all(StepError::new(error.to_string())))?;
        let notice = |notice: ChatNotice| match notice {
            ChatNotice::Waiting(text) => (self.cx.tell)(Tell::Waiting(text)),
        };
        // Nobody closes the semaphore.
        let place = self.places.acquire().await;
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Ended::Skipped);
        }
        let answer = self.client.ask(&ask, &notice, &self.cx.cancel).await;
        drop(place);
        let answer = match answer {
            Ok(answer) => answer,
            Err(ChatError::Failed { rule, reason, .. }) => {
                return Err(Ended::Unanswered(NoAnswer {
                    rule: rule.to_string(),
                    reason,
                    again: true,
                }));
            }
            Err(error @ ChatError::OverBudget { .. }) => {
                let error = StepError::new(error.to_string());
                return Err(all(error.help("raise `max_usd`, which counts what one run spends")));
            }
            Err(error) => {
                let error = StepError::new(error.to_string());
                let renamed = "limit answers by `max_completion_tokens`";
                return Err(all(match error.to_string().contains(renamed) {
                    true => error.help("extra_body: { max_completion_tokens: 500 }"),
                    false => error,
                }));
            }
        };
        let refused = answer.content.is_empty() && answer.refusal.is_some();
        let turn = ModelTurn {
            content: if refused { answer.refusal.unwrap_or_default() } else { answer.content },
            finish_reason: if refused { Some(REFUSAL.into()) } else { answer.finish_reason },
            model: answer.model,
            prompt_tokens: answer.prompt_tokens,
            completion_tokens: answer.completion_tokens,
            question: Some(*question),
        };
        let kept = serde_json::to_string(&turn).unwrap_or_default();
        self.answers.keep(question, &kept).await.map_err(all)?;
        if !self.step.has_pinned_version(&turn) {
            let now = match &turn.model {
                Some(now) => format!("reports `{now}`"),
                None => "no longer reports a version".to_string(),
            };
            let message = format!(
                "galeras.lock pins the model `{}` at `{}`, but the server {now}",
                self.step.model,
                self.step.pinned.as_deref().unwrap_or_default(),
            );
            let help =
                "pin the new version with `galeras lock`, or use a server that has the old one";
            return Err(all(StepError::new(message).help(help)));
        }
        Ok(turn)
    }
}

/// The error of a step that leaves the answers for so many rows.
fn with_kept(error: StepError, rows: u64) -> StepError {
    let kept = match rows {
        0 => return error,
        1 => "the answer for one row is kept".to_string(),
        n => format!("the answers for {n} rows are kept"),
    };
    let advice = error.advice().map(|advice| format!("{advice}; {kept}")).unwrap_or(kept);
    error.help(advice)
}
