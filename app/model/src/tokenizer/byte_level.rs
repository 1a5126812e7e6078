//! Reads vocabularies of byte-level BPE, and the merges that all files with a list of merges share.

use rustc_hash::FxHashMap;

use super::bytes::bytes_of;
use super::merge::MergeTable;
use super::pieces::{Pieces, TokenKind};
use super::split::PreTokenizer;
use super::{Family, TokenizerWarning};

pub(super) fn pieces(tokens: &[String], kinds: &[TokenKind]) -> Pieces {
    let mut pieces = Pieces::default();
    for (token, &kind) in tokens.iter().zip(kinds) {
        match kind {
            TokenKind::Normal | TokenKind::Unused | TokenKind::Byte => match bytes_of(token) {
                Some(bytes) => pieces.push(&bytes, kind),
                None => pieces.push(token.as_bytes(), kind),
            },
            TokenKind::Unknown | TokenKind::Control | TokenKind::UserDefined => pieces.push(token.as_bytes(), kind),
        }
    }
    pieces
}

pub(super) fn merges(tokens: &[String], merges: &[String], warnings: &mut Vec<TokenizerWarning>) -> MergeTable {
    let mut ids: FxHashMap<&str, u32> = FxHashMap::with_capacity_and_hasher(tokens.len(), Default::default());
    for (id, token) in (0..).zip(tokens) {
        ids.entry(token).or_insert(id);
    }
    let mut table = MergeTable::with_capacity(merges.len());
    let mut skipped = 0;
    let mut merged = String::new();
    for (rank, merge) in (0..).zip(merges) {
        // The alphabet contains no space, so the first space after the first character separates the two parts.
        let first = merge.chars().next().map_or(0, char::len_utf8);
        let known = merge[first..].find(' ').and_then(|at| {
            let (left, right) = (&merge[..first + at], &merge[first + at + 1..]);
            merged.clear();
            merged.push_str(left);
            merged.push_str(right);
            Some((*ids.get(left)?, *ids.get(right)?, *ids.get(merged.as_str())?))
        });
        match known {
            Some((left, right, id)) => table.insert(left, right, rank, id),
            None => skipped += 1,
        }
    }
    if skipped > 0 {
        warnings.push(TokenizerWarning::SkippedMerges(skipped));
    }
    table
}

pub(super) fn family(
    tokens: &[String],
    kinds: &[TokenKind],
    split: PreTokenizer,
    whole_words: bool,
    warnings: &mut Vec<TokenizerWarning>,
) -> Family {
    let mut bytes = Box::new([None; 256]);
    let mut whole = whole_words.then(FxHashMap::default);
    for (id, (token, kind)) in (0..).zip(tokens.iter().zip(kinds)) {
        if matches!(kind, TokenKind::Control | TokenKind::Unknown) {
            continue;
        }
        let Some(piece) = bytes_of(token) else { continue };
        if let [byte] = piece[..] {
            bytes[usize::from(byte)].get_or_insert(id);
        }
        if let Some(whole) = &mut whole {
            whole.entry(piece.into_boxed_slice()).or_insert(id);
        }
    }
    // Ignore bytes that never occur in UTF-8.
    let in_text = |byte: usize| !matches!(byte, 0xc0 | 0xc1 | 0xf5..=0xff);
    let missing = bytes.iter().enumerate().filter(|(byte, id)| in_text(*byte) && id.is_none()).count();
    if missing > 0 {
        warnings.push(TokenizerWarning::MissingBytes(missing));
    }
    Family::ByteLevel { split, bytes, whole }
}
