//! Reads a vocabulary from metadata.

use potluck_gguf::Metadata;
use rustc_hash::FxHashMap;

use super::bytes::bytes_of;
use super::merge::MergeTable;
use super::pieces::{Pieces, TokenKind};
use super::special::{Special, SpecialTokens};
use super::split::PreTokenizer;
use super::{Family, Tokenizer, TokenizerError, TokenizerWarning};

const TYPES: &str = "tokenizer.ggml.token_type";
const SCORES: &str = "tokenizer.ggml.scores";
const BOS: &str = "tokenizer.ggml.bos_token_id";
const EOS: &str = "tokenizer.ggml.eos_token_id";
const UNKNOWN: &str = "tokenizer.ggml.unknown_token_id";

/// SentencePiece's replacement for a space.
const SPACE: char = '▁';
/// Longest piece, in characters, that is split into pairs. Real pieces have at most 48.
const MAX_PIECE_CHARS: usize = 128;

impl Tokenizer {
    /// Reads the vocabulary of a GGUF file.
    ///
    /// # Errors
    /// An unsupported tokenizer, or keys that are missing or inconsistent.
    pub fn from_metadata(metadata: &Metadata) -> Result<Self, TokenizerError> {
        let model = metadata.str("tokenizer.ggml.model")?;
        let tokens = metadata.strings("tokenizer.ggml.tokens")?;
        if tokens.is_empty() || tokens.len() > MAX_TOKENS {
            return Err(TokenizerError::BadSize(tokens.len()));
        }
        let kinds = token_kinds(metadata, tokens.len())?;
        let special = special_tokens(tokens, &kinds);
        let add_bos = metadata.optional("tokenizer.ggml.add_bos_token", Metadata::bool)?;
        let bos = token_id(metadata, BOS, tokens.len())?;
        let eos = token_id(metadata, EOS, tokens.len())?;
        let mut warnings = Vec::new();
        match model {
            "gpt2" => {
                let name = metadata.optional("tokenizer.ggml.pre", Metadata::str)?;
                let merges = metadata.strings("tokenizer.ggml.merges")?;
                let (split, whole_words) = pre_tokenizer(name, &mut warnings);
                Ok(Self {
                    pieces: byte_level_pieces(tokens, &kinds),
                    merges: byte_level_merges(tokens, merges, &mut warnings),
                    family: byte_level_family(tokens, &kinds, split, whole_words, &mut warnings),
                    special,
                    bos,
                    eos,
                    add_bos: add_bos.unwrap_or(whole_words),
                    warnings,
                })
            }
            "llama" => {
                let scores = metadata.f32s(SCORES)?;
                check_length(SCORES, scores.len(), tokens.len())?;
                let space_prefix = metadata.optional("tokenizer.ggml.add_space_prefix", Metadata::bool)?;
                // Files without the keys use Llama 2's ids.
                let or_default = |id: Option<u32>, default: u32| id.or((tokens.len() > 2).then_some(default));
                let unknown = or_default(token_id(metadata, UNKNOWN, tokens.len())?, 0);
                let chars = single_chars(tokens, &kinds);
                Ok(Self {
                    pieces: sentence_pieces(tokens, &kinds),
                    merges: sentence_merges(tokens, &kinds, scores),
                    family: Family::SentencePiece {
                        space_prefix: space_prefix.unwrap_or(true),
                        chars,
                        bytes: byte_tokens(tokens, &kinds),
                        unknown,
                    },
                    special,
                    bos: or_default(bos, 1),
                    eos: or_default(eos, 2),
                    add_bos: add_bos.unwrap_or(true),
                    warnings,
                })
            }
            other => Err(TokenizerError::UnsupportedModel(other.to_string())),
        }
    }
}

/// Larger ids serve as marks during merging.
const MAX_TOKENS: usize = 1 << 24;

fn check_length(key: &'static str, found: usize, expected: usize) -> Result<(), TokenizerError> {
    if found == expected { Ok(()) } else { Err(TokenizerError::LengthMismatch { key, found, expected }) }
}

fn token_id(metadata: &Metadata, key: &'static str, tokens: usize) -> Result<Option<u32>, TokenizerError> {
    match metadata.optional(key, Metadata::u32)? {
        // Some converters write "none" as all ones.
        None | Some(u32::MAX) => Ok(None),
        Some(id) if (id as usize) < tokens => Ok(Some(id)),
        Some(id) => Err(TokenizerError::IdOutOfRange { key, id, tokens }),
    }
}

fn token_kinds(metadata: &Metadata, tokens: usize) -> Result<Vec<TokenKind>, TokenizerError> {
    let Some(numbers) = metadata.optional(TYPES, Metadata::u32s)? else {
        return Ok(vec![TokenKind::Normal; tokens]);
    };
    check_length(TYPES, numbers.len(), tokens)?;
    Ok(numbers.into_iter().map(TokenKind::from_number).collect())
}

fn special_tokens(tokens: &[String], kinds: &[TokenKind]) -> SpecialTokens {
    let special = |(id, (token, kind)): (u32, (&String, &TokenKind))| match kind {
        TokenKind::Control | TokenKind::Unknown => Some(Special { text: token.as_str().into(), is_text: false, id }),
        TokenKind::UserDefined => Some(Special { text: token.replace(SPACE, " ").into(), is_text: true, id }),
        TokenKind::Normal | TokenKind::Unused | TokenKind::Byte => None,
    };
    SpecialTokens::new((0..).zip(tokens.iter().zip(kinds)).filter_map(special).collect())
}

fn pre_tokenizer(name: Option<&str>, warnings: &mut Vec<TokenizerWarning>) -> (PreTokenizer, bool) {
    let Some(name) = name else {
        warnings.push(TokenizerWarning::NoPreTokenizer);
        return (PreTokenizer::Default, false);
    };
    let split = PreTokenizer::from_name(name).unwrap_or_else(|| {
        warnings.push(TokenizerWarning::UnknownPreTokenizer(name.to_string()));
        PreTokenizer::Modern { digits: 3 }
    });
    (split, PreTokenizer::takes_whole_words(name))
}

fn byte_level_pieces(tokens: &[String], kinds: &[TokenKind]) -> Pieces {
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

fn byte_level_merges(tokens: &[String], merges: &[String], warnings: &mut Vec<TokenizerWarning>) -> MergeTable {
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

fn byte_level_family(
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

/// The byte of a token like `<0x0A>`.
fn byte_token(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() == 2 { u8::from_str_radix(digits, 16).ok() } else { None }
}

fn byte_tokens(tokens: &[String], kinds: &[TokenKind]) -> Box<[Option<u32>; 256]> {
    let mut bytes = Box::new([None; 256]);
    for (id, (token, kind)) in (0..).zip(tokens.iter().zip(kinds)) {
        if let (TokenKind::Byte, Some(byte)) = (kind, byte_token(token)) {
            bytes[usize::from(byte)] = Some(id);
        }
    }
    bytes
}

fn sentence_pieces(tokens: &[String], kinds: &[TokenKind]) -> Pieces {
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

fn single_chars(tokens: &[String], kinds: &[TokenKind]) -> FxHashMap<char, u32> {
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
fn sentence_merges(tokens: &[String], kinds: &[TokenKind], scores: &[f32]) -> MergeTable {
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
