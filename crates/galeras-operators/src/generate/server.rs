//! Answers of a model behind a server, each stored as soon as it arrives.
//!
//! This decides which rows share an answer, runs conversations turn by turn, and checks model
//! versions. `request` builds requests, `galeras_chat` sends them, the runner stores the answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::{OnceCell, Semaphore};
use tokio_util::sync::CancellationToken;

use super::args::GenerateArgs;
use super::conversation::{Chat, Inquiry, forecast, inquiries};
use super::provider::Provider;
use super::request;
use super::rows::{ModelAnswer, ModelTurn, NoAnswer, PromptRows, UnreadBody};
use super::tables::{AnswerColumns, AnswerForm, REFUSAL, SampleOutcome, tables};
use super::unanswered::Unanswered;
use galeras_base::digest::Digest;
use galeras_chat::{
    Answer, Ask, Budget, ChatClient, ChatError, ChatNotice, ChatSettings, Endpoint, Price,
};
use galeras_net::Secret;
use galeras_operator::columns::{is_text, require_column};
use galeras_operator::{
    Access, Answers, ArgError, BindContext, BoundStep, Demand, Fact, Inputs, KnownAnswers,
    LowerContext, Lowering, PaidResult, PaidStep, PaymentTerms, Port, RequestForecast,
    ServerAddress, StepError, Tell, Versioned,
};
use galeras_workflow::code::Code;

/// The version of the question's format.
const QUESTION: u32 = 1;
/// The version of kept answers. They were paid, so a new version of the operator uses them.
const KEPT: u32 = 1;

#[derive(Debug)]
pub(super) struct ServerStep {
    pub(super) args: GenerateArgs,
    pub(super) model: String,
    pub(super) key: Vec<String>,
    /// The version that the lock file pins.
    pub(super) pinned: Option<String>,
    pub(super) ports: Vec<Port>,
}

impl ServerStep {
    pub(super) fn check(args: &GenerateArgs, cx: &BindContext, errors: &mut Vec<ArgError>) {
        if args.is_completion() {
            require_column(cx, "prompt", args.prompt(), "utf8", is_text, errors);
            if let Some(suffix) = &args.suffix {
                require_column(cx, "suffix", suffix, "utf8", is_text, errors);
            }
        }
    }

    pub(super) fn of(args: &GenerateArgs, model: &str) -> Value {
        let mut of = json!({"base_url": args.base_url(), "model": model});
        // A server may support several protocols. OpenAI's two have no request in common.
        if args.provider != Provider::Openai {
            of["provider"] = json!(args.provider);
        }
        of
    }

    fn named(&self) -> Value {
        Self::of(&self.args, &self.model)
    }

    fn price(&self) -> Option<Price> {
        self.args.price.as_ref().and_then(|price| price.per_million().ok())
    }

    /// The key from the environment. Its value stays in the `Secret`.
    fn secret(&self) -> Result<Option<Secret>, StepError> {
        let Some(name) = self.args.api_key_env() else { return Ok(None) };
        let value = std::env::var(name).unwrap_or_default();
        if value.trim().is_empty() {
            let text = "is not set; it must hold the server's API key";
            return Err(StepError::new(format!("the environment variable {name} {text}")));
        }
        Secret::new(name, &value).map(Some).map_err(|error| StepError::new(error.to_string()))
    }

    fn client(&self, budget: Arc<Budget>) -> Result<ChatClient, StepError> {
        let endpoint = Endpoint::new(self.args.protocol(), self.args.base_url(), self.secret()?)
            .map_err(in_words)?;
        let settings = ChatSettings {
            concurrency: self.args.concurrency(),
            requests_per_minute: self.args.requests_per_minute,
            tokens_per_minute: self.args.tokens_per_minute,
            timeout: Duration::from_secs_f64(self.args.timeout_seconds()),
            tries: self.args.tries.unwrap_or(5),
            budget: Some(budget),
            price: self.price(),
            // It only randomizes waits: refused processes should not retry at the same time.
            seed: u64::from(std::process::id()),
            ..ChatSettings::default()
        };
        ChatClient::new(endpoint, settings).map_err(in_words)
    }

