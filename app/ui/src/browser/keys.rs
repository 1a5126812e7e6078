//! Keys.

use web_sys::KeyboardEvent;

/// Code of every key that an input method has taken.
const TAKEN: u32 = 229;

/// The key belongs to an input method: it chooses a candidate, say, or closes the list of them. Safari sends the Enter that ended
/// a composition after its end, so the code counts, too.
#[must_use]
pub fn is_composing(event: &KeyboardEvent) -> bool {
    event.is_composing() || event.key_code() == TAKEN
}
