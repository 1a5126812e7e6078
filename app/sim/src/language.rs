//! The simulated model's language: every character of ASCII is a token.

use potluck_plan::{AllowedTokens, Candidates, Channel, ChannelText};
use potluck_protocol::{AnswerForm, PromptRequest, Role, Sampling};
use potluck_swarm::{Grammar, Language, TextStream};

use super::engine::VOCABULARY;
use super::random::mix;

pub(crate) struct Bytewise;

/// Greedy, or with a temperature and this seed.
pub(crate) fn sampling(seed: Option<u64>) -> Sampling {
    let temperature = if seed.is_some() { 1.0 } else { 0.0 };
    let seed = seed.unwrap_or_default();
    Sampling { temperature, top_k: 0, top_p: 1.0, min_p: 0.0, seed, ..Sampling::default() }
}

impl Language for Bytewise {
    /// As templates do: of earlier answers, what was said; of one that is continued, also what was thought.
    fn render(&self, question: &PromptRequest) -> Result<Vec<u32>, String> {
        let mut text = question.messages.iter().map(|message| message.content.as_str()).collect::<Vec<_>>();
        if let Some(begun) = question.messages.last().filter(|last| last.role == Role::Assistant) {
            text.insert(text.len() - 1, &begun.reasoning);
        }
        Ok(text.concat().bytes().map(u32::from).collect())
    }

    fn tokenize(&self, text: &str) -> Result<Vec<u32>, String> {
        Ok(text.bytes().map(u32::from).collect())
    }

    fn piece(&self, token: u32) -> Vec<u8> {
        token.to_le_bytes().to_vec()
    }

    /// A question ends with the tag if the model is to think first, until it has written [`THOUGHT`] tokens.
    fn decoder(&self, question: &PromptRequest, _: &[u32]) -> Box<dyn TextStream> {
        let asked = question.messages.iter().rev().find(|message| message.role == Role::User);
        let thinks = asked.is_some_and(|asked| asked.content.ends_with("<think>"));
        let thought = question.messages.last().map_or(0, |last| last.reasoning.len());
        Box::new(Letters { to_think: if thinks { THOUGHT.saturating_sub(thought) } else { 0 } })
    }

    /// Expressions: [`EVERY_THIRD`], and [`NOTHING_LATER`].
    fn grammar(&self, question: &PromptRequest, _: &[u32], _: u32) -> Result<Option<Box<dyn Grammar>>, String> {
        match &question.logits.form {
            AnswerForm::Free => Ok(None),
            AnswerForm::Regex(text) if text == EVERY_THIRD || text == NOTHING_LATER => {
                let left = (text == NOTHING_LATER).then_some(5);
                Ok(Some(Box::new(Thirds { hash: 0, left, of_all: left })))
            }
            _ => Err("This form cannot be read.".to_owned()),
        }
    }

    fn is_end(&self, token: u32) -> bool {
        token == 0
    }

    /// Greedy: the candidate. With a temperature the text repeats itself, in four letters: seven times of eight,
    /// drawn from candidate, seed and position, it continues as it did after the last occurrence of its last two
    /// tokens.
    fn choose(&self, candidates: &Candidates, sampling: &Sampling, position: u32, log: &[u32]) -> u32 {
        let best = candidates.ids[0];
        if sampling.temperature <= 0.0 { best } else { draw(best, sampling.seed, position, &log[..position as usize]) }
    }
}

/// Tokens that a sampled one depends on: as many as an engine is told.
const LOOK_BACK: usize = 64;

/// The sampled token at `position` after `log`, or after its newest tokens.
pub(crate) fn draw(best: u32, seed: u64, position: u32, log: &[u32]) -> u32 {
    let drawn = mix(seed ^ u64::from(position) << 20 ^ u64::from(best) << 40);
    let log = &log[log.len().saturating_sub(LOOK_BACK)..];
    let refrain = log.windows(3).rev().find(|window| log.ends_with(&window[..2]));
    match refrain.filter(|_| !drawn.is_multiple_of(8)) {
        Some(window) => window[2],
        None => u32::from(b'a') + (drawn >> 32) as u32 % 4,
    }
}

/// The form of an answer after whose tokens every third token may come, which ones depends on all of them.
pub const EVERY_THIRD: &str = "every third";
/// The same, but after five tokens none may come.
pub const NOTHING_LATER: &str = "nothing later";

#[derive(Clone)]
struct Thirds {
    hash: u64,
    left: Option<u32>,
    of_all: Option<u32>,
}

impl Thirds {
    fn next(&self) -> AllowedTokens {
        let may_come = |id: &u32| u64::from(*id).wrapping_add(self.hash).is_multiple_of(3) && self.left != Some(0);
        AllowedTokens::only(VOCABULARY as u32, (1..VOCABULARY as u32).filter(may_come))
            .unwrap_or_else(|_| unreachable!())
    }

    fn go(&mut self, token: u32) {
        self.hash = mix(self.hash ^ u64::from(token)) >> 8;
        self.left = self.left.map(|left| left.saturating_sub(1));
    }
}

impl Grammar for Thirds {
    fn allowed(&mut self, drafts: &mut Vec<u32>) -> Result<Vec<AllowedTokens>, String> {
        if self.left == Some(0) {
            return Err("Nothing may come.".to_owned());
        }
        let mut ahead = self.clone();
        let mut all = vec![ahead.next()];
        let fits = drafts.iter().take_while(|draft| {
            let fits = all.last().is_some_and(|allowed| allowed.contains(**draft));
            ahead.go(**draft);
            all.extend(fits.then(|| ahead.next()));
            fits
        });
        let count = fits.count();
        drafts.truncate(count);
        Ok(all)
    }

    fn push(&mut self, token: u32) -> Result<(), String> {
        let fits = self.next().contains(token);
        self.go(token);
        if fits { Ok(()) } else { Err(format!("Token {token} may not come.")) }
    }

    fn is_complete(&self) -> bool {
        false
    }

    fn begin_again(&mut self) {
        (self.hash, self.left) = (0, self.of_all);
    }
}

/// Tokens of an answer of this form, of a device that nobody disturbs: `next` computes each from the one before and what may come.
pub(crate) fn formed(mut next: impl FnMut(Option<u32>, AllowedTokens) -> Option<u32>, count: usize) -> Vec<u32> {
    let mut grammar = Thirds { hash: 0, left: None, of_all: None };
    let mut answer: Vec<u32> = Vec::new();
    while answer.len() < count {
        let Some(token) = next(answer.last().copied(), grammar.next()) else { break };
        grammar.go(token);
        answer.push(token);
    }
    answer
}

/// Tokens of a simulated model's reasoning.
pub const THOUGHT: usize = 4;

struct Letters {
    to_think: usize,
}

impl TextStream for Letters {
    fn push(&mut self, token: u32) -> Vec<ChannelText> {
        let channel = if self.to_think > 0 { Channel::Reasoning } else { Channel::Answer };
        self.to_think = self.to_think.saturating_sub(1);
        let text = char::from_u32(token).map(String::from).unwrap_or_default();
        vec![ChannelText { channel, text }]
    }

    fn finish(&mut self) -> Vec<ChannelText> {
        Vec::new()
    }
}
