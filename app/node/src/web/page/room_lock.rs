//! The room that this tab hosts. No other tab of the browser may host it meanwhile: they share its keys.

use js_sys::{Array, Promise};
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::future_to_promise;

use super::super::js;
use super::super::locks::{self, LockRequest};
use super::identity::{CLAIMS, pause_for};
use super::{PageHalf, navigator};

/// Before a room's id in the name of its lock.
const PREFIX: &str = "potluck-room-";

impl PageHalf {
    /// Takes the lock of a room, and releases the one of another. Resolves to whether this tab may host the room. After a
    /// reload the previous page may hold the lock for a moment.
    pub fn hold_room(&self, room: String) -> Promise {
        let half = self.clone();
        future_to_promise(async move { Ok(half.take_room(room).await.into()) })
    }

    /// This tab hosts no more.
    pub fn release_room(&self) {
        self.0.room.borrow_mut().take();
    }

    /// Resolves to the ids of the rooms that tabs of this browser host.
    pub fn held_rooms(&self) -> Promise {
        future_to_promise(async {
            let held = locks::held(&navigator()).await.unwrap_or_default();
            let rooms = held.iter().filter_map(|name| name.strip_prefix(PREFIX)).map(JsValue::from_str);
            Ok(rooms.collect::<Array>().into())
        })
    }

    async fn take_room(&self, room: String) -> bool {
        if self.0.room.borrow().as_ref().is_some_and(|(held, _)| *held == room) {
            return true;
        }
        self.release_room();
        let (tries, pause) = CLAIMS;
        for attempt in 0..tries {
            match locks::request(&navigator(), &format!("{PREFIX}{room}"), LockRequest::IfAvailable).await {
                Ok(Some(lock)) => {
                    *self.0.room.borrow_mut() = Some((room, lock));
                    return true;
                }
                Ok(None) if attempt + 1 < tries => pause_for(pause).await,
                Ok(None) => return false,
                Err(error) => {
                    // Then the relay decides: the tab that connects later hosts.
                    log::info!("no locks here: {}", js::error_text(&error));
                    return true;
                }
            }
        }
        false
    }
}
