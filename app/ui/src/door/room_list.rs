//! The open rooms on this relay, polled every few seconds while the door is shown.

use leptos::prelude::*;

use crate::relay::{self, Room};

/// Polling interval, milliseconds.
const EVERY: u32 = 4_000;

/// The open rooms: `None` until the first answer. A failed request keeps the previous answer.
pub fn watch_rooms() -> RwSignal<Option<Vec<Room>>> {
    let rooms = RwSignal::new(None);
    leptos::task::spawn_local(async move {
        while !rooms.is_disposed() {
            let list = relay::rooms().await;
            let known = rooms.try_with_untracked(Option::is_some).unwrap_or(true);
            match list {
                Ok(list) => {
                    rooms.try_set(Some(list.rooms));
                }
                Err(_) if !known => {
                    rooms.try_set(Some(Vec::new()));
                }
                Err(_) => {}
            }
            gloo_timers::future::TimeoutFuture::new(EVERY).await;
        }
    });
    rooms
}
