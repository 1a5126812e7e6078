//! Bugs that the simulator must find. They exist only in this crate's own test builds: everywhere else [`is_planted`] is
//! a constant `false`, and there is no way to plant one.

/// A bug on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// A worker takes frames of an older plan for frames of its active one.
    StaleEpoch,
    /// The coordinator counts a reply that it had counted already.
    ReplyTwice,
    /// A replay cuts one row too late: the first decoded row passes the kernels of the prompt.
    ReplayOffByOne,
}

#[cfg(not(test))]
pub(crate) const fn has_mutation(_: Mutation) -> bool {
    false
}

#[cfg(test)]
thread_local! {
    static MUTATION: std::cell::Cell<Option<Mutation>> = const { std::cell::Cell::new(None) };
}

#[cfg(test)]
pub(crate) fn has_mutation(mutation: Mutation) -> bool {
    MUTATION.get() == Some(mutation)
}

/// Plants a bug in every peer of this thread, or removes it.
#[cfg(test)]
pub(crate) fn set_mutation(mutation: Option<Mutation>) {
    MUTATION.set(mutation);
}
