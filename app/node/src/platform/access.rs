//! Who this device is to the servers of links.

use std::cell::RefCell;
use std::rc::Rc;

use potluck_panel::{AccessToken, AccessTokens};

/// This device's access tokens. All copies are one.
#[derive(Clone, Debug, Default)]
pub struct Access(Rc<RefCell<AccessTokens>>);

impl Access {
    /// These tokens.
    pub fn new(tokens: AccessTokens) -> Self {
        Self(Rc::new(RefCell::new(tokens)))
    }

    /// Other tokens instead; requests from now on have them.
    pub fn replace(&self, tokens: AccessTokens) {
        *self.0.borrow_mut() = tokens;
    }

    /// The token for requests to `url`.
    pub fn token(&self, url: &str) -> Option<AccessToken> {
        self.0.borrow().of(url).cloned()
    }
}
