//! Which conversation of the room a request goes on with. Programs send the whole conversation each time; in the room, the KV cache of a
//! common beginning is kept under the conversation's name.

use std::hash::{DefaultHasher, Hash, Hasher};

use potluck_panel::PromptRequest;

/// Conversations that are remembered.
const MAX_KNOWN: usize = 16;

/// The conversations of all programs.
#[derive(Debug, Default)]
pub(crate) struct Conversations {
    known: Vec<Known>,
    /// How many were begun.
    begun: u64,
    /// How often any was used.
    uses: u64,
}

#[derive(Debug)]
struct Known {
    name: String,
    /// Of its messages. If two collide, an answer takes longer and is the same.
    hashes: Vec<u64>,
    is_in_use: bool,
    used: u64,
}

impl Known {
    /// Messages that it has in common with a request, from the first on.
    fn common(&self, hashes: &[u64]) -> usize {
        self.hashes.iter().zip(hashes).take_while(|(one, other)| one == other).count()
    }

    /// The request has more than half of its messages: it continues it, or replaces only the newest ones.
    fn is_continued(&self, hashes: &[u64]) -> bool {
        2 * self.common(hashes) > self.hashes.len()
    }
}

impl Conversations {
    /// Takes the conversation that this question goes on with, or a new one. It must be given back.
    pub fn take(&mut self, question: &PromptRequest) -> String {
        // Texts without turns are compared by the room alone, token by token.
        let hashes: Vec<u64> = if question.raw { vec![0] } else { hashes(question) };
        self.uses += 1;
        let free = self.known.iter_mut().filter(|known| !known.is_in_use && known.is_continued(&hashes));
        if let Some(known) = free.max_by_key(|known| (known.common(&hashes), known.used)) {
            (known.hashes, known.is_in_use, known.used) = (hashes, true, self.uses);
            return known.name.clone();
        }
        if self.known.len() >= MAX_KNOWN {
            let free = self.known.iter().enumerate().filter(|(_, known)| !known.is_in_use);
            if let Some((oldest, _)) = free.min_by_key(|(_, known)| known.used) {
                self.known.remove(oldest);
            }
        }
        self.begun += 1;
        let name = format!("api {}", self.begun);
        self.known.push(Known { name: name.clone(), hashes, is_in_use: true, used: self.uses });
        name
    }

    /// Gives a conversation back: another request may go on with it.
    pub fn give_back(&mut self, name: &str) {
        self.known.iter_mut().filter(|known| known.name == name).for_each(|known| known.is_in_use = false);
    }
}

/// Of the functions, which stand first in a prompt, if there are any, and of the messages.
fn hashes(question: &PromptRequest) -> Vec<u64> {
    let functions = &question.tools.functions;
    let offer = (!functions.is_empty()).then(|| hash(functions));
    let messages = question.messages.iter().map(|message| {
        let said = (message.role as u8, &message.content, &message.tool_calls, &message.tool_call_id);
        hash(said)
    });
    offer.into_iter().chain(messages).collect()
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use potluck_panel::{LogitOptions, Message, RequestId, Role, Sampling, ToolOffer};

    use super::*;

    fn question(messages: Vec<Message>, raw: bool) -> PromptRequest {
        PromptRequest {
            request: RequestId(1),
            conversation: String::new(),
            messages,
            raw,
            max_tokens: 1,
            sampling: Sampling::greedy(),
            reasoning: None,
            tools: ToolOffer::default(),
            logits: LogitOptions::default(),
        }
    }

    fn chat(texts: &[&str]) -> PromptRequest {
        let roles = [Role::System, Role::User, Role::Assistant]
            .into_iter()
            .chain([Role::User, Role::Assistant].into_iter().cycle());
        question(texts.iter().zip(roles).map(|(text, role)| Message::new(role, *text)).collect(), false)
    }

    fn ask(conversations: &mut Conversations, texts: &[&str]) -> String {
        let name = conversations.take(&chat(texts));
        conversations.give_back(&name);
        name
    }

    #[test]
    fn a_conversation_that_is_sent_again_with_more_goes_on() {
        let conversations = &mut Conversations::default();
        let first = ask(conversations, &["Be brief.", "Hi"]);
        let title = ask(conversations, &["Write a title.", "Hi"]);
        assert_ne!(first, title);
        assert_eq!(ask(conversations, &["Be brief.", "Hi", "Hello", "And?"]), first);
        assert_eq!(ask(conversations, &["Write a title.", "Hi"]), title, "the same again");
        assert_eq!(ask(conversations, &["Be brief.", "Hi", "Hello", "Or?"]), first, "the last one was edited");
        assert_ne!(ask(conversations, &["Be brief.", "Bye"]), first, "another one with the same instructions");
    }

    #[test]
    fn one_that_is_being_answered_is_left_alone() {
        let conversations = &mut Conversations::default();
        let messages = chat(&["Be brief.", "Hi"]);
        let first = conversations.take(&messages);
        let second = conversations.take(&messages);
        assert_ne!(first, second, "both are answered at once");
        conversations.give_back(&first);
        assert_eq!(conversations.take(&messages), first);
    }

    #[test]
    fn few_are_remembered_and_texts_without_turns_share_theirs() {
        let conversations = &mut Conversations::default();
        for number in 0..100 {
            ask(conversations, &[&number.to_string()]);
        }
        assert!(conversations.known.len() <= MAX_KNOWN, "{}", conversations.known.len());
        let mut raw = |text: &str| {
            let name = conversations.take(&question(vec![Message::new(Role::User, text)], true));
            conversations.give_back(&name);
            name
        };
        assert_eq!(raw("fn main"), raw("fn main() {"));
    }
}