    /// The next question, and the digest of its answer's key.
    fn question(&self, chat: &Chat) -> (Map<String, Value>, Digest) {
        let body = request::body(&self.args, &self.model, &chat.asked, chat.sample);
        let question = json!({"v": QUESTION, "body": body, "sample": chat.sample});
        (body, Digest::of_json(&question))
    }

    /// The newest answer to a question from the pinned version.
    fn known(&self, answers: &dyn KnownAnswers, question: &Digest) -> Option<ModelTurn> {
        let turn = |text: &str| {
            serde_json::from_str::<ModelTurn>(text).ok().or_else(|| {
                let unread: UnreadBody<'_> = serde_json::from_str(text).ok()?;
                self.args.protocol().answer(&unread.body).map(|answer| self.turn(answer))
            })
        };
        let all = answers.known(question);
        let mut turns = all.into_iter().rev().filter_map(turn);
        let turn = turns.find(|turn| self.has_pinned_version(turn));
        turn.map(|turn| ModelTurn { question: Some(*question), ..turn })
    }

    fn turn(&self, answer: Answer) -> ModelTurn {
        let refused = answer.content.is_empty() && answer.refusal.is_some();
        ModelTurn {
            content: if refused { answer.refusal.unwrap_or_default() } else { answer.content },
            reasoning: answer.reasoning,
            finish_reason: if refused { Some(REFUSAL.into()) } else { answer.finish_reason },
            model: answer.model,
            prompt_tokens: answer.prompt_tokens,
            completion_tokens: answer.completion_tokens,
            logprobs: answer.logprobs.filter(|_| self.args.logprobs()).map(|tokens| {
                tokens.into_iter().map(|token| (token.token, token.logprob)).collect()
            }),
            question: None,
        }
    }

    fn has_pinned_version(&self, turn: &ModelTurn) -> bool {
        self.pinned.as_ref().is_none_or(|pinned| turn.model.as_ref() == Some(pinned))
    }
}

fn in_words(error: ChatError) -> StepError {
    StepError::new(error.to_string())
}

pub(super) fn columns(args: &GenerateArgs) -> AnswerColumns {
    AnswerColumns { logprobs: args.logprobs(), models: false }
}

impl BoundStep for ServerStep {
    fn args(&self) -> Value {
        request::arguments(&self.args, &self.model, self.pinned.as_deref())
    }

    fn recipe_args(&self) -> Option<Value> {
        Some(self.named())
    }

    fn recipe_version(&self) -> Option<u32> {
        Some(KEPT)
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

impl Versioned for ServerStep {
    fn version<'a>(
        &'a self,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<String, StepError>> {
        Box::pin(async move {
            let ask = Ask::new(request::hello(&self.args, &self.model)).map_err(in_words)?;
            let client = self.client(Budget::unlimited())?;
            let answer = client.ask(&ask, &|_| {}, cancel).await.map_err(in_words)?;
            answer.model.ok_or_else(|| StepError::new("the server does not say which model it is"))
        })
    }
}

impl PaidStep for ServerStep {
    fn terms(&self) -> Option<PaymentTerms> {
        Some(PaymentTerms {
            model: self.model.clone(),
            server: ServerAddress::of(self.args.base_url()),
            price: self.price(),
            max_usd: self.args.max_usd(),
            bounded: self.args.limits_answers(),
        })
    }

