//! Room for KV cache. The plans on a device share its engine's pages, and the host promises that all their conversations fit. A stage
//! may make some up, which take pages nevertheless. It cannot be told here which are the host's, so nobody is named: a conversation
//! that has to make room is computed again from the host's log, if the host knows it.
//!
//! The plan that computes comes first. What is made up in a plan that is only prepared costs it no page.

use potluck_protocol::Forward;

use super::{Active, Inactive, Worker};
use crate::event_context::EventContext;
use crate::executor::Executor;

impl Worker {
    /// Makes room for a chunk that was admitted.
    pub(super) fn make_room(&mut self, forward: &Forward, cx: &mut EventContext) {
        let epoch = forward.epoch;
        let next = self.inactive.as_mut().and_then(|inactive| inactive.executor.as_mut());
        match (self.active.as_mut().filter(|active| active.takes(epoch)), next) {
            (Some(Active { executor, .. }), next) => {
                make_room_in(executor, forward, cx);
                if let Some(next) = next {
                    let left = room(executor, cx).saturating_sub(executor.pages_with(forward));
                    // The next plan's chunks come another way, so it may not know yet what is over.
                    for live in [&forward.live[..], &[]] {
                        if next.pages() > left {
                            next.evict_all_but(live, cx);
                        }
                    }
                }
            }
            (None, Some(next)) if next.epoch() == epoch => make_room_in(next, forward, cx),
            (None, _) => {}
        }
    }

    /// The inactive plan's work fits beside what the active one holds. If not, it waits: what is over for the host goes once the active
    /// plan hears of it.
    pub(super) fn has_room_for_both(&self, cx: &EventContext) -> bool {
        let next = self.inactive.as_ref().and_then(|Inactive { executor, .. }| executor.as_ref());
        let (Some(Active { executor, .. }), Some(next)) = (&self.active, next) else { return true };
        executor.pages() + next.pages() <= room(next, cx)
    }
}

/// Pages that the conversations of a plan may take.
fn room(executor: &Executor, cx: &EventContext) -> usize {
    executor.total_pages().saturating_sub(cx.kv_cache.for_checks)
}

/// The conversations of the chunk's own plan make room for it, those first that have waited longest for a chunk.
fn make_room_in(executor: &mut Executor, forward: &Forward, cx: &mut EventContext) {
    while executor.pages_with(forward) > room(executor, cx) && executor.evict_oldest(forward.conversation, cx) {}
}
