//! Reads a vocabulary from metadata.

use std::borrow::Cow;

use potluck_gguf::{Array, GgufError, Metadata, Value};

use crate::stop::{END_KEYS, END_NAMES};

use super::charsmap::Charsmap;
use super::pieces::TokenKind;
use super::sentence::SPACE;
use super::special::{Special, SpecialTokens};
use super::split::PreTokenizer;
use super::unigram::Unigram;
use super::{Family, Tokenizer, TokenizerError, TokenizerWarning, byte_level, rules, sentence};

const MODEL: &str = "tokenizer.ggml.model";
const PRE: &str = "tokenizer.ggml.pre";
const TYPES: &str = "tokenizer.ggml.token_type";
const SCORES: &str = "tokenizer.ggml.scores";
const MERGES: &str = "tokenizer.ggml.merges";
const BOS: &str = "tokenizer.ggml.bos_token_id";
const EOS: &str = "tokenizer.ggml.eos_token_id";
const UNKNOWN: &str = "tokenizer.ggml.unknown_token_id";
const SPACE_PREFIX: &str = "tokenizer.ggml.add_space_prefix";
const MERGE_SPACES: &str = "tokenizer.ggml.remove_extra_whitespaces";
const CHARSMAP: &str = "tokenizer.ggml.precompiled_charsmap";

impl Tokenizer {
    /// Reads the vocabulary of a GGUF file.
    ///
    /// # Errors
    /// An unsupported tokenizer, or keys that are missing or inconsistent.
    pub fn from_metadata(metadata: &Metadata) -> Result<Self, TokenizerError> {
        let model = metadata.str(MODEL)?;
        let tokens = metadata.strings("tokenizer.ggml.tokens")?;
        if tokens.is_empty() || tokens.len() > MAX_TOKENS {
            return Err(TokenizerError::BadSize(tokens.len()));
        }
        let mut kinds = token_kinds(metadata, model, tokens)?;
        correct_kinds(metadata, tokens, &mut kinds)?;
        let file = File { metadata, tokens, kinds };
        let pre = metadata.optional(PRE, Metadata::str)?;
        let mut tokenizer = match model {
            "gemma4" => file.raw_text(true)?,
            "gpt2" if pre.is_some_and(|name| rules::RAW_TEXT.contains(&name)) => {
                file.raw_text(pre == Some("gemma4"))?
            }
            "gpt2" => file.byte_level(pre)?,
            "llama" => file.sentence_piece()?,
            "t5" => file.unigram()?,
            other => return Err(TokenizerError::UnsupportedModel(other.to_string())),
        };
        if let Some(add_bos) = metadata.optional("tokenizer.ggml.add_bos_token", Metadata::bool)? {
            // Gemma 4 needs the token, and some of its files deny it.
            tokenizer.add_bos = add_bos || model == "gemma4";
        }
        tokenizer.warnings.extend(absent_ids(metadata, tokens.len()));
        Ok(tokenizer)
    }
}

/// What all families read.
struct File<'a> {
    metadata: &'a Metadata,
    tokens: &'a [String],
    kinds: Vec<TokenKind>,
}

