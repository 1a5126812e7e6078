//! Holds answers to forms by `potluck-grammar`, which is a program of its own (`app/grammar/src/web.rs`): it is loaded when somebody
//! first asks for a form. The worker waits meanwhile, as its answer does.

use std::fmt::Display;

use js_sys::{Array, Function, Reflect, Uint8Array, Uint32Array};
use potluck_forms::{GrammarError, Rules};
use potluck_plan::AllowedTokens;
use send_wrapper::SendWrapper;
use wasm_bindgen::{JsCast, JsValue};

use super::js;

/// The worker's function that loads the program (`app/web/loaders/node_loader.js`).
const LOAD: &str = "loadForms";

/// A model's tokens, ready for forms.
pub struct Vocabulary(Handle);

/// Reads an answer token by token, and says which tokens may come next.
pub struct Matcher(Handle);

/// An object of the program. It is freed at once, not when the browser collects garbage.
struct Handle(SendWrapper<JsValue>);

impl Handle {
    fn new(object: JsValue) -> Self {
        Self(SendWrapper::new(object))
    }

    fn call(&self, name: &str, arguments: &[&JsValue]) -> Result<JsValue, GrammarError> {
        js::call(&self.0, name, arguments).map_err(|thrown| error_of(&thrown))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Ignore the error: a program that has failed has nothing left to free.
        let _failed = js::call(&self.0, "free", &[]);
    }
}

impl Vocabulary {
    /// As `potluck_grammar::Vocabulary::new`.
    ///
    /// # Errors
    /// The same, and [`GrammarError::NotLoaded`].
    pub fn new<'a>(tokens: impl IntoIterator<Item = Option<&'a [u8]>>, ends: &[u32]) -> Result<Self, GrammarError> {
        let (mut text, mut lengths) = (Vec::new(), Vec::new());
        for token in tokens {
            lengths.push(token.map_or(0, |token| token.len() as u32 + 1));
            text.extend_from_slice(token.unwrap_or_default());
        }
        let program = js::call(&js::worker(), LOAD, &[]).map_err(|error| not_loaded(js::error_text(&error)))?;
        let class = js::get(&program, "FormVocabulary").dyn_into::<Function>();
        let class = class.map_err(|_| not_loaded("it is another version"))?;
        let arguments =
            Array::of3(&Uint8Array::from(&text[..]), &Uint32Array::from(&lengths[..]), &Uint32Array::from(ends));
        let made = Reflect::construct(&class, &arguments).map_err(|thrown| error_of(&thrown))?;
        Ok(Self(Handle::new(made)))
    }

    /// As `potluck_grammar::Vocabulary::matcher`.
    ///
    /// # Errors
    /// The same.
    pub fn matcher(&self, rules: &Rules) -> Result<Matcher, GrammarError> {
        let rules = postcard::to_stdvec(rules).map_err(GrammarError::unusable)?;
        let made = self.0.call("matcher", &[&Uint8Array::from(&rules[..])])?;
        Ok(Matcher(Handle::new(made)))
    }
}

impl Matcher {
    /// As `potluck_grammar::Matcher::allowed_with`.
    ///
    /// # Errors
    /// The same.
    pub fn allowed_with(&mut self, drafts: &mut Vec<u32>) -> Result<Vec<AllowedTokens>, GrammarError> {
        let made = self.0.call("allowed", &[&Uint32Array::from(&drafts[..])])?;
        let (allowed, left) = postcard::from_bytes(&bytes_of(&made)).map_err(GrammarError::stuck)?;
        *drafts = left;
        Ok(allowed)
    }

    /// As `potluck_grammar::Matcher::push`.
    ///
    /// # Errors
    /// The same.
    pub fn push(&mut self, token: u32) -> Result<(), GrammarError> {
        self.0.call("push", &[&token.into()]).map(drop)
    }

    /// As `potluck_grammar::Matcher::is_complete`.
    pub fn is_complete(&self) -> bool {
        self.0.call("complete", &[]).is_ok_and(|complete| complete.is_truthy())
    }
}

impl Clone for Matcher {
    fn clone(&self) -> Self {
        // A program that has failed gives nothing, which fails in turn where it is used.
        Self(Handle::new(self.0.call("fork", &[]).unwrap_or_default()))
    }
}

fn bytes_of(value: &JsValue) -> Vec<u8> {
    Uint8Array::new(value).to_vec()
}

/// What the program threw: an error in its own words, or a trap.
fn error_of(thrown: &JsValue) -> GrammarError {
    let own = thrown.dyn_ref::<Uint8Array>().and_then(|bytes| postcard::from_bytes(&bytes.to_vec()).ok());
    own.unwrap_or_else(|| GrammarError::stuck(js::error_text(thrown)))
}

fn not_loaded(reason: impl Display) -> GrammarError {
    GrammarError::NotLoaded(reason.to_string())
}
