//! Invites that the host makes, and who may not come in.

use leptos::prelude::*;
use potluck_panel::{BannedReport, InviteChoice, InviteId, InviteKind, InviteReport, InviteState, ToNode, UnixSeconds};
use potluck_text::{sentences, texts};

use super::invite::{Card, LinkKind, Reach};
use super::programs::Programs;
use crate::{browser, clock, state::store};

/// How long an invite may be used, in hours, and what the page calls it.
fn spans() -> [(u32, &'static str); 3] {
    [(1, texts().invite.hour()), (24, texts().invite.day()), (168, texts().invite.week())]
}
/// How many devices may use it.
const USES: [u16; 4] = [1, 3, 10, 50];

fn now() -> UnixSeconds {
    UnixSeconds((browser::now() / 1e3) as u32)
}

/// Makes an invite, and shows the one that was made last.
#[component]
pub(super) fn NewInvite(kind: RwSignal<LinkKind>, reach: Reach) -> impl IntoView {
    let store = store();
    let (hours, uses, ask) = (RwSignal::new(24_u32), RwSignal::new(1_u16), RwSignal::new(false));
    // With the room's own link, this is not shown.
    let wanted = move || kind.get().invite().unwrap_or(InviteKind::Contribute);
    // The kind for which the button was pressed last, and the invites that existed before: the one to show is not among them.
    let pressed = RwSignal::new(None::<(LinkKind, Vec<InviteId>)>);
    let invites = Memo::new(move |_| store.room.status.with(invites));
    let made = move || {
        let (made_for, before) = pressed.get()?;
        if made_for != kind.get() {
            return None;
        }
        let is_new = |report: &&InviteReport| report.invite.kind == wanted() && !before.contains(&report.invite.id);
        invites.with(|invites| invites.iter().find(is_new).cloned())
    };
    let make = move |_| {
        let before = invites.with_untracked(|invites| invites.iter().map(|report| report.invite.id).collect());
        pressed.set(Some((kind.get_untracked(), before)));
        let choice = InviteChoice {
            kind: untrack(wanted),
            ask: ask.get_untracked(),
            hours: hours.get_untracked(),
            uses: uses.get_untracked(),
        };
        store.send(ToNode::Invite(choice));
    };
    let spans = spans().map(|(step, name)| {
        view! { <option value=step.to_string() prop:selected=move || hours.get() == step>{name}</option> }
    });
    let counts = USES.map(|step| {
        view! {
            <option value=step.to_string() prop:selected=move || uses.get() == step>
                {texts().invite.devices(step)}
            </option>
        }
    });
    let reach = StoredValue::new(reach);
    let clocks = RwSignal::new(None::<String>);
    leptos::task::spawn_local(async move {
        let warning = clock::warning().await;
        clocks.try_set(warning);
    });
    view! {
        <p class="field-wrong" role="status">{move || clocks.get()}</p>
        <label class="labelled labelled-row">
            <span>{texts().invite.hours()}</span>
            <select class="field" on:change=move |event| hours.set(event_target_value(&event).parse().unwrap_or(24))>{spans}</select>
        </label>
        <label class="labelled labelled-row">
            <span>{texts().invite.uses()}</span>
            <select class="field" on:change=move |event| uses.set(event_target_value(&event).parse().unwrap_or(1))>{counts}</select>
        </label>
        <label class="check">
            <input type="checkbox" role="switch" class="switch" prop:checked=ask on:change=move |event| ask.set(event_target_checked(&event)) />
            <span>{texts().invite.ask()}<small class="hint">{texts().invite.ask_hint()}</small></span>
        </label>
        <button type="button" class="button button-main" on:click=make>{texts().invite.make()}</button>
        {move || made().map(|report| {
            let reach = reach.get_value();
            let link = format!("{}{}", reach.origin, report.link);
            let invitation = match report.invite.kind {
                InviteKind::Chat => texts().invite.invitation_to_chat(),
                InviteKind::Contribute => texts().invite.invitation_to_lend(),
            };
            match kind.get() {
                LinkKind::Program => view! { <Programs link=reach.native(&link) words=terms(&report) /> }.into_any(),
                _ => view! { <Card link reach words=terms(&report) invitation /> }.into_any(),
            }
        })}
    }
}

fn invites(status: &potluck_panel::Status) -> Vec<InviteReport> {
    status.doors.as_ref().map(|doors| doors.invites.clone()).unwrap_or_default()
}

/// What whoever has the link may do.
fn terms(report: &InviteReport) -> String {
    let terms = match report.invite.kind {
        InviteKind::Chat => texts().invite.to_chat(report.invite.uses),
        InviteKind::Contribute => texts().invite.to_lend(report.invite.uses),
    };
    let asked = if report.invite.ask { texts().invite.asked() } else { texts().invite.not_asked() };
    sentences(&[&terms, asked])
}

/// The invites that were given out.
#[component]
pub(super) fn Given() -> impl IntoView {
    let store = store();
    let list = Memo::new(move |_| store.room.status.with(invites));
    let take_back = move |id| {
        if browser::confirm(texts().invite.confirm_take_back()) {
            store.send(ToNode::Revoke(id));
        }
    };
    let row = move |report: InviteReport| {
        let id = report.invite.id;
        let is_open = report.state(now()) == InviteState::Open;
        view! {
            <li class="card invite-row">
                <span class="card-words"><strong>{name(&report)} " · " {id.0}</strong><span class="hint">{standing(&report, now())}</span></span>
                {is_open.then(|| view! {
                    <button type="button" class="button" on:click=move |_| take_back(id)>{texts().invite.take_back()}</button>
                })}
            </li>
        }
    };
    view! {
        <Show when=move || list.with(|list| !list.is_empty())>
            <section class="given" aria-label=texts().invite.given()>
                <h3>{texts().invite.given()}</h3>
                <ul class="cards">
                    <For each=move || list.get() key=|report| (report.invite.id, report.used, report.revoked) children=row />
                </ul>
            </section>
        </Show>
    }
}

fn name(report: &InviteReport) -> &'static str {
    match report.invite.kind {
        InviteKind::Chat => texts().invite.name_chat(),
        InviteKind::Contribute => texts().invite.name_lend(),
    }
}

