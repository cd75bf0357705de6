//! The question of a row: a conversation between a prompt and a model, turn by turn, or a text to
//! continue. Forecasts the requests to send, and their maximum cost.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::args::GenerateArgs;
use super::rows::{ModelAnswer, ModelTurn, NoAnswer, PromptRows};
use galeras_base::digest::Digest;
use galeras_chat::{Ask, Price};
use galeras_operator::{RequestForecast, StepError};
use galeras_sql::functions::Message;

/// A question to a model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Inquiry {
    /// The messages so far, up to one without an answer.
    Messages(Vec<Message>),
    /// A text to continue, up to the suffix if there is one.
    Text { prompt: String, suffix: Option<String> },
}

/// The question of each row, or the reason why it has none. A conversation has all of its messages.
pub(super) fn inquiries(rows: &PromptRows, args: &GenerateArgs) -> Vec<Result<Inquiry, NoAnswer>> {
    if !args.is_completion() {
        let all = rows.conversations(args.messages()).into_iter();
        return all.map(|messages| messages.map(Inquiry::Messages)).collect();
    }
    let null =
        |rule: &str, name: &str| NoAnswer::of_row(rule, format!("the column `{name}` is null"));
    let prompts = rows.texts(args.prompt());
    let suffixes = args.suffix.as_ref().map(|name| (name, rows.texts(name)));
    let inquiry = |(row, prompt): (usize, Option<&str>)| {
        let prompt = prompt.ok_or_else(|| null("prompt", args.prompt()))?.to_string();
        let suffix = suffixes.as_ref().map(|(name, texts)| {
            texts[row].map(str::to_string).ok_or_else(|| null("suffix", name))
        });
        Ok(Inquiry::Text { prompt, suffix: suffix.transpose()? })
    };
    prompts.into_iter().enumerate().map(inquiry).collect()
}

/// A conversation on its way to its answer. A text to continue counts as a single turn.
#[derive(Clone)]
pub(super) struct Chat {
    /// The next question.
    pub(super) asked: Inquiry,
    rest: std::vec::IntoIter<Message>,
    pub(super) sample: u32,
    pub(super) answer: ModelAnswer,
}

impl Chat {
    pub(super) fn new(inquiry: &Inquiry, sample: u32) -> Self {
        let (asked, rest) = match inquiry {
            Inquiry::Messages(all) => (Inquiry::Messages(Vec::new()), all.clone()),
            text @ Inquiry::Text { .. } => (text.clone(), Vec::new()),
        };
        let rest = rest.into_iter();
        let mut chat = Self { asked, rest, sample, answer: ModelAnswer::new() };
        chat.advance();
        chat
    }

    /// Advances to the next message that needs an answer; false if there is none.
    fn advance(&mut self) -> bool {
        let Inquiry::Messages(messages) = &mut self.asked else { return false };
        let before = messages.len();
        while let Some(message) = self.rest.next() {
            let user = message.role == "user";
            messages.push(message);
            let shown = self.rest.as_slice().first().is_some_and(|next| next.role == "assistant");
            if user && !shown {
                return true;
            }
        }
        messages.len() > before
    }

    /// Adds an answer; returns true if another one is needed.
    pub(super) fn answered(&mut self, turn: ModelTurn) -> bool {
        if let Inquiry::Messages(messages) = &mut self.asked {
            messages.push(Message { role: "assistant".into(), content: turn.content.clone() });
        }
        self.answer.push(turn);
        self.advance()
    }
}

/// The requests of the conversations `fresh`, each to its end, except those with a known answer.
/// `question` returns the next question of a conversation.
///
/// # Errors
/// If a request cannot be serialized.
pub(super) fn forecast<'a>(
    known: impl Iterator<Item = &'a ModelAnswer>,
    fresh: &'a [(usize, Chat)],
    price: Option<&Price>,
    question: impl Fn(&Chat) -> (Map<String, Value>, Digest),
) -> Result<RequestForecast, StepError> {
    let turns = known.chain(fresh.iter().map(|(_, chat)| &chat.answer)).flatten();
    let answered: HashSet<Digest> = turns.filter_map(|turn| turn.question).collect();
    let answered = answered.len() as u64;
    let mut forecast = RequestForecast {
        answered,
        completion_tokens: Some(0),
        usd: price.map(|_| galeras_chat::Usd::ZERO),
        ..RequestForecast::default()
    };
    let mut asked: HashSet<Digest> = HashSet::new();
    for (_, chat) in fresh {
        let mut chat = chat.clone();
        // Unknown answers of this conversation, which later requests include.
        let mut earlier = 0;
        loop {
            let (body, digest) = question(&chat);
            // Conversations with the same beginning ask it once. They may differ after an unknown
            // answer.
            if earlier > 0 || asked.insert(digest) {
                let ask = Ask::new(body).map_err(|error| StepError::new(error.to_string()))?;
                add(&mut forecast, &ask, earlier, price);
            }
            if !chat.answered(ModelTurn::default()) {
                break;
            }
            earlier += 1;
        }
    }
    Ok(forecast)
}

