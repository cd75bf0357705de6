//! The question of a row: a conversation between a prompt and a model, turn by turn, or a text to
//! continue.

use super::args::GenerateArgs;
use super::rows::{ModelAnswer, ModelTurn, NoAnswer, PromptRows};
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

#[cfg(test)]
mod tests {
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
}
