//! The tab's key, unique among the tabs of a browser profile.

use potluck_panel::{KeySeed, ToNode};
use potluck_trust::IdentityKeys;

use super::claim::{Claim, claim};
use super::{PageHalf, window};

impl PageHalf {
    /// A duplicated tab has its original's key in the session storage. Each tab holds a lock named after its peer id; a tab
    /// that finds the lock taken uses a new key instead.
    pub(super) async fn claim(&self, start: ToNode) -> ToNode {
        let ToNode::Start { build, relay, device_key, mut tab_key, name, kind } = start else { return start };
        let keys = IdentityKeys { device: device_key.0.into(), tab: tab_key.0.into() };
        let peer = keys.peer();
        if self.0.identity.borrow().is_none() {
            match claim(&format!("potluck-peer-{peer}")).await {
                Claim::Held(lock) => *self.0.identity.borrow_mut() = Some(lock),
                Claim::Taken => {
                    tab_key = fresh_key().unwrap_or(tab_key);
                    log::info!("this tab is a duplicate and gets a new key");
                }
                Claim::NoLocks => {}
            }
        }
        ToNode::Start { build, relay, device_key, tab_key, name, kind }
    }
}

fn fresh_key() -> Option<KeySeed> {
    let mut bytes = [0; 32];
    window()?.crypto().ok()?.get_random_values_with_u8_array(&mut bytes).ok()?;
    Some(KeySeed(bytes))
}