/// "Used by 2 of 3 devices. Valid for 5 more hours."
fn standing(report: &InviteReport, now: UnixSeconds) -> String {
    let used = texts().invite.used(report.invite.uses, report.used);
    let left = report.invite.expires.0.saturating_sub(now.0).div_ceil(3_600);
    let state = match report.state(now) {
        InviteState::Open => texts().invite.good_for(left),
        InviteState::Expired => texts().invite.expired().to_owned(),
        InviteState::UsedUp => texts().invite.used_up().to_owned(),
        InviteState::Revoked => texts().invite.revoked().to_owned(),
    };
    sentences(&[&used, &state])
}

/// The devices that may not come in.
#[component]
pub(super) fn Banned() -> impl IntoView {
    let store = store();
    let list = Memo::new(move |_| {
        store.room.status.with(|status| status.doors.as_ref().map(|doors| doors.banned.clone()).unwrap_or_default())
    });
    let row = move |BannedReport { device, name }: BannedReport| {
        view! {
            <li class="card invite-row">
                <span class="card-words"><strong>{name}</strong><span class="hint mono">{device.tag()}</span></span>
                <button type="button" class="button" on:click=move |_| store.send(ToNode::Unban(device))>{texts().invite.lift_ban()}</button>
            </li>
        }
    };
    view! {
        <Show when=move || list.with(|list| !list.is_empty())>
            <section class="given" aria-label=texts().invite.banned()>
                <h3>{texts().invite.banned()}</h3>
                <ul class="cards"><For each=move || list.get() key=|banned| banned.device children=row /></ul>
            </section>
        </Show>
    }
}

#[cfg(test)]
mod tests {
    use potluck_panel::Invite;

    use super::*;

    fn report(used: u16) -> InviteReport {
        let expires = UnixSeconds(10_000);
        let invite = Invite { id: InviteId(1), kind: InviteKind::Chat, ask: true, expires, uses: 3 };
        InviteReport { invite, link: String::new(), used, revoked: false }
    }

    #[test]
    fn an_invite_says_what_it_is_for_and_how_it_stands() {
        assert_eq!(terms(&report(0)), "Up to 3 devices can use it to join and chat. You are asked first.");
        assert_eq!(standing(&report(1), UnixSeconds(9_000)), "Used by 1 of 3 devices. Valid for 1 more hour.");
        assert_eq!(standing(&report(3), UnixSeconds(9_000)), "Used by 3 of 3 devices. It is used up.");
        assert_eq!(standing(&report(0), UnixSeconds(10_001)), "Used by 0 of 3 devices. It has expired.");
        let taken = InviteReport { revoked: true, ..report(0) };
        assert_eq!(standing(&taken, UnixSeconds(0)), "Used by 0 of 3 devices. You took it back.");
    }
}