/// Adds a request that includes this many earlier answers.
fn add(forecast: &mut RequestForecast, ask: &Ask, earlier: u64, price: Option<&Price>) {
    let limit = ask.completion_limit();
    let read = earlier.saturating_mul(limit.unwrap_or(0));
    let prompt = ask.most_prompt_tokens().saturating_add(read);
    forecast.requests += 1;
    forecast.prompt_tokens = forecast.prompt_tokens.saturating_add(prompt);
    let written = forecast.completion_tokens.zip(limit);
    forecast.completion_tokens = written.map(|(sum, limit)| sum.saturating_add(limit));
    let known = |price: &&Price| limit.is_some() || (price.answers_are_free() && earlier == 0);
    let cost = price.filter(known).map(|price| price.of(prompt, limit.unwrap_or(0)));
    forecast.usd = forecast.usd.zip(cost).map(|(sum, cost)| sum.plus(cost));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(role: &str, content: &str) -> Message {
        Message { role: role.into(), content: content.into() }
    }

    fn contents(chat: &Chat) -> Vec<&str> {
        let Inquiry::Messages(messages) = &chat.asked else { panic!("not a conversation") };
        messages.iter().map(|message| message.content.as_str()).collect()
    }

    fn answer(text: &str) -> ModelTurn {
        ModelTurn { content: text.into(), ..ModelTurn::default() }
    }

    #[test]
    fn the_model_answers_after_each_message_of_the_user_without_an_answer() {
        let all = Inquiry::Messages(vec![
            message("system", "s"),
            message("user", "shown"),
            message("assistant", "like this"),
            message("user", "first"),
            message("user", "second"),
        ]);
        let mut chat = Chat::new(&all, 0);
        assert_eq!(contents(&chat), ["s", "shown", "like this", "first"]);
        assert!(chat.answered(answer("one")));
        assert_eq!(contents(&chat), ["s", "shown", "like this", "first", "one", "second"]);
        assert!(!chat.answered(answer("two")));
        assert_eq!(chat.answer.len(), 2);
    }

    #[test]
    fn a_text_goes_on_once() {
        let text = Inquiry::Text { prompt: "def f(".into(), suffix: Some("):".into()) };
        let mut chat = Chat::new(&text, 3);
        assert_eq!((&chat.asked, chat.sample), (&text, 3));
        assert!(!chat.answered(answer("a")));
        assert_eq!((&chat.asked, chat.answer.len()), (&text, 1));
    }

    fn chat(contents: &[&str]) -> Chat {
        let message = |text: &&str| Message { role: "user".into(), content: (*text).into() };
        Chat::new(&Inquiry::Messages(contents.iter().map(message).collect()), 0)
    }

    fn question(max_tokens: Option<u64>) -> impl Fn(&Chat) -> (Map<String, Value>, Digest) {
        move |chat| {
            let Inquiry::Messages(messages) = &chat.asked else { panic!("{:?}", chat.asked) };
            let mut body = json!({"model": "m", "messages": messages});
            if let Some(max_tokens) = max_tokens {
                body["max_tokens"] = json!(max_tokens);
            }
            let digest = Digest::of_json(&body);
            (body.as_object().unwrap().clone(), digest)
        }
    }

    #[test]
    fn later_turns_read_the_answers_of_earlier_ones() {
        let price = Price::per_million("1".parse().unwrap(), "2".parse().unwrap()).unwrap();
        let one = [(0, chat(&["first"]))];
        let two = [(0, chat(&["first", "second"])), (1, chat(&["first", "third"]))];
        let of = |fresh: &[(usize, Chat)], limit| {
            forecast(std::iter::empty(), fresh, Some(&price), question(limit)).unwrap()
        };
        let single = of(&one, Some(100));
        assert_eq!((single.requests, single.completion_tokens), (1, Some(100)));
        assert_eq!(single.usd, Some(price.of(single.prompt_tokens, 100)));
        let double = of(&two, Some(100));
        // The first question once, and two that follow its answer.
        assert_eq!((double.requests, double.completion_tokens), (3, Some(300)));
        assert!(double.prompt_tokens > 3 * single.prompt_tokens + 2 * 100);
        let endless = of(&two, None);
        assert_eq!((endless.requests, endless.completion_tokens, endless.usd), (3, None, None));
    }

    #[test]
    fn what_was_answered_counts_once() {
        let turn = |n: u8| ModelTurn { question: Some(Digest::of(&[n])), ..ModelTurn::default() };
        let known = [vec![turn(1), turn(2)], vec![turn(1), turn(3)]];
        let forecast = forecast(known.iter(), &[], None, question(None)).unwrap();
        assert_eq!((forecast.answered, forecast.requests, forecast.usd), (3, 0, None));
    }
}
