//! Searches in slices: what a host does besides answering must not hold up a question for long.

/// What a step of a search came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Step<S, T> {
    /// The search goes on with this.
    GoesOn(S),
    /// It has ended, and found this.
    Ends(T),
}

/// All steps of a search, one after the other.
pub(crate) fn run<S, T>(mut search: S, step: impl Fn(S) -> Step<S, T>) -> T {
    loop {
        match step(search) {
            Step::GoesOn(next) => search = next,
            Step::Ends(found) => return found,
        }
    }
}
