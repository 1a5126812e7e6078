//! Limits what this node accepts from one member: how many frames per route may wait for the driver's loop, and how many messages
//! a host opens from a peer that it has not let in. A sender that exceeds a limit loses its session or its seat; nobody else is affected.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use potluck_plan::Millis;
use potluck_trust::Route;

/// Most frames of one route that may wait. A peer that follows the protocol has a few hundred in flight: 64 expert calls, as many
/// pieces of a file, eight answers. The loop handles this many frames within a tenth of a second.
const MAX_FRAMES: usize = 4_096;
/// Most bytes of one route's frames that may wait: as many as a sender keeps for one receiver. One longer frame may wait alone.
const MAX_BYTES: usize = 64 << 20;

/// How many messages are opened from a peer that is not let in: its handshake, a hello, a heartbeat every second, and what a returning member
/// sends before the host has handled its hello.
const MESSAGES: Budget = Budget { burst: 128.0, per_second: 16.0 };
/// The bytes of these messages. The burst is the longest message, because a returning member may send a chunk of a prompt.
const BYTES: Budget = Budget { burst: (16 << 20) as f64, per_second: (128 << 10) as f64 };
/// This many messages above its budget are a flood; the relay is then asked to evict the sender.
const FLOOD: u32 = 256;
/// How often a member may overrun its queue. Each time thousands of its frames wait, so no honest member does it twice.
const MAX_OVERRUNS: u32 = 4;

#[derive(Clone, Copy)]
struct Budget {
    burst: f64,
    per_second: f64,
}

/// What is left of a budget.
struct Left {
    budget: Budget,
    left: f64,
}

impl Left {
    fn full(budget: Budget) -> Self {
        Self { budget, left: budget.burst }
    }

    fn refill(&mut self, seconds: f64) {
        self.left = (self.left + seconds * self.budget.per_second).min(self.budget.burst);
    }
}

/// The frames and bytes of one route that wait.
#[derive(Default)]
struct Queued {
    frames: Cell<usize>,
    bytes: Cell<usize>,
}

/// A frame's place among those that wait; free again when it is dropped.
pub struct Ticket {
    queued: Rc<Queued>,
    bytes: usize,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.queued.frames.update(|frames| frames.saturating_sub(1));
        self.queued.bytes.update(|bytes| bytes.saturating_sub(self.bytes));
    }
}

/// What a peer that is not let in may send.
struct Stranger {
    messages: Left,
    bytes: Left,
    at: Millis,
    dropped: u32,
}

#[derive(Default)]
struct Taken {
    queued: Rc<Queued>,
    stranger: Option<Stranger>,
    let_in: bool,
    overruns: u32,
}

/// What happens to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Take,
    Drop,
    /// Dropped, and the relay is to evict the sender. Returned once.
    EndFlood,
}

/// What the node has accepted from each route.
#[derive(Default)]
pub(super) struct Intake {
    routes: BTreeMap<Route, Taken>,
}

impl Intake {
    /// On the host: a peer is in the room. Until it is let in, it has a budget, for its handshakes and whatever else it sends. A
    /// connection that was let in stays let in, as at the relay.
    pub fn stranger(&mut self, route: Route, now: Millis) {
        let taken = self.routes.entry(route).or_default();
        if taken.let_in {
            return;
        }
        taken.stranger.get_or_insert_with(|| Stranger {
            messages: Left::full(MESSAGES),
            bytes: Left::full(BYTES),
            at: now,
            dropped: 0,
        });
    }

    /// The host let it in.
    pub fn let_in(&mut self, route: Route) {
        if let Some(taken) = self.routes.get_mut(&route) {
            (taken.stranger, taken.let_in) = (None, true);
        }
    }

    /// On the host: it is not let in.
    pub fn is_stranger(&self, route: Route) -> bool {
        self.routes.get(&route).is_none_or(|taken| !taken.let_in)
    }

    /// Decides whether to open a message that arrived.
    pub fn arrived(&mut self, route: Route, bytes: usize, now: Millis) -> Verdict {
        let stranger = self.routes.get_mut(&route).and_then(|taken| taken.stranger.as_mut());
        let Some(stranger) = stranger else { return Verdict::Take };
        let seconds = (now.0 - stranger.at.0).max(0.0) / 1e3;
        stranger.at = now;
        stranger.messages.refill(seconds);
        stranger.bytes.refill(seconds);
        if stranger.messages.left >= 1.0 && stranger.bytes.left >= bytes as f64 {
            stranger.messages.left -= 1.0;
            stranger.bytes.left -= bytes as f64;
            return Verdict::Take;
        }
        stranger.dropped += 1;
        if stranger.dropped == FLOOD { Verdict::EndFlood } else { Verdict::Drop }
    }

