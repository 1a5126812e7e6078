//! The simulated model's language: every character of ASCII is a token.

use potluck_plan::Candidates;
use potluck_protocol::{Message, Sampling};

use super::random::mix;
use crate::language::{Language, TextStream};

pub(crate) struct Bytewise;

/// Greedy, or with a temperature and this seed.
pub(crate) fn sampling(seed: Option<u64>) -> Sampling {
    let temperature = if seed.is_some() { 1.0 } else { 0.0 };
    let seed = seed.unwrap_or_default();
    Sampling { temperature, top_k: 0, top_p: 1.0, min_p: 0.0, repetition_penalty: 1.0, seed }
}

impl Language for Bytewise {
    fn render(&self, messages: &[Message]) -> Result<Vec<u32>, String> {
        Ok(messages.iter().flat_map(|message| message.content.bytes().map(u32::from)).collect())
    }

    fn opened_reasoning(&self, prompt: &[u32]) -> String {
        const TAG: &str = "<think>";
        let tag: Vec<u32> = TAG.bytes().map(u32::from).collect();
        if prompt.ends_with(&tag) { TAG.to_owned() } else { String::new() }
    }

    fn tokenize(&self, text: &str) -> Result<Vec<u32>, String> {
        Ok(text.bytes().map(u32::from).collect())
    }

    fn piece(&self, token: u32) -> Vec<u8> {
        token.to_le_bytes().to_vec()
    }

    fn decoder(&self) -> Box<dyn TextStream> {
        Box::new(Letters)
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

struct Letters;

impl TextStream for Letters {
    fn push(&mut self, token: u32) -> String {
        char::from_u32(token).map(String::from).unwrap_or_default()
    }

    fn finish(&mut self) -> String {
        String::new()
    }
}
