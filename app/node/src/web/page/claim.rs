//! A lock that one tab of the browser holds as long as it lives.

use std::pin::pin;

use futures::future::{Either, select};

use super::super::js;
use super::super::locks::{self, LockRequest, WebLock};
use super::super::time::pause_for;
use super::navigator;

/// Attempts to take a lock after a reload, and the milliseconds between them: the previous page may still hold it.
const TRIES: u32 = 4;
const PAUSE: i32 = 250;
/// Milliseconds that the browser gets to answer. It only looks at a table; but a page that waits for it does not start.
const PATIENCE: i32 = 5_000;

/// What became of a claim.
pub(super) enum Claim {
    /// This tab holds the lock.
    Held(WebLock),
    /// Another tab holds it.
    Taken,
    /// This browser has no locks, denies them or does not answer.
    NoLocks,
}

/// Takes a lock if no other tab holds it.
pub(super) async fn claim(name: &str) -> Claim {
    let navigator = navigator();
    for attempt in 0..TRIES {
        if attempt > 0 {
            pause_for(PAUSE).await;
        }
        let request = pin!(locks::request(&navigator, name, LockRequest::IfAvailable));
        // A lock that is granted later is released at once: nobody receives it.
        let Either::Left((answer, _)) = select(request, pin!(pause_for(PATIENCE))).await else {
            log::warn!("the browser does not answer whether a lock is free");
            return Claim::NoLocks;
        };
        match answer {
            Ok(Some(lock)) => return Claim::Held(lock),
            Ok(None) => {}
            Err(error) => {
                log::info!("no locks here: {}", js::error_text(&error));
                return Claim::NoLocks;
            }
        }
    }
    Claim::Taken
}
