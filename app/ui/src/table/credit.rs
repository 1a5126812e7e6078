//! What each device has computed for the room, by its key; can be saved.

use leptos::prelude::*;
use potluck_panel::{CreditView, DeviceId, Status};
use potluck_text::texts;
use serde::Serialize;

use crate::{browser, state::store, text::work_line};

/// What is saved.
#[derive(Serialize)]
struct Saved<'a> {
    room: Option<&'a str>,
    devices: Vec<SavedDevice<'a>>,
}

#[derive(Serialize)]
struct SavedDevice<'a> {
    device: DeviceId,
    name: &'a str,
    tokens: u64,
    gpu_seconds: f64,
    bytes_sent: u64,
}

fn saved(status: &Status) -> Saved<'_> {
    let devices = ranked(status).into_iter().map(|CreditView { device, name, work, .. }| SavedDevice {
        device: *device,
        name,
        tokens: work.tokens,
        gpu_seconds: work.gpu_millis / 1e3,
        bytes_sent: work.bytes.0,
    });
    Saved { room: status.room.as_ref().map(|room| room.id.as_str()), devices: devices.collect() }
}

/// Who has computed most first, here and where it is saved.
fn ranked(status: &Status) -> Vec<&CreditView> {
    let mut credits: Vec<&CreditView> = status.credits.iter().collect();
    credits.sort_by(|a, b| b.work.gpu_millis.total_cmp(&a.work.gpu_millis));
    credits
}

/// Who has computed how much, folded until the user opens it.
#[component]
pub fn CreditCard() -> impl IntoView {
    let store = store();
    let credits = Memo::new(move |_| {
        store.room.status.with(|status| ranked(status).into_iter().cloned().collect::<Vec<CreditView>>())
    });
    let row = |credit: CreditView| {
        view! {
            <li class="holder">
                <strong class="holder-name">{credit.name}</strong>
                <span class="hint">{work_line(&credit.work)}</span>
            </li>
        }
    };
    let save = move |_| {
        let json = store.room.status.with_untracked(|status| serde_json::to_string_pretty(&saved(status)));
        // Plain numbers and strings always serialize.
        if let Ok(json) = json {
            browser::save_text("potluck-contributions.json", "application/json", &json);
        }
    };
    view! {
        <Show when=move || credits.with(|credits| !credits.is_empty())>
            <details class="card fold credits">
                <summary>{texts().credit.heading()}</summary>
                <p class="hint">{texts().credit.counted()}</p>
                <ul class="holders" aria-label=texts().credit.heading()>
                    {move || credits.get().into_iter().map(row).collect_view()}
                </ul>
                <div class="timeline-actions">
                    <button type="button" class="button" on:click=save>{texts().credit.save()}</button>
                </div>
            </details>
        </Show>
    }
}

#[cfg(test)]
mod tests {
    use potluck_panel::{Bytes, Work};

    use super::*;

    #[test]
    fn devices_are_saved_by_their_keys_who_computed_most_first() {
        let credit = |byte: u8, gpu_millis| CreditView {
            device: DeviceId([byte; 32]),
            peers: Vec::new(),
            name: format!("Device {byte}"),
            work: Work { tokens: 40, gpu_millis, bytes: Bytes(7) },
        };
        let status = Status { credits: vec![credit(1, 500.0), credit(2, 1_500.0)], ..Status::default() };
        let json = serde_json::to_value(saved(&status)).expect("plain data");
        let first = &json["devices"][0];
        assert_eq!(first["device"], "02".repeat(32).as_str());
        assert_eq!(
            (&first["gpu_seconds"], &first["tokens"], &first["bytes_sent"]),
            (&1.5.into(), &40.into(), &7.into())
        );
        assert_eq!(json["devices"][1]["name"], "Device 1");
    }
}