    fn forecast<'a>(
        &'a self,
        answers: &'a dyn KnownAnswers,
        mut inputs: Inputs,
    ) -> BoxFuture<'a, Result<RequestForecast, StepError>> {
        Box::pin(async move {
            let rows = PromptRows::read(&mut inputs, &self.key).await?;
            let Work { results, fresh, .. } = Work::new(self, &rows, answers);
            let known = results.iter().flatten().flatten();
            forecast(known, &fresh, self.price().as_ref(), |chat| self.question(chat))
        })
    }

    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        answers: &'a dyn Answers,
        mut inputs: Inputs,
    ) -> BoxFuture<'a, Result<PaidResult, StepError>> {
        Box::pin(async move {
            let rows = PromptRows::read(&mut inputs, &self.key).await?;
            let work = Work::new(self, &rows, answers);
            let (outcomes, fresh) = (work.outcomes, work.fresh);
            let mut results = work.results;
            let asked: Vec<bool> = results.iter().map(Option::is_none).collect();
            let work = outcomes.iter().filter(|o| asked[o.answer]).count() as u64;
            let known = |o: &&SampleOutcome| matches!(results[o.answer], Some(Ok(_)));
            let reused = outcomes.iter().filter(known).count() as u64;
            (cx.tell)(Tell::Total { work, reused });
            if !fresh.is_empty() {
                let mut rows_of = vec![0; results.len()];
                outcomes.iter().for_each(|outcome| rows_of[outcome.answer] += 1);
                let client = self.client(Arc::clone(&cx.budget))?;
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
            let results: Option<Vec<_>> = results.into_iter().collect();
            let results =
                results.ok_or_else(|| StepError::new("a defect: a question was not asked"))?;
            let fresh = |o: &&SampleOutcome| asked[o.answer] && results[o.answer].is_ok();
            let computed = outcomes.iter().filter(fresh).count() as u64;
            let unanswered = Unanswered::of(&outcomes, &results);
            if let Some(warning) = unanswered.allowed(self.args.min_answered())? {
                (cx.tell)(Tell::Warning(warning));
            }
            cx.retry.fetch_add(unanswered.missing(), Ordering::Relaxed);
            let form = AnswerForm {
                models: std::slice::from_ref(&self.model),
                columns: columns(&self.args),
                extract: self.args.extract(false),
                price: self.price(),
                ports: &self.ports,
            };
            let ports = tables(cx, &form, &rows, &outcomes, &results)?;
            Ok(PaidResult { ports, computed, reused })
        })
    }
}

/// The answer to a conversation, or the reason why there is none; `None` while it is asked.
type Resolution = Option<Result<ModelAnswer, NoAnswer>>;

struct Work {
    outcomes: Vec<SampleOutcome>,
    results: Vec<Resolution>,
    /// Conversations without an answer yet, with their positions among the results.
    fresh: Vec<(usize, Chat)>,
}

impl Work {
    /// Rows with equal conversations share their answers. Known answers are taken from `answers`.
    fn new(step: &ServerStep, rows: &PromptRows, answers: &dyn KnownAnswers) -> Self {
        let inquiries = inquiries(rows, &step.args);
        let samples = step.args.samples();
        let mut work = Self { outcomes: Vec::new(), results: Vec::new(), fresh: Vec::new() };
        let mut seen: HashMap<&Inquiry, usize> = HashMap::new();
        for (row, inquiry) in inquiries.iter().enumerate() {
            let next = work.results.len();
            let first = match inquiry {
                Ok(inquiry) => *seen.entry(inquiry).or_insert(next),
                Err(_) => next,
            };
            for sample in 0..samples {
                let answer = first + sample as usize;
                if answer == work.results.len() {
                    let result = match inquiry {
                        Ok(inquiry) => work.look_up(step, Chat::new(inquiry, sample), answers),
                        Err(why) => Some(Err(why.clone())),
                    };
                    work.results.push(result);
                }
                work.outcomes.push(SampleOutcome { row, model: 0, sample, answer });
            }
        }
        work
    }

    fn look_up(
        &mut self,
        step: &ServerStep,
        mut chat: Chat,
        answers: &dyn KnownAnswers,
    ) -> Resolution {
        while let Some(turn) = step.known(answers, &step.question(&chat).1) {
            if !chat.answered(turn) {
                return Some(Ok(chat.answer));
            }
        }
        self.fresh.push((self.results.len(), chat));
        None
    }
}

struct Asking<'a> {
    step: &'a ServerStep,
    cx: &'a LowerContext,
    answers: &'a dyn Answers,
    client: ChatClient,
    /// Limits parallel requests. Storing an answer does not count.
    places: Semaphore,
    /// Questions in progress: conversations with the same beginning share it.
    asked: Mutex<HashMap<Digest, Arc<OnceCell<ModelTurn>>>>,
    /// No more requests are sent; those in progress finish, as they may be billed.
    stopped: AtomicBool,
}

