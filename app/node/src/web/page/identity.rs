//! The tab's peer id, unique among the tabs of a browser profile.

use js_sys::Promise;
use potluck_panel::{PeerId, ToNode};
use wasm_bindgen::JsValue;

use super::super::js;
use super::super::locks::{self, LockRequest};
use super::{PageHalf, navigator, window};

/// Attempts to claim the tab's id after a reload, and the milliseconds between them: the previous page may still hold it.
const CLAIMS: (u32, i32) = (4, 250);

impl PageHalf {
    /// A duplicated tab has its original's id in the session storage. Each tab holds a lock named after its id; a tab that
    /// finds the lock taken uses a new id instead.
    pub(super) async fn claim(&self, start: ToNode) -> ToNode {
        let ToNode::Start { build, relay, mut peer, name, kind } = start else { return start };
        if self.0.identity.borrow().is_none() {
            let (tries, pause) = CLAIMS;
            for attempt in 0..tries {
                match locks::request(&navigator(), &format!("potluck-peer-{peer}"), LockRequest::IfAvailable).await {
                    Ok(Some(lock)) => {
                        *self.0.identity.borrow_mut() = Some(lock);
                        break;
                    }
                    Ok(None) if attempt + 1 < tries => pause_for(pause).await,
                    Ok(None) => {
                        peer = fresh_peer().unwrap_or(peer);
                        log::info!("this tab is a duplicate and gets a new id");
                        break;
                    }
                    Err(error) => {
                        log::info!("no locks here: {}", js::error_text(&error));
                        break;
                    }
                }
            }
        }
        ToNode::Start { build, relay, peer, name, kind }
    }
}

async fn pause_for(millis: i32) {
    let promise = Promise::new(&mut |resolve, _| {
        let waiting = window()
            .ok_or(JsValue::UNDEFINED)
            .and_then(|window| window.set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, millis));
        if waiting.is_err() {
            log::warn!("no timers here");
        }
    });
    // A timer is never rejected.
    let _ = wasm_bindgen_futures::JsFuture::from(promise).await;
}

fn fresh_peer() -> Option<PeerId> {
    let mut bytes = [0; 16];
    window()?.crypto().ok()?.get_random_values_with_u8_array(&mut bytes).ok()?;
    Some(PeerId(bytes))
}
