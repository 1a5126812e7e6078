//! The token log: the single source of truth of a conversation. Any KV cache can be recomputed from it, bit for bit.

use potluck_plan::{KernelClass, Work};
use potluck_protocol::LoggedTokens;

use super::draft::Drafts;
use crate::mutation::{Mutation, has_mutation};

/// Tokens of a conversation, and the kernel class that computed each of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenLog {
    tokens: Vec<u32>,
    classes: Vec<KernelClass>,
    /// Positions whose KV cache every stage of the active plan has.
    computed: usize,
}

/// Tokens to send next.
pub(crate) struct Chunk {
    pub base: usize,
    pub tokens: Vec<u32>,
    /// Draft tokens after them; the log does not contain them.
    pub drafts: Drafts,
    /// Greedy tokens to compute after them (multi-step decode), instead of drafts.
    pub further_steps: u16,
    pub class: KernelClass,
    /// It ends the log: logits of its last token are needed.
    pub last: bool,
}

impl TokenLog {
    /// A log that another device kept; `None` if it is malformed. Nothing of it is computed.
    pub fn of(logged: LoggedTokens) -> Option<Self> {
        let classes = logged.classes()?;
        Some(Self { tokens: logged.tokens, classes, computed: 0 })
    }

    /// Its first tokens.
    pub fn first(&self, tokens: usize) -> LoggedTokens {
        let end = tokens.min(self.tokens.len());
        LoggedTokens::new(&self.tokens[..end], &self.classes[..end])
    }

    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Replaces the log by a prompt; a common prefix keeps its KV cache and kernel classes. Returns how many
    /// positions need not be recomputed. The last one always is: its logits are needed.
    pub fn begin(&mut self, prompt: &[u32]) -> usize {
        let common = self.tokens.iter().zip(prompt).take_while(|(a, b)| a == b).count();
        self.tokens.truncate(common);
        self.classes.truncate(common);
        self.tokens.extend_from_slice(&prompt[common..]);
        self.classes.resize(prompt.len(), KernelClass::Prefill);
        self.computed = self.computed.min(common).min(prompt.len().saturating_sub(1));
        self.computed
    }

    /// The prompt in the log's own tokens, as far as both are the same text. A chat template renders an answer's text
    /// again and the tokenizer may split it differently than the model did; the KV cache of the model's own tokens
    /// can still be kept.
    pub fn in_own_tokens(&self, prompt: Vec<u32>, piece: impl Fn(u32) -> Vec<u8>) -> Vec<u32> {
        let common = self.tokens.iter().zip(&prompt).take_while(|(a, b)| a == b).count();
        let (mut own, mut other) = (common, common);
        let (mut own_bytes, mut other_bytes) = (Vec::new(), Vec::new());
        // Up to these tokens of the log and of the prompt the texts are equal.
        let mut same = (common, common);
        loop {
            let shorter = own_bytes.len().min(other_bytes.len());
            if own_bytes[..shorter] != other_bytes[..shorter] {
                break;
            }
            own_bytes.drain(..shorter);
            other_bytes.drain(..shorter);
            if own_bytes.is_empty() && other_bytes.is_empty() {
                same = (own, other);
            }
            let next = if own_bytes.len() <= other_bytes.len() {
                self.tokens.get(own).inspect(|_| own += 1).map(|token| own_bytes.extend(piece(*token)))
            } else {
                prompt.get(other).inspect(|_| other += 1).map(|token| other_bytes.extend(piece(*token)))
            };
            if next.is_none() {
                break;
            }
        }
        [&self.tokens[..same.0], &prompt[same.1..]].concat()
    }

    pub fn push(&mut self, token: u32) {
        self.tokens.push(token);
        self.classes.push(KernelClass::Decode);
    }

    pub fn computed(&self) -> usize {
        self.computed
    }

    /// The tokens that are computed, with the class of each.
    pub fn of_computed(&self) -> (&[u32], &[KernelClass]) {
        (&self.tokens[..self.computed], &self.classes[..self.computed])
    }

    pub fn set_computed(&mut self, positions: usize) {
        self.computed = positions.min(self.tokens.len());
    }

    /// The chunk from `base` on: the longest run of one kernel class, split the way it was split the first time.
    pub fn chunk(&self, base: usize, prefill_tokens: usize) -> Option<Chunk> {
        let class = *self.classes.get(base)?;
        let max = match class {
            KernelClass::Prefill => prefill_tokens,
            KernelClass::Decode => Work::DECODE_TOKENS,
        };
        let len = self.classes[base..].iter().take(max).take_while(|other| **other == class).count();
        let late = usize::from(has_mutation(Mutation::ReplayOffByOne) && len < max && base + len < self.tokens.len());
        let len = len + late;
        let tokens = self.tokens[base..base + len].to_vec();
        Some(Chunk {
            base,
            tokens,
            drafts: Drafts::default(),
            further_steps: 0,
            class,
            last: base + len == self.tokens.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn a_longer_prompt_reuses_what_was_computed() {
        let mut log = TokenLog::default();
        assert_eq!(log.begin(&[1, 2, 3]), 0);
        log.push(4);
        log.set_computed(4);
        assert_eq!(log.begin(&[1, 2, 3, 4, 5, 6]), 4);
        let chunk = log.chunk(4, 64).unwrap();
        assert_eq!((chunk.tokens, chunk.class, chunk.last), (vec![5, 6], KernelClass::Prefill, true));
    }

    /// Token 12 stands for the text "12".
    fn digits(token: u32) -> Vec<u8> {
        token.to_string().into_bytes()
    }

    #[test]
    fn an_answer_that_is_tokenized_differently_keeps_its_own_tokens() {
        let mut log = TokenLog::default();
        log.begin(&[7, 7]);
        [1, 2, 3, 4].into_iter().for_each(|token| log.push(token));
        assert_eq!(log.in_own_tokens(vec![7, 7, 12, 34, 9], digits), [7, 7, 1, 2, 3, 4, 9], "the same text");
        assert_eq!(log.in_own_tokens(vec![7, 7, 12, 35, 9], digits), [7, 7, 1, 2, 35, 9], "the same up to a cut");
        assert_eq!(log.in_own_tokens(vec![7, 7, 125], digits), [7, 7, 125], "no common cut");
        assert_eq!(log.in_own_tokens(vec![7, 7, 12, 3], digits), [7, 7, 1, 2, 3], "a shorter prompt");
        assert_eq!(log.in_own_tokens(vec![5], digits), [5]);
    }

    #[test]
    fn the_same_prompt_computes_its_last_token_again() {
        let mut log = TokenLog::default();
        log.begin(&[1, 2, 3]);
        log.set_computed(3);
        assert_eq!(log.begin(&[1, 2, 3]), 2);
    }

    #[test]
    fn a_replay_keeps_decoded_tokens_apart_from_the_prompt() {
        let mut log = TokenLog::default();
        log.begin(&[1; 70]);
        (0..20).for_each(|token| log.push(token));
        let mut base = 0;
        let mut cuts = Vec::new();
        while let Some(chunk) = log.chunk(base, 64) {
            cuts.push((chunk.class, chunk.tokens.len()));
            base += chunk.tokens.len();
        }
        use KernelClass::{Decode, Prefill};
        assert_eq!(cuts, [(Prefill, 64), (Prefill, 6), (Decode, 16), (Decode, 4)]);
    }
}