/// The reason why a conversation ended without an answer.
enum Ended {
    Unanswered(NoAnswer),
    /// The same error would affect all others.
    All(StepError),
    /// It was not started or continued because of that error.
    Skipped,
}

impl Asking<'_> {
    /// Asks until every conversation has an answer or an error.
    async fn all(
        &self,
        fresh: Vec<(usize, Chat)>,
        rows_of: &[u64],
        results: &mut [Resolution],
    ) -> Result<(), StepError> {
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
                Err(Ended::Unanswered(why)) => Err(why),
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

    async fn one(&self, mut chat: Chat) -> Result<ModelAnswer, Ended> {
        loop {
            if self.stopped.load(Ordering::Relaxed) {
                return Err(Ended::Skipped);
            }
            let (body, question) = self.step.question(&chat);
            // A turn after a new answer may already be known from an equal answer.
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

    async fn ask(&self, body: Map<String, Value>, question: &Digest) -> Result<ModelTurn, Ended> {
        let all = |error: StepError| Ended::All(error);
        let ask = Ask::new(body).map_err(|error| all(in_words(error)))?;
        let notice = |notice: ChatNotice| match notice {
            ChatNotice::Waiting(text) => (self.cx.tell)(Tell::Waiting(text)),
        };
        // The semaphore is never closed.
        let place = self.places.acquire().await;
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Ended::Skipped);
        }
        let answer = self.client.ask(&ask, &notice, &self.cx.env.cancel).await;
        drop(place);
        let answer = match answer {
            Ok(answer) => answer,
            Err(ChatError::Failed { rule, reason, unread, .. }) => {
                if let Some(body) = &unread {
                    let kept = UnreadBody { body: body.as_ref().into() };
                    let kept = serde_json::to_string(&kept).unwrap_or_default();
                    self.answers.keep(question, &kept).await.map_err(all)?;
                }
                return Err(Ended::Unanswered(NoAnswer {
                    rule: rule.to_string(),
                    reason,
                    again: true,
                    unread,
                }));
            }
            Err(error @ ChatError::OverBudget(_)) => {
                let help = "raise it, which is for all runs until everything is answered";
                return Err(all(in_words(error).help(help)));
            }
            Err(error) => {
                let error = in_words(error);
                let renamed = "limit answers by `max_completion_tokens`";
                let help = "extra_body: { max_completion_tokens: 500 }";
                let is_renamed = error.to_string().contains(renamed);
                return Err(all(if is_renamed { error.help(help) } else { error }));
            }
        };
        let turn = ModelTurn { question: Some(*question), ..self.step.turn(answer) };
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

/// The error of a step that keeps the answers for this many rows.
pub(super) fn with_kept(error: StepError, rows: u64) -> StepError {
    let kept = match rows {
        0 => return error,
        1 => "the answer for one row is kept".to_string(),
        n => format!("the answers for {n} rows are kept"),
    };
    let advice = error.advice().map(|advice| format!("{advice}; {kept}")).unwrap_or(kept);
    error.help(advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Kept(Vec<String>);

    impl KnownAnswers for Kept {
        fn known(&self, _: &Digest) -> Vec<&str> {
            self.0.iter().map(String::as_str).collect()
        }
    }

    #[test]
    fn a_kept_body_that_can_be_read_by_now_is_an_answer() {
        let args = serde_json::from_value(json!({"model": "m"})).unwrap();
        let step = ServerStep { args, model: "m".into(), key: vec![], pinned: None, ports: vec![] };
        let kept = |body: &str| serde_json::to_string(&UnreadBody { body: body.into() }).unwrap();
        let known = |all: &[String]| {
            step.known(&Kept(all.to_vec()), &Digest::of(b"question")).map(|turn| turn.content)
        };
        let damaged = kept("{\"choices\": ");
        let body = json!({"choices": [{"message": {"content": "x"}}]}).to_string();
        assert_eq!(known(&[]), None);
        assert_eq!(known(std::slice::from_ref(&damaged)), None);
        assert_eq!(known(&[kept(&body), damaged]).as_deref(), Some("x"));
    }
}
