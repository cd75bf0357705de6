//! A conversation between a prompt and a model, turn by turn.

use super::rows::{ModelAnswer, ModelTurn};
use crate::functions::Message;

/// A conversation on its way to its answer.
#[derive(Clone)]
pub(super) struct Chat {
    /// What was asked and answered so far, up to a message that has no answer.
    pub(super) messages: Vec<Message>,
    /// The messages that come after that.
    rest: std::vec::IntoIter<Message>,
    pub(super) sample: u32,
    pub(super) answer: ModelAnswer,
}

impl Chat {
    pub(super) fn new(all: &[Message], sample: u32) -> Self {
        let all: Vec<Message> = all.to_vec();
        let mut chat = Self {
            messages: Vec::new(),
            rest: all.into_iter(),
            sample,
            answer: ModelAnswer::new(),
        };
        chat.advance();
        chat
    }

    /// Goes on to the next message that wants an answer; whether there is one.
    fn advance(&mut self) -> bool {
        let before = self.messages.len();
        while let Some(message) = self.rest.next() {
            let user = message.role == "user";
            self.messages.push(message);
            let shown = self.rest.as_slice().first().is_some_and(|next| next.role == "assistant");
            if user && !shown {
                return true;
            }
        }
        self.messages.len() > before
    }

    /// Takes an answer; whether another one is wanted.
    pub(super) fn answered(&mut self, turn: ModelTurn) -> bool {
        self.messages.push(Message { role: "assistant".into(), content: turn.content.clone() });
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
        chat.messages.iter().map(|message| message.content.as_str()).collect()
    }

    #[test]
    fn the_model_answers_after_each_message_of_the_user_without_an_answer() {
        let all = [
            message("system", "s"),
            message("user", "shown"),
            message("assistant", "like this"),
            message("user", "first"),
            message("user", "second"),
        ];
        let mut chat = Chat::new(&all, 0);
        assert_eq!(contents(&chat), ["s", "shown", "like this", "first"]);
        let answer = |text: &str| ModelTurn { content: text.into(), ..ModelTurn::default() };
        assert!(chat.answered(answer("one")));
        assert_eq!(contents(&chat), ["s", "shown", "like this", "first", "one", "second"]);
        assert!(!chat.answered(answer("two")));
        assert_eq!(chat.answer.len(), 2);
    }
}
