//! The simulated model's language: every character of ASCII is a token.

use potluck_plan::Candidates;
use potluck_protocol::{Message, Sampling};

use crate::language::{Language, TextStream};

pub(crate) struct Bytewise;

impl Language for Bytewise {
    fn render(&self, messages: &[Message]) -> Result<Vec<u32>, String> {
        Ok(messages.iter().flat_map(|message| self.tokenize(&message.content)).collect())
    }

    fn tokenize(&self, text: &str) -> Vec<u32> {
        text.bytes().map(u32::from).collect()
    }

    fn decoder(&self) -> Box<dyn TextStream> {
        Box::new(Letters)
    }

    fn is_end(&self, token: u32) -> bool {
        token == 0
    }

    fn choose(&self, candidates: &Candidates, _: &Sampling, _: u32, _: &[u32]) -> u32 {
        candidates.ids[0]
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
