//! Who hosts the room if this device leaves: the host's choice.

use leptos::prelude::*;
use potluck_panel::{DeputyChoice as Deputy, DeviceId, MemberStatus, ModelSource, Status};
use potluck_text::texts;

use crate::state::store;

/// The host chooses a deputy, at any time.
#[component]
pub fn DeputyChoice() -> impl IntoView {
    let store = store();
    let chosen = Memo::new(move |_| store.session.with(|session| session.place.as_ref()?.deputy()));
    let devices = Memo::new(move |_| store.room.status.with(devices));
    let hosts = Memo::new(move |_| store.room.status.with(|status| status.role.coordinator));
    let has_deputy = Memo::new(move |_| store.room.status.with(|status| status.deputy.is_some()));
    let is_file = Memo::new(move |_| {
        store
            .room
            .status
            .with(|status| status.model.as_ref().is_some_and(|model| matches!(model.source, ModelSource::File { .. })))
    });
    let change = move |event| {
        let value = event_target_value(&event);
        let device =
            devices.with_untracked(|devices| devices.iter().find(|(key, _)| key.to_string() == value).cloned());
        store.set_deputy(match (value.as_str(), device) {
            (_, Some((device, _))) => Deputy::Device(device),
            ("anyone", _) => Deputy::Anyone,
            _ => Deputy::Nobody,
        });
    };
    let is = move |wanted: Deputy| chosen.get() == Some(wanted);
    let device = move |(key, name): (DeviceId, String)| {
        let words = texts().deputy.device(&name);
        view! { <option value=key.to_string() prop:selected=move || is(Deputy::Device(key))>{words}</option> }
    };
    let hint = move || match () {
        () if is_file.get() => texts().deputy.needs_source(),
        () if !is(Deputy::Nobody) && !has_deputy.get() => texts().deputy.none_yet(),
        () => texts().deputy.hint(),
    };
    view! {
        <Show when=move || hosts.get() && chosen.get().is_some()>
            <label class="labelled deputy">
                <span>{texts().deputy.label()}</span>
                <select class="field" on:change=change disabled=move || is_file.get()>
                    <option value="nobody" prop:selected=move || is(Deputy::Nobody)>{texts().deputy.nobody()}</option>
                    <option value="anyone" prop:selected=move || is(Deputy::Anyone)>{texts().deputy.anyone()}</option>
                    {move || devices.get().into_iter().map(device).collect_view()}
                </select>
            </label>
            <p class="hint">{hint}</p>
        </Show>
    }
}

/// The other devices in the room with their names, each once.
fn devices(status: &Status) -> Vec<(DeviceId, String)> {
    let mut devices: Vec<(DeviceId, String)> = Vec::new();
    let inside = status.peers.iter().filter(|member| !status.is_self(member) && member.status != MemberStatus::Asking);
    for member in inside {
        if let Some(key) = status.key_of(member.peer)
            && Some(key) != status.key
            && devices.iter().all(|(known, _)| *known != key)
        {
            devices.push((key, member.name.clone()));
        }
    }
    devices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::fixtures::member;

    #[test]
    fn other_devices_are_offered_once_each_and_none_that_waits_at_the_door() {
        let (own, other) = (DeviceId([1; 32]), DeviceId([2; 32]));
        let (host, tab, guest) = (member("a", true), member("b", false), member("c", false));
        let mut waiting = member("d", false);
        waiting.status = MemberStatus::Asking;
        let members_keys = vec![(tab.peer, own), (guest.peer, other), (waiting.peer, DeviceId([3; 32]))];
        let (peer, key) = (Some(host.peer), Some(own));
        let name = guest.name.clone();
        let status = Status { peer, key, members_keys, peers: vec![host, tab, guest, waiting], ..Status::default() };
        assert_eq!(devices(&status), [(other, name)]);
    }
}
