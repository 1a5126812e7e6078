//! Reads vocabularies of SentencePiece, whose pieces have `▁` for a space.

use rustc_hash::FxHashMap;

use super::merge::MergeTable;
use super::pieces::{Pieces, TokenKind};

/// SentencePiece's replacement for a space.
pub(super) const SPACE: char = '▁';
/// Longest piece, in characters, that is split into pairs. Real pieces have at most 48.
const MAX_PIECE_CHARS: usize = 128;

/// The byte of a token like `<0x0A>`.
pub(super) fn byte_token(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() == 2 { u8::from_str_radix(digits, 16).ok() } else { None }
}

pub(super) fn byte_tokens(tokens: &[String], kinds: &[TokenKind]) -> Box<[Option<u32>; 256]> {
    let mut bytes = Box::new([None; 256]);
    for (id, (token, kind)) in (0..).zip(tokens.iter().zip(kinds)) {
        if let (TokenKind::Byte, Some(byte)) = (kind, byte_token(token)) {
            bytes[usize::from(byte)] = Some(id);
        }
    }
    bytes
}

pub(super) fn pieces(tokens: &[String], kinds: &[TokenKind]) -> Pieces {
    let mut pieces = Pieces::default();
    for (token, &kind) in tokens.iter().zip(kinds) {
        match (kind, byte_token(token)) {
            (TokenKind::Byte, Some(byte)) => pieces.push(&[byte], kind),
            (TokenKind::Control | TokenKind::Unknown, _) => pieces.push(token.as_bytes(), kind),
            _ => pieces.push(token.replace(SPACE, " ").as_bytes(), kind),
        }
    }
    pieces
}

pub(super) fn single_chars(tokens: &[String], kinds: &[TokenKind]) -> FxHashMap<char, u32> {
    let mut chars = FxHashMap::default();
    for (id, (token, kind)) in (0..).zip(tokens.iter().zip(kinds)) {
        let mut letters = token.chars();
        if let (TokenKind::Normal, Some(c), None) = (kind, letters.next(), letters.next()) {
            chars.entry(c).or_insert(id);
        }
    }
    if let Some(&space) = chars.get(&SPACE) {
        chars.insert(' ', space);
    }
    chars
}

/// All ways to build a piece from two others; the better a piece's score, the earlier it merges.
pub(super) fn merges(tokens: &[String], kinds: &[TokenKind], scores: &[f32]) -> MergeTable {
    let normal = || (0u32..).zip(tokens.iter().zip(kinds)).filter(|(_, (_, kind))| **kind == TokenKind::Normal);
    let mut ids: FxHashMap<&str, u32> = FxHashMap::with_capacity_and_hasher(tokens.len(), Default::default());
    for (id, (token, _)) in normal() {
        ids.entry(token).or_insert(id);
    }
    let mut distinct: Vec<f32> = scores.to_vec();
    distinct.sort_unstable_by(|a, b| b.total_cmp(a));
    distinct.dedup_by(|a, b| a.total_cmp(b).is_eq());
    let mut table = MergeTable::with_capacity(tokens.len() * 3);
    for (id, (token, _)) in normal() {
        if ids.get(token.as_str()) != Some(&id) || token.chars().nth(MAX_PIECE_CHARS).is_some() {
            continue;
        }
        let score = scores[id as usize];
        let rank = distinct.partition_point(|other| other.total_cmp(&score).is_gt()) as u32;
        for (at, _) in token.char_indices().skip(1) {
            if let (Some(&left), Some(&right)) = (ids.get(&token[..at]), ids.get(&token[at..])) {
                table.insert(left, right, rank, id);
            }
        }
    }
    table
}

/// Tokens that are runs of newlines, by their length.
pub(super) fn newline_runs(tokens: &[String]) -> FxHashMap<usize, u32> {
    let runs = (0..).zip(tokens).filter(|(_, token)| !token.is_empty() && token.bytes().all(|byte| byte == b'\n'));
    runs.map(|(id, token)| (token.len(), id)).collect()
}