    /// A place for a frame.
    ///
    /// # Errors
    /// Too much of the route waits already: never [`Verdict::Take`].
    pub fn queue(&mut self, route: Route, bytes: usize) -> Result<Ticket, Verdict> {
        let taken = self.routes.entry(route).or_default();
        let (frames, waiting) = (taken.queued.frames.get(), taken.queued.bytes.get());
        if frames >= MAX_FRAMES || (frames > 0 && waiting + bytes > MAX_BYTES) {
            taken.overruns += 1;
            return Err(if taken.overruns == MAX_OVERRUNS { Verdict::EndFlood } else { Verdict::Drop });
        }
        taken.queued.frames.set(frames + 1);
        taken.queued.bytes.set(waiting + bytes);
        Ok(Ticket { queued: taken.queued.clone(), bytes })
    }

    /// A route is gone.
    pub fn left(&mut self, route: Route) {
        self.routes.remove(&route);
    }

    /// All are.
    pub fn clear(&mut self) {
        self.routes.clear();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    const LOUD: Route = Route(1);
    const QUIET: Route = Route(2);
    const NOW: Millis = Millis(0.0);

    #[test]
    fn what_waits_is_bounded_for_each_route_and_free_again_once_it_is_handled() {
        let mut intake = Intake::default();
        let mut waiting: Vec<Ticket> = (0..MAX_FRAMES).map(|_| intake.queue(LOUD, 10).unwrap()).collect();
        assert_eq!(intake.queue(LOUD, 10).err(), Some(Verdict::Drop));
        assert!(intake.queue(QUIET, 10).is_ok(), "another one does not notice");
        waiting.pop();
        waiting.push(intake.queue(LOUD, 10).unwrap());
        for overrun in 2..10 {
            let expected = if overrun == MAX_OVERRUNS { Verdict::EndFlood } else { Verdict::Drop };
            assert_eq!(intake.queue(LOUD, 10).err(), Some(expected), "overrun {overrun}");
        }
    }

    #[test]
    fn bytes_that_wait_are_bounded_and_a_long_frame_waits_alone() {
        let mut intake = Intake::default();
        let long = intake.queue(LOUD, 2 * MAX_BYTES).unwrap();
        assert!(intake.queue(LOUD, 1).is_err());
        drop(long);
        let _half = intake.queue(LOUD, MAX_BYTES / 2).unwrap();
        let _other_half = intake.queue(LOUD, MAX_BYTES / 2).unwrap();
        assert!(intake.queue(LOUD, 1).is_err());
    }

    #[test]
    fn little_is_opened_of_somebody_who_is_not_let_in() {
        let mut intake = Intake::default();
        intake.stranger(LOUD, NOW);
        let opened =
            |intake: &mut Intake, now| (0..1_000).filter(|_| intake.arrived(LOUD, 100, now) == Verdict::Take).count();
        assert_eq!(opened(&mut intake, NOW), 128);
        // It is met once more.
        intake.stranger(LOUD, NOW);
        assert_eq!(opened(&mut intake, Millis(1_000.0)), 16);
        assert_eq!(intake.arrived(QUIET, 100, NOW), Verdict::Take);
        intake.let_in(LOUD);
        intake.stranger(LOUD, NOW);
        assert_eq!(opened(&mut intake, NOW), 1_000);
    }

    #[test]
    fn a_strangers_bytes_are_counted_and_its_flood_is_ended_once() {
        let mut intake = Intake::default();
        intake.stranger(LOUD, NOW);
        assert_eq!(intake.arrived(LOUD, 17 << 20, NOW), Verdict::Drop, "more than its burst");
        let verdicts: Vec<Verdict> = (0..1_000).map(|_| intake.arrived(LOUD, 1 << 20, NOW)).collect();
        assert_eq!(verdicts[0], Verdict::Take);
        assert_eq!(verdicts.iter().filter(|verdict| **verdict == Verdict::EndFlood).count(), 1);
    }
}
