//! A model's tokens as a grammar sees them.

use std::sync::Arc;

use llguidance::ParserFactory;
use llguidance::toktrie::{InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};

use crate::rules::grammar_of;
use crate::{GrammarError, Matcher, Rules, limits};

/// A model's tokens, ready for grammars. To make it takes a while, so it is made once.
pub struct Vocabulary {
    factory: ParserFactory,
}

/// What stands in front of tokens that are no text.
const NO_TEXT: u8 = TokTrie::SPECIAL_TOKEN_MARKER;

/// Tokens of which all may come within a text in JSON are found at the beginning, which saves looking at each of them later. More such kinds
/// would save less than they cost.
const IN_TEXTS: &str = r#"[^"\\\x00-\x1F\x7F]+"#;

/// Any of the tokens that spell a text will do: the model chooses.
struct AnySpelling(TokTrie);

impl TokenizerEnv for AnySpelling {
    fn tok_trie(&self) -> &TokTrie {
        &self.0
    }

    fn tokenize_bytes(&self, text: &[u8]) -> Vec<TokenId> {
        self.0.greedy_tokenize(text)
    }

    fn tokenize_is_canonical(&self) -> bool {
        false
    }
}

impl Vocabulary {
    /// The vocabulary whose tokens stand for these bytes; `None`: for no text. `ends` end an answer.
    ///
    /// # Errors
    /// [`GrammarError::Unusable`]: there are no tokens, or none that ends an answer.
    pub fn new<'a>(tokens: impl IntoIterator<Item = Option<&'a [u8]>>, ends: &[u32]) -> Result<Self, GrammarError> {
        let spell = |(id, bytes): (u32, Option<&[u8]>)| match bytes {
            Some(bytes) if !ends.contains(&id) && bytes.first() != Some(&NO_TEXT) => bytes.to_vec(),
            _ => [&[NO_TEXT], format!("<[{id}]>").as_bytes()].concat(),
        };
        let words: Vec<Vec<u8>> = (0..).zip(tokens).map(spell).collect();
        let size = words.len() as u32;
        let ends: Vec<u32> = ends.iter().copied().filter(|id| *id < size).collect();
        let Some(end) = ends.first() else {
            return Err(GrammarError::unusable("the model has no token that ends an answer"));
        };
        let trie = TokTrie::from(&TokRxInfo::new(size, *end), &words).with_eos_tokens(&ends);
        let env: TokEnv = Arc::new(AnySpelling(trie));
        let slices = [IN_TEXTS.to_owned()];
        let mut factory =
            ParserFactory::new(&env, InferenceCapabilities::default(), &slices).map_err(GrammarError::unusable)?;
        factory.quiet();
        *factory.limits_mut() = limits::of_parser();
        Ok(Self { factory })
    }

    /// Tokens.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.factory.tok_env().tok_trie().vocab_size() as u32
    }

    /// It never is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What reads an answer with these rules.
    ///
    /// # Errors
    /// Any [`GrammarError`] but [`GrammarError::Stuck`].
    pub fn matcher(&self, rules: &Rules) -> Result<Matcher, GrammarError> {
        let parser = self.factory.create_parser(grammar_of(rules)?).map_err(GrammarError::unusable)?;
        let mut matcher = Matcher::new(parser, self.len());
        // What is too complex often fails here.
        match matcher.allowed() {
            Ok(_) => Ok(matcher),
            Err(GrammarError::Stuck(reason)) => Err(GrammarError::Unusable(reason)),
            Err(error) => Err(error),
        }
    }
}
