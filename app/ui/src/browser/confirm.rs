//! Asks before something is destroyed.

use super::window;

/// Asks; `false` if the answer is no, or the browser does not ask.
#[must_use]
pub fn confirm(question: &str) -> bool {
    window().confirm_with_message(question).unwrap_or(false)
}
