//! How much of a room's context a conversation takes, and which of its turns are sent.

use super::{Conversation, Turn, TurnKey};

/// Bytes of text that a token usually stands for.
const USUAL: usize = 4;
/// Of a context, the part that is left to the turns which are still sent when the oldest are left out.
const KEPT: (usize, usize) = (1, 2);

/// How much of a context a conversation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextUse {
    /// Positions that are taken.
    pub used: u32,
    /// All of them.
    pub all: u32,
    /// The host has counted them; otherwise they are estimated from the text.
    pub is_counted: bool,
}

/// About how many tokens a text has. Letters outside of ASCII take two to four bytes, and about a token each.
#[must_use]
pub fn estimated_tokens(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let letters = text.chars().filter(|letter| !letter.is_ascii()).count();
    ascii.div_ceil(USUAL) + letters.div_ceil(2)
}

fn of_turn(turn: &Turn) -> usize {
    estimated_tokens(&turn.question) + estimated_tokens(&turn.answer.text)
}

impl Conversation {
    /// The place of the first turn that is sent.
    #[must_use]
    pub fn first_sent(&self) -> usize {
        let is_first = |turn: &Turn| Some(turn.key) == self.sent_from;
        self.turns.iter().position(is_first).unwrap_or_default()
    }

    /// How much of a context of `room` positions it takes; of the context that it was answered in, if `room` is 0.
    #[must_use]
    pub fn context_use(&self, room: u32) -> Option<ContextUse> {
        let counted = self.turns.iter().rev().find_map(|turn| Some((turn.key, turn.answer.context(room)?)));
        let all = if room > 0 { room } else { counted.map(|(_, (_, all))| all)? };
        // What was counted before turns were left out does not count any more.
        let counted = counted.filter(|(key, _)| self.counts_from.is_none_or(|from| *key >= from));
        Some(match counted {
            Some((_, (used, _))) => ContextUse { used, all, is_counted: true },
            None => {
                let used: usize = self.turns[self.first_sent()..].iter().map(of_turn).sum();
                ContextUse { used: u32::try_from(used).unwrap_or(u32::MAX), all, is_counted: self.turns.is_empty() }
            }
        })
    }

    /// The place of the first turn that is still sent if the oldest ones are left out, so that half of a context is free; `None` if
    /// all that are sent now are needed.
    #[must_use]
    pub fn next_left_out(&self, context: u32) -> Option<usize> {
        let keep = context as usize * KEPT.0 / KEPT.1;
        let mut tokens = 0;
        let fits = |turn: &&Turn| {
            tokens += of_turn(turn);
            tokens <= keep
        };
        let fitting = self.turns.iter().rev().take_while(fits).count().max(1);
        // At least one more than now.
        let first = self.turns.len().saturating_sub(fitting).max(self.first_sent() + 1);
        (first < self.turns.len()).then_some(first)
    }

    /// Sends no turns before this place any more. They stay.
    pub fn send_from(&mut self, at: usize) {
        self.sent_from = self.turns.get(at).map(|turn| turn.key).filter(|_| at > 0);
        self.counts_from = self.all_turns().map(|turn| turn.key.0 + 1).max().map(TurnKey);
    }
}

#[cfg(test)]
mod tests {
    use potluck_panel::{AnswerPart, AnswerStop, RequestId, Timings};

    use super::*;

    /// Three turns of about 100 tokens each, of which the host has counted more.
    fn soup() -> Conversation {
        let mut soup = Conversation::new("c".into());
        for request in 1..=3 {
            soup.ask(&format!("{request} {}", "word ".repeat(80)), RequestId(request), "tiny");
            let timings = Timings { context_used: request * 200, context: 600, ..Timings::default() };
            soup.apply(RequestId(request), &AnswerPart::End { pieces: 1, stop: AnswerStop::Complete, timings });
        }
        soup
    }

    #[test]
    fn what_the_host_counted_is_shown_and_before_that_an_estimate() {
        let mut soup = soup();
        assert_eq!(soup.context_use(1_000), Some(ContextUse { used: 600, all: 1_000, is_counted: true }));
        assert_eq!(soup.context_use(0).map(|context| context.all), Some(600), "that of the room that answered");
        soup.turns.iter_mut().for_each(|turn| turn.answer.timings = None);
        let estimated = soup.context_use(1_000);
        assert!(
            estimated.is_some_and(|context| !context.is_counted && (290..320).contains(&context.used)),
            "{estimated:?}"
        );
        assert_eq!(Conversation::new("c".into()).context_use(0), None, "nobody knows of a context");
    }

    #[test]
    fn the_oldest_turns_are_left_out_and_stay() {
        let mut soup = soup();
        let first = soup.next_left_out(500);
        assert_eq!(first, Some(1), "two of about 100 tokens fit half of it");
        soup.send_from(1);
        assert_eq!(soup.messages("").len(), 1, "the last question, of which none is answered");
        assert_eq!(soup.turns.len(), 3);
        assert!(soup.context_use(600).is_some_and(|context| !context.is_counted && context.used < 220));
        assert_eq!(soup.next_left_out(500), Some(2), "one more than before");
        soup.send_from(2);
        assert_eq!(soup.next_left_out(500), None, "the last one stays");
        soup.send_from(0);
        assert_eq!(soup.first_sent(), 0);
    }

    #[test]
    fn in_another_branch_and_without_its_turn_everything_is_sent() {
        let mut soup = soup();
        soup.send_from(1);
        soup.edit(0, "Stew?", RequestId(9), "tiny");
        assert_eq!(soup.first_sent(), 0);
        let mut soup = self::soup();
        soup.send_from(1);
        soup.delete_turn(1);
        assert_eq!(soup.first_sent(), 1, "the next turn is the first now");
        soup.delete_turn(1);
        assert_eq!(soup.first_sent(), 0);
    }

    #[test]
    fn other_scripts_have_more_tokens_a_letter() {
        assert_eq!((estimated_tokens(""), estimated_tokens("Hi"), estimated_tokens(&"水".repeat(10))), (0, 1, 5));
    }
}
