//! The tab's key, unique among the tabs of a browser profile.

use js_sys::Promise;
use potluck_panel::{KeySeed, ToNode};
use potluck_trust::IdentityKeys;
use wasm_bindgen::JsValue;

use super::super::js;
use super::super::locks::{self, LockRequest};
use super::{PageHalf, navigator, window};

/// Attempts to take a lock after a reload, and the milliseconds between them: the previous page may still hold it.
pub(super) const CLAIMS: (u32, i32) = (4, 250);

impl PageHalf {
    /// A duplicated tab has its original's key in the session storage. Each tab holds a lock named after its peer id; a tab
    /// that finds the lock taken uses a new key instead.
    pub(super) async fn claim(&self, start: ToNode) -> ToNode {
        let ToNode::Start { build, relay, device_key, mut tab_key, name, kind } = start else { return start };
        let keys = IdentityKeys { device: device_key.0.into(), tab: tab_key.0.into() };
        let peer = keys.peer();
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
                        tab_key = fresh_key().unwrap_or(tab_key);
                        log::info!("this tab is a duplicate and gets a new key");
                        break;
                    }
                    Err(error) => {
                        log::info!("no locks here: {}", js::error_text(&error));
                        break;
                    }
                }
            }
        }
        ToNode::Start { build, relay, device_key, tab_key, name, kind }
    }
}

pub(super) async fn pause_for(millis: i32) {
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

fn fresh_key() -> Option<KeySeed> {
    let mut bytes = [0; 32];
    window()?.crypto().ok()?.get_random_values_with_u8_array(&mut bytes).ok()?;
    Some(KeySeed(bytes))
}
