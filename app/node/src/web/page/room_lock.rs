//! The room that this tab hosts. No other tab of the browser may host it meanwhile: they share its keys.

use js_sys::{Array, Promise};
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::future_to_promise;

use super::super::locks;
use super::claim::{Claim, claim};
use super::{PageHalf, navigator};

/// Before a room's id in the name of its lock.
const PREFIX: &str = "potluck-room-";

impl PageHalf {
    /// Takes the lock of a room, and releases the one of another. Resolves to whether this tab may host the room.
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
        match claim(&format!("{PREFIX}{room}")).await {
            Claim::Held(lock) => {
                *self.0.room.borrow_mut() = Some((room, lock));
                true
            }
            Claim::Taken => false,
            // Then the relay decides: the tab that connects later hosts.
            Claim::NoLocks => true,
        }
    }
}
