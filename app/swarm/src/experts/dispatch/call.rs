//! One call to a holder, while it is open.

use potluck_plan::{ExpertHolder, Millis};

use crate::experts::holders::Size;
use crate::experts::late::LateTimer;

/// What a holder was asked for, and what happens when.
pub(super) struct Call {
    pub gather: u64,
    pub holder: ExpertHolder,
    pub pairs: Vec<usize>,
    pub size: Size,
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
