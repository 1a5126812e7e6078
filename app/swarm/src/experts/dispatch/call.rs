//! One call to a holder, while it is open.

use potluck_plan::{ExpertHolder, Millis, PeerId};
use potluck_protocol::Hedging;

use super::BUSY_MILLIS;
use crate::experts::gather::Asked;
use crate::experts::holders::{CallSize, Holders};
use crate::experts::late::LateTimer;

/// What a holder was asked for, and what happens when.
pub(super) struct Call {
    pub gather: u64,
    pub holder: ExpertHolder,
    pub pairs: Vec<usize>,
    pub asks: Asked,
    pub size: CallSize,
    pub asked: Millis,
    pub timeout_millis: f64,
    /// Somebody else is asked then, instead, or the same holder again.
    pub due: Millis,
    pub state: CallState,
    /// Somebody else is asked then, too.
    pub hedge_at: Option<Millis>,
    pub late: LateTimer,
    /// 0 for the first call, then which copy it is.
    pub copy: u8,
}

/// Times of a call, counted from when it is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Delays {
    pub timeout_millis: f64,
    pub hedge_millis: Option<f64>,
    pub late_millis: Option<f64>,
}

impl Delays {
    /// The own engine is never late, and nobody is asked in its place.
    pub const OWN: Self = Self { timeout_millis: f64::INFINITY, hedge_millis: None, late_millis: None };

    /// What a holder's earlier calls suggest. What comes after the timeout does not come.
    pub fn of(peer: PeerId, size: CallSize, hedging: Hedging, holders: &Holders) -> Self {
        let timeout_millis = holders.timeout(peer, size);
        let in_time = |delay: &f64| *delay < timeout_millis;
        let hedge_millis = holders.hedge_delay(peer, size).filter(|_| hedging == Hedging::Adaptive);
        let late_millis = holders.late_after(peer, size);
        Self { timeout_millis, hedge_millis: hedge_millis.filter(in_time), late_millis: late_millis.filter(in_time) }
    }
}

impl Call {
    pub fn new(
        gather: u64,
        holder: ExpertHolder,
        (pairs, asks): (Vec<usize>, Asked),
        size: CallSize,
        copy: u8,
        delays: Delays,
        now: Millis,
    ) -> Self {
        let Delays { timeout_millis, hedge_millis, late_millis } = delays;
        Self {
            gather,
            holder,
            pairs,
            asks,
            size,
            asked: now,
            timeout_millis,
            due: Millis(now.0 + timeout_millis),
            state: CallState::Asked,
            hedge_at: hedge_millis.map(|delay| Millis(now.0 + delay)),
            late: LateTimer::start(now, late_millis),
            copy,
        }
    }

    /// It asks for this pair, too.
    pub fn has(&self, pair: usize) -> bool {
        self.pairs.binary_search(&pair).is_ok()
    }

    /// The holder has too much to do. The call stays open until somebody else answers, or it has less to do.
    pub fn set_aside(&mut self, now: Millis) {
        (self.due, self.state, self.hedge_at) = (Millis(now.0 + BUSY_MILLIS), CallState::Busy, None);
        self.late.stop();
    }

    /// It is due: its answer still counts if it comes first. Until it is due again others may fail.
    pub fn put_off(&mut self, now: Millis) {
        let millis = if self.state == CallState::Busy {
            BUSY_MILLIS
        } else {
            (self.state, self.timeout_millis) = (CallState::Overdue, 2.0 * self.timeout_millis);
            self.timeout_millis
        };
        self.due = Millis(now.0 + millis);
    }

    /// The same call is sent once more.
    pub fn ask_again(&mut self, now: Millis) {
        if self.state == CallState::Busy {
            self.state = CallState::Asked;
        }
        self.due = Millis(now.0 + self.timeout_millis);
    }
}

/// What is known of a call that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallState {
    /// The holder has time until it is due.
    Asked,
    /// It has too much to do.
    Busy,
    /// It has not answered in time.
    Overdue,
}