impl File<'_> {
    fn byte_level(&self, pre: Option<&str>) -> Result<Tokenizer, TokenizerError> {
        let mut warnings = Vec::new();
        let merges = self.metadata.strings(MERGES)?;
        let (split, whole_words, add_bos) = pre_tokenizer(pre, &mut warnings)?;
        Ok(Tokenizer {
            pieces: byte_level::pieces(self.tokens, &self.kinds),
            merges: byte_level::merges(self.tokens, merges, &mut warnings),
            family: byte_level::family(self.tokens, &self.kinds, split, whole_words, &mut warnings),
            special: special_tokens(self.tokens, &self.kinds, true),
            bos: self.id(BOS)?,
            eos: self.id(EOS)?,
            add_bos,
            special_takes_space: false,
            warnings,
        })
    }

    fn raw_text(&self, add_bos: bool) -> Result<Tokenizer, TokenizerError> {
        let mut warnings = Vec::new();
        let merges = self.metadata.strings(MERGES)?;
        Ok(Tokenizer {
            pieces: sentence::pieces(self.tokens, &self.kinds),
            merges: byte_level::merges(self.tokens, merges, &mut warnings),
            family: Family::RawText {
                chars: sentence::single_chars(self.tokens, &self.kinds),
                bytes: sentence::byte_tokens(self.tokens, &self.kinds),
                newlines: sentence::newline_runs(self.tokens),
            },
            special: special_tokens(self.tokens, &self.kinds, false),
            bos: self.id(BOS)?,
            eos: self.id(EOS)?,
            add_bos,
            special_takes_space: false,
            warnings,
        })
    }

    fn sentence_piece(&self) -> Result<Tokenizer, TokenizerError> {
        let scores = self.scores()?;
        let space_prefix = self.metadata.optional(SPACE_PREFIX, Metadata::bool)?;
        // Files without the keys use Llama 2's ids.
        let or_default = |id: Option<u32>, default: u32| id.or((self.tokens.len() > 2).then_some(default));
        Ok(Tokenizer {
            pieces: sentence::pieces(self.tokens, &self.kinds),
            merges: sentence::merges(self.tokens, &self.kinds, &scores),
            family: Family::SentencePiece {
                space_prefix: space_prefix.unwrap_or(true),
                chars: sentence::single_chars(self.tokens, &self.kinds),
                bytes: sentence::byte_tokens(self.tokens, &self.kinds),
                unknown: self.of_text(or_default(self.id(UNKNOWN)?, 0)),
            },
            special: special_tokens(self.tokens, &self.kinds, false),
            bos: or_default(self.id(BOS)?, 1),
            eos: or_default(self.id(EOS)?, 2),
            add_bos: true,
            special_takes_space: takes_space(self.metadata)?,
            warnings: Vec::new(),
        })
    }

    fn unigram(&self) -> Result<Tokenizer, TokenizerError> {
        let scores = self.scores()?;
        let space_prefix = self.metadata.optional(SPACE_PREFIX, Metadata::bool)?.unwrap_or(false);
        let merge_spaces = self.metadata.optional(MERGE_SPACES, Metadata::bool)?.unwrap_or(false);
        let charsmap = match self.metadata.get(CHARSMAP) {
            Some(Value::Array(Array::U8(bytes))) => Charsmap::new(bytes),
            Some(Value::Array(Array::I8(bytes))) => {
                Charsmap::new(&bytes.iter().map(|byte| byte.cast_unsigned()).collect::<Vec<u8>>())
            }
            _ => Charsmap::default(),
        };
        let pieces = sentence::pieces(self.tokens, &self.kinds);
        let unknown = self.of_text(self.id(UNKNOWN)?.or((self.tokens.len() > 2).then_some(2)));
        let unigram = Unigram::new(&pieces, &scores, unknown, charsmap, space_prefix, merge_spaces);
        Ok(Tokenizer {
            pieces,
            merges: Default::default(),
            family: Family::Unigram(unigram),
            special: special_tokens(self.tokens, &self.kinds, false),
            bos: self.id(BOS)?,
            eos: self.id(EOS)?.or((self.tokens.len() > 1).then_some(1)),
            add_bos: false,
            special_takes_space: false,
            warnings: Vec::new(),
        })
    }

    /// Text must not become a control token, also where it is unknown.
    fn of_text(&self, unknown: Option<u32>) -> Option<u32> {
        unknown.filter(|&id| self.kinds[id as usize] != TokenKind::Control)
    }

    /// One score per token; all are equal in a file without them, as everywhere.
    fn scores(&self) -> Result<Cow<'_, [f32]>, TokenizerError> {
        let count = self.tokens.len();
        let scores = self.metadata.optional(SCORES, Metadata::f32s)?.unwrap_or_else(|| vec![0.0; count].into());
        check_length(SCORES, scores.len(), count)?;
        Ok(match scores {
            Cow::Borrowed(scores) => Cow::Borrowed(&scores[..count]),
            Cow::Owned(mut scores) => {
                scores.truncate(count);
                Cow::Owned(scores)
            }
        })
    }

    fn id(&self, key: &'static str) -> Result<Option<u32>, TokenizerError> {
        token_id(self.metadata, key, self.tokens.len())
    }
}

/// Larger ids serve as marks during merging.
const MAX_TOKENS: usize = 1 << 24;

/// Entries beyond the tokens are padding.
fn check_length(key: &'static str, found: usize, expected: usize) -> Result<(), TokenizerError> {
    if found >= expected { Ok(()) } else { Err(TokenizerError::LengthMismatch { key, found, expected }) }
}

/// The ids that a key names: one, or several where a file lists them. Ids that no vocabulary has, such as -1, mean "none".
///
/// # Errors
/// The key has another type.
pub(crate) fn ids(metadata: &Metadata, key: &str) -> Result<Vec<u32>, GgufError> {
    let numbers = match metadata.get(key) {
        None => return Ok(Vec::new()),
        Some(Value::Array(array)) => array.to_i64s(),
        Some(Value::I8(id)) => Some(vec![(*id).into()]),
        Some(Value::I16(id)) => Some(vec![(*id).into()]),
        Some(Value::I32(id)) => Some(vec![(*id).into()]),
        Some(Value::I64(id)) => Some(vec![*id]),
        // All ones, in any width.
        Some(Value::U64(u64::MAX)) => Some(Vec::new()),
        Some(_) => None,
    };
    let numbers = numbers.map_or_else(|| metadata.u64(key).map(|id| vec![id as i64]), Ok)?;
    Ok(numbers.into_iter().filter_map(|id| u32::try_from(id).ok()).filter(|id| *id != u32::MAX).collect())
}

