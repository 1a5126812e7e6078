//! Mutations of the protocol that the simulator must detect. Without the feature `testing`, [`has_mutation`] is a constant
//! `false`, and there is no way to set one.

/// A deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// A worker takes frames of an older plan for frames of its active one.
    StaleEpoch,
    /// The coordinator counts a reply twice.
    ReplyTwice,
    /// A replay cuts chunks one token too late: the first decoded token passes the prefill kernels.
    ReplayOffByOne,
    /// Frames are heard whoever sends them.
    HearAnyone,
    /// Coordinator and stages truncate recurrent states to any position, like keys and values.
    AnyBase,
    /// Any other holder checks an answer, also one that may be the same person's.
    AnyChecker,
    /// The planner does not know that the ends of the model stay on the host.
    EndsAnywhere,
    /// The first stage hands token ids on.
    TokensHandedOn,
    /// The host lets in whoever has an earlier link.
    AnyLink,
    /// The host gives out renewed keys before they are kept.
    GiveBeforeKept,
    /// A renewal gives the keys to nobody: they come back by the earlier link.
    GiveNobody,
    /// A renewal keeps whoever came by the link, also those that are away.
    KeepAway,
    /// What a stage says of passes and conversations counts as much as what the host says.
    StagesLikeHosts,
}

#[cfg(not(feature = "testing"))]
pub(crate) const fn has_mutation(_: Mutation) -> bool {
    false
}

#[cfg(feature = "testing")]
thread_local! {
    static MUTATION: std::cell::Cell<Option<Mutation>> = const { std::cell::Cell::new(None) };
}

#[cfg(feature = "testing")]
pub(crate) fn has_mutation(mutation: Mutation) -> bool {
    MUTATION.get() == Some(mutation)
}

/// Sets the mutation of every peer of this thread, or removes it.
#[cfg(feature = "testing")]
pub fn set_mutation(mutation: Option<Mutation>) {
    MUTATION.set(mutation);
}
