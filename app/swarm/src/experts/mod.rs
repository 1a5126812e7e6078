//! Asking other devices for experts (moex.txt 4): who is asked, who is asked besides, whose answer counts, and who is not
//! asked for a while. A pure state machine: [`Dispatch`] is told what has happened and what time it is, and says what to
//! send. What comes back is a vector for each token and expert, or a token's weighted sum if one device has all its experts: the bits are the
//! same whoever computed it.

mod asked;
mod checks;
mod dispatch;
mod gather;
mod hedging;
mod hints;
mod holders;
mod late;
mod latency;
mod superseded;
mod waits;

pub(crate) use dispatch::{Dispatch, DispatchContext, DispatchSettings, DispatchStep};
pub(crate) use gather::{CallShare, Gather, RouterOutput};
pub(crate) use hints::{Hinted, Hints, RoutedBatch};
pub(crate) use holders::Holders;