/// The first id that a key names; `None` if it is none of the vocabulary, as all other programs read it.
fn token_id(metadata: &Metadata, key: &str, tokens: usize) -> Result<Option<u32>, TokenizerError> {
    Ok(ids(metadata, key)?.first().copied().filter(|id| (*id as usize) < tokens))
}

/// The special tokens that a file names and does not have.
fn absent_ids(metadata: &Metadata, tokens: usize) -> impl Iterator<Item = TokenizerWarning> {
    [BOS, EOS].into_iter().filter_map(move |key| {
        let id = *ids(metadata, key).ok()?.first()?;
        (id as usize >= tokens).then_some(TokenizerWarning::AbsentToken { key, id, tokens })
    })
}

fn token_kinds(metadata: &Metadata, model: &str, tokens: &[String]) -> Result<Vec<TokenKind>, TokenizerError> {
    let numbers = metadata.optional(TYPES, |metadata, key| metadata.i64s(key))?;
    let Some(numbers) = numbers else {
        // Bytes are known by their names.
        let is_byte = |token: &String| model != "gpt2" && sentence::byte_token(token).is_some();
        return Ok(tokens
            .iter()
            .map(|token| if is_byte(token) { TokenKind::Byte } else { TokenKind::Normal })
            .collect());
    };
    check_length(TYPES, numbers.len(), tokens.len())?;
    Ok(numbers.into_iter().take(tokens.len()).map(TokenKind::from_number).collect())
}

/// Token names that begin a turn and do not occur in people's text. Some exporters mark them and the ends of turns as ordinary
/// text: prompts would then contain them in pieces, and no answer would end.
const TURN_NAMES: [&str; 4] = ["<|im_start|>", "<start_of_turn>", "<|start_header_id|>", "<|end_header_id|>"];

/// What ends an answer or begins a text is a control token, also where a file calls it text.
fn correct_kinds(metadata: &Metadata, tokens: &[String], kinds: &mut [TokenKind]) -> Result<(), TokenizerError> {
    for key in [BOS, EOS].into_iter().chain(END_KEYS) {
        for id in ids(metadata, key)? {
            if let Some(kind @ (TokenKind::Normal | TokenKind::UserDefined)) = kinds.get_mut(id as usize) {
                *kind = TokenKind::Control;
            }
        }
    }
    for (token, kind) in tokens.iter().zip(kinds) {
        let token = token.as_str();
        let is_end = END_NAMES.contains(&token);
        let is_mark =
            TURN_NAMES.contains(&token) || (is_end && (token.starts_with("<|") || token.starts_with("<end_of_")));
        if (*kind == TokenKind::UserDefined && is_end) || (*kind == TokenKind::Normal && is_mark) {
            *kind = TokenKind::Control;
        }
    }
    Ok(())
}

fn special_tokens(tokens: &[String], kinds: &[TokenKind], byte_level: bool) -> SpecialTokens {
    let special = |(id, (token, kind)): (u32, (&String, &TokenKind))| {
        let (text, is_text) = match kind {
            TokenKind::Control | TokenKind::Unknown => (token.as_str().into(), false),
            TokenKind::UserDefined if byte_level => (token.as_str().into(), true),
            TokenKind::UserDefined => (token.replace(SPACE, " ").into(), true),
            TokenKind::Normal | TokenKind::Unused | TokenKind::Byte => return None,
        };
        Some(Special { text, is_text, id })
    };
    SpecialTokens::new((0..).zip(tokens.iter().zip(kinds)).filter_map(special).collect())
}

/// Phi-3's tokens take the white space behind them, except these. Files do not say so; llama.cpp goes by the name too.
fn takes_space(metadata: &Metadata) -> Result<bool, TokenizerError> {
    let name = metadata.optional("general.name", Metadata::str)?.unwrap_or_default().to_lowercase();
    Ok(name.contains("phi-3") || name.contains("phi3"))
}

/// The way to split text, whether words that are tokens are taken whole, and whether texts begin with a token by default.
fn pre_tokenizer(
    name: Option<&str>,
    warnings: &mut Vec<TokenizerWarning>,
) -> Result<(PreTokenizer, bool, bool), TokenizerError> {
    let Some(name) = name else {
        warnings.push(TokenizerWarning::NoPreTokenizer);
        return Ok((PreTokenizer::unnamed(), false, false));
    };
    let rule = rules::find(name).ok_or_else(|| TokenizerError::UnknownPreTokenizer(name.to_string()))?;
    Ok((PreTokenizer::new(rule), rule.whole_words, rule.add_bos))
}
