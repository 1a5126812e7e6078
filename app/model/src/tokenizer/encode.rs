//! Text to ids.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::merge::Scratch;
use super::special::Hit;
use super::split::PreTokenizer;
use super::{Family, Tokenizer};

/// A symbol that is not a token. No vocabulary is this large.
const NO_TOKEN: u32 = u32::MAX;
/// Special tokens of Phi-3 that leave the white space behind them.
const KEEPS_SPACE: [&[u8]; 3] = [b"<unk>", b"<s>", b"<|endoftext|>"];

impl Tokenizer {
    /// Keeps the special tokens that `next` finds from a byte on, and transforms the text between them with `plain`.
    pub(super) fn encode_parts<'t>(
        &self,
        text: &'t str,
        next: impl Fn(usize) -> Option<Hit>,
        plain: impl Fn(&'t str) -> Cow<'t, str>,
    ) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 3 + 4);
        let mut scratch = Scratch::default();
        let mut from = 0;
        while let Some(hit) = next(from) {
            self.encode_plain(&plain(&text[from..hit.start]), &mut ids, &mut scratch);
            ids.push(hit.id);
            from = hit.end;
            if self.special_takes_space && !KEEPS_SPACE.contains(&self.pieces.bytes(hit.id)) {
                from += text[from..].bytes().take_while(|byte| byte.is_ascii_whitespace() || *byte == 0x0b).count();
            }
        }
        self.encode_plain(&plain(&text[from..]), &mut ids, &mut scratch);
        ids
    }

    pub(super) fn begin(&self, mut ids: Vec<u32>) -> Vec<u32> {
        if let Some(bos) = self.bos.filter(|bos| self.add_bos && ids.first() != Some(bos)) {
            ids.insert(0, bos);
        }
        ids
    }

    fn encode_plain(&self, text: &str, ids: &mut Vec<u32>, scratch: &mut Scratch) {
        if text.is_empty() {
            return;
        }
        match &self.family {
            Family::ByteLevel { split, bytes, whole } => {
                self.encode_words(text, split, bytes, whole.as_ref(), ids, scratch);
            }
            Family::RawText { chars, bytes, newlines } => {
                for line in lines(text) {
                    match newlines.get(&line.len()).filter(|_| line.starts_with('\n')) {
                        Some(&id) => ids.push(id),
                        None => self.encode_chars(line.chars(), chars, bytes, None, ids, scratch),
                    }
                }
            }
            Family::SentencePiece { space_prefix, chars, bytes, unknown } => {
                let spaced = space_prefix.then_some(' ').into_iter().chain(text.chars());
                self.encode_chars(spaced, chars, bytes, *unknown, ids, scratch);
            }
            Family::Unigram(unigram) => unigram.encode(&self.pieces, text, ids),
        }
    }

    fn encode_words(
        &self,
        text: &str,
        split: &PreTokenizer,
        bytes: &[Option<u32>; 256],
        whole: Option<&FxHashMap<Box<[u8]>, u32>>,
        ids: &mut Vec<u32>,
        scratch: &mut Scratch,
    ) {
        split.for_each(text, &mut |word| {
            if let Some(&id) = whole.and_then(|whole| whole.get(word.as_bytes())) {
                ids.push(id);
                return;
            }
            scratch.symbols.clear();
            scratch.symbols.extend(word.bytes().filter_map(|byte| bytes[usize::from(byte)]));
            self.merges.apply(scratch);
            ids.extend_from_slice(&scratch.symbols);
        });
    }

    /// Merges characters; those without a piece become bytes, or else `unknown`, once for a run of them.
    fn encode_chars(
        &self,
        text: impl Iterator<Item = char> + Clone,
        chars: &FxHashMap<char, u32>,
        bytes: &[Option<u32>; 256],
        unknown: Option<u32>,
        ids: &mut Vec<u32>,
        scratch: &mut Scratch,
    ) {
        // `NO_TOKEN` marks a character without a piece: it never merges, so counting characters finds its place in the
        // text again.
        scratch.symbols.clear();
        scratch.symbols.extend(text.clone().map(|c| chars.get(&c).copied().unwrap_or(NO_TOKEN)));
        self.merges.apply(scratch);
        let mut missing = text.filter(|c| !chars.contains_key(c));
        let mut after_unknown = false;
        for &symbol in &scratch.symbols {
            if symbol != NO_TOKEN {
                ids.push(symbol);
                after_unknown = false;
            } else if let Some(c) = missing.next() {
                let mut buffer = [0; 4];
                let encoded = c.encode_utf8(&mut buffer).as_bytes();
                if encoded.iter().all(|&byte| bytes[usize::from(byte)].is_some()) {
                    ids.extend(encoded.iter().filter_map(|&byte| bytes[usize::from(byte)]));
                } else if !after_unknown {
                    ids.extend(unknown);
                    after_unknown = true;
                }
            }
        }
    }
}

/// A text as runs of newlines and the text between them.
fn lines(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let newlines = text.starts_with('\n');
        let end = text.find(|c| (c == '\n') != newlines).unwrap_or(text.len());
        let (line, rest) = text.split_at(end);
        text = rest;
        (!line.is_empty()).then_some(line)
    })
}
