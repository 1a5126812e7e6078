//! Bugs that the simulator must find. They exist only in this crate's own test builds: everywhere else [`is_planted`] is
//! a constant `false`, and there is no way to plant one.

/// A bug on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A worker takes frames of an older plan for frames of its active one.
    StaleEpoch,
    /// The coordinator counts a reply that it had counted already.
    ReplyTwice,
    /// A replay cuts one row too late: the first decoded row passes the kernels of the prompt.
    ReplayOffByOne,
}

#[cfg(not(test))]
pub(crate) const fn is_planted(_: Bug) -> bool {
    false
}

#[cfg(test)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

#[cfg(test)]
pub(crate) fn is_planted(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// Plants a bug in every peer of this thread, or removes it.
#[cfg(test)]
pub(crate) fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}
