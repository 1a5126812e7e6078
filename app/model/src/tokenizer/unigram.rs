//! SentencePiece's unigram model: the sequence of pieces whose scores sum to the most (Kudo, 2018).

use super::charsmap::Charsmap;
use super::pieces::{Pieces, TokenKind};

/// Longest piece, in bytes, that is looked for; longer ones never match, so that a file's pieces cannot make every position
/// of a text expensive.
const MAX_PIECE_BYTES: usize = 256;
/// An unknown character scores this much less than the worst piece.
const UNKNOWN_PENALTY: f32 = 10.0;
/// What SentencePiece writes for a space; here pieces and texts have the space itself.
const SPACE: char = '▁';

/// Scores of pieces and rules of normalization.
#[derive(Clone, Debug)]
pub(super) struct Unigram {
    /// Ids of the pieces that text may become, in the order of their bytes.
    sorted: Vec<u32>,
    scores: Vec<f32>,
    unknown: Option<u32>,
    unknown_score: f64,
    charsmap: Charsmap,
    space_prefix: bool,
    merge_spaces: bool,
}

/// The best way to reach a place in a text.
#[derive(Clone, Copy)]
struct Best {
    score: f64,
    start: usize,
    /// `None` for an unknown character.
    id: Option<u32>,
}

impl Unigram {
    pub(super) fn new(
        pieces: &Pieces,
        scores: &[f32],
        unknown: Option<u32>,
        charsmap: Charsmap,
        space_prefix: bool,
        merge_spaces: bool,
    ) -> Self {
        let ids = || 0..scores.len() as u32;
        let of_text = |id: &u32| {
            matches!(pieces.kind(*id), Some(TokenKind::Normal | TokenKind::UserDefined | TokenKind::Unused))
                && !pieces.bytes(*id).is_empty()
        };
        let mut sorted: Vec<u32> = ids().filter(of_text).collect();
        sorted.sort_by(|a, b| pieces.bytes(*a).cmp(pieces.bytes(*b)));
        let normal = ids().filter(|id| pieces.kind(*id) == Some(TokenKind::Normal));
        let worst = normal.map(|id| scores[id as usize]).fold(f32::MAX, f32::min);
        let scores = ids().map(|id| match pieces.kind(id) {
            Some(TokenKind::UserDefined) => 0.0,
            _ => scores[id as usize],
        });
        Self {
            scores: scores.collect(),
            sorted,
            unknown,
            unknown_score: f64::from(worst - UNKNOWN_PENALTY),
            charsmap,
            space_prefix,
            merge_spaces,
        }
    }

    /// True if an encoded text begins with a space that was not there.
    pub(super) fn begins_with_space(&self) -> bool {
        self.space_prefix || self.merge_spaces
    }

    pub(super) fn encode(&self, pieces: &Pieces, text: &str, ids: &mut Vec<u32>) {
        let text = self.normalize(text);
        let unreached = Best { score: f64::NEG_INFINITY, start: 0, id: None };
        let mut best = vec![unreached; text.len() + 1];
        best[0].score = 0.0;
        for (start, c) in text.char_indices() {
            let before = best[start].score;
            let mut reach = |end: usize, score: f64, id| {
                if before + score > best[end].score {
                    best[end] = Best { score: before + score, start, id };
                }
            };
            let mut whole_character = false;
            self.matches(pieces, &text.as_bytes()[start..], |len, id| {
                whole_character |= len == c.len_utf8();
                reach(start + len, f64::from(self.scores[id as usize]), Some(id));
            });
            if !whole_character {
                reach(start + c.len_utf8(), self.unknown_score, None);
            }
        }
        let first = ids.len();
        let (mut at, mut after_unknown) = (text.len(), false);
        while at > 0 {
            let Best { start, id, .. } = best[at];
            if id.is_some() || !after_unknown {
                ids.extend(id.or(self.unknown));
            }
            (at, after_unknown) = (start, id.is_none());
        }
        ids[first..].reverse();
    }

    /// Calls `each` with the length and id of every piece that a text begins with.
    fn matches(&self, pieces: &Pieces, text: &[u8], mut each: impl FnMut(usize, u32)) {
        // The pieces that begin with the first `len` bytes; one that ends there is the first of them.
        let mut candidates = &self.sorted[..];
        for (len, byte) in text.iter().enumerate().take(MAX_PIECE_BYTES) {
            let next = |id: &u32| pieces.bytes(*id).get(len).copied();
            let from = candidates.partition_point(|id| next(id) < Some(*byte));
            let to = candidates.partition_point(|id| next(id) <= Some(*byte));
            candidates = &candidates[from..to];
            match candidates.first() {
                None => return,
                Some(&id) if pieces.bytes(id).len() == len + 1 => each(len + 1, id),
                Some(_) => {}
            }
        }
    }

    /// Replaces characters, merges spaces and puts one in front, as the file says.
    fn normalize(&self, text: &str) -> String {
        let mut normalized = String::with_capacity(text.len() + 1);
        let (mut prefixed, mut in_word) = (false, false);
        let mut push = |c: char| {
            if c != ' ' {
                if !in_word && ((self.space_prefix && !prefixed) || self.merge_spaces) {
                    normalized.push(' ');
                    prefixed = true;
                }
                // A "▁" that somebody typed is no space to merge.
                normalized.push(if c == SPACE { ' ' } else { c });
            } else if !self.merge_spaces {
                normalized.push(' ');
            }
            in_word = c != ' ';
        };
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let len = match self.charsmap.replace(rest) {
                Some((replacement, len)) => {
                    replacement.chars().for_each(&mut push);
                    len
                }
                None => {
                    push(c);
                    c.len_utf8()
                }
            };
            rest = &rest[len..];
        }
        normalized
    }
}
