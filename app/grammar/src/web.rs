//! This crate as a program of its own, which the node worker loads when somebody first asks for a form. Values travel as bytes of
//! postcard; an error is a [`GrammarError`] in the same form. `app/node/src/web/forms.rs` is the other end.

use potluck_forms::GrammarError;
use serde::Serialize;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{Matcher, Vocabulary};

fn bytes_of<T: Serialize>(value: &T) -> Vec<u8> {
    // Plain values always serialize.
    postcard::to_stdvec(value).unwrap_or_default()
}

fn failed(error: GrammarError) -> Vec<u8> {
    bytes_of(&error)
}

/// A model's tokens.
#[wasm_bindgen]
pub struct FormVocabulary(Vocabulary);

#[wasm_bindgen]
impl FormVocabulary {
    /// Tokens whose texts are `text`, one after the other. `lengths` has the bytes of each and one more; 0: it is no text.
    ///
    /// # Errors
    /// There are no tokens, or none that ends an answer.
    #[wasm_bindgen(constructor)]
    pub fn new(text: &[u8], lengths: &[u32], ends: &[u32]) -> Result<FormVocabulary, Vec<u8>> {
        let mut at = 0;
        let tokens = lengths.iter().map(|length| {
            let length = length.checked_sub(1)? as usize;
            let token = text.get(at..at + length);
            at += length;
            token
        });
        Vocabulary::new(tokens, ends).map(Self).map_err(failed)
    }

    /// What reads an answer with these rules.
    ///
    /// # Errors
    /// As [`Vocabulary::matcher`].
    pub fn matcher(&self, rules: &[u8]) -> Result<FormMatcher, Vec<u8>> {
        let rules = postcard::from_bytes(rules).map_err(|error| failed(GrammarError::unusable(error)))?;
        self.0.matcher(&rules).map(FormMatcher).map_err(failed)
    }
}

/// Reads an answer.
#[wasm_bindgen]
pub struct FormMatcher(Matcher);

#[wasm_bindgen]
impl FormMatcher {
    /// The tokens that may come, and the drafts that are left.
    ///
    /// # Errors
    /// As [`Matcher::allowed_with`].
    pub fn allowed(&mut self, mut drafts: Vec<u32>) -> Result<Vec<u8>, Vec<u8>> {
        let allowed = self.0.allowed_with(&mut drafts).map_err(failed)?;
        Ok(bytes_of(&(allowed, drafts)))
    }

    /// The answer goes on with this token.
    ///
    /// # Errors
    /// As [`Matcher::push`].
    pub fn push(&mut self, token: u32) -> Result<(), Vec<u8>> {
        self.0.push(token).map_err(failed)
    }

    /// The answer has its form, and nothing can follow.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.0.is_complete()
    }

    /// Another one at the same place.
    #[must_use]
    pub fn fork(&self) -> FormMatcher {
        Self(self.0.clone())
    }
}
