//! Invites that the host makes, and who may not come in.

use leptos::prelude::*;
use potluck_panel::{BannedReport, InviteChoice, InviteId, InviteKind, InviteReport, InviteState, ToNode, UnixSeconds};

use super::invite::{Card, LinkKind, Reach};
use crate::{browser, state::store, text::plural};

/// How long an invite may be used, in hours, and what the page calls it.
const SPANS: [(u32, &str); 3] = [(1, "1 hour"), (24, "1 day"), (168, "1 week")];
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
    let wanted = move || if kind.get() == LinkKind::Chat { InviteKind::Chat } else { InviteKind::Contribute };
    // Invites that were there before the button was pressed are not the one to show.
    let before = RwSignal::new(None::<Vec<InviteId>>);
    let invites = Memo::new(move |_| store.room.status.with(invites));
    let made = move || {
        let before = before.get()?;
        let is_new = |report: &&InviteReport| report.invite.kind == wanted() && !before.contains(&report.invite.id);
        invites.with(|invites| invites.iter().find(is_new).cloned())
    };
    let make = move |_| {
        before.set(Some(invites.with_untracked(|invites| invites.iter().map(|report| report.invite.id).collect())));
        let choice = InviteChoice {
            kind: untrack(wanted),
            ask: ask.get_untracked(),
            hours: hours.get_untracked(),
            uses: uses.get_untracked(),
        };
        store.send(ToNode::Invite(choice));
    };
    let spans = SPANS.map(|(step, name)| {
        view! { <option value=step.to_string() prop:selected=move || hours.get() == step>{name}</option> }
    });
    let counts = USES.map(|step| {
        view! {
            <option value=step.to_string() prop:selected=move || uses.get() == step>
                {plural(usize::from(step), "device", "devices")}
            </option>
        }
    });
    let reach = StoredValue::new(reach);
    view! {
        <label class="labelled labelled-row">
            <span>"It can be used for"</span>
            <select class="field" on:change=move |event| hours.set(event_target_value(&event).parse().unwrap_or(24))>{spans}</select>
        </label>
        <label class="labelled labelled-row">
            <span>"By"</span>
            <select class="field" on:change=move |event| uses.set(event_target_value(&event).parse().unwrap_or(1))>{counts}</select>
        </label>
        <label class="check">
            <input type="checkbox" role="switch" class="switch" prop:checked=ask on:change=move |event| ask.set(event_target_checked(&event)) />
            <span>"Ask me first"<small class="hint">"You see the device's name and its three words, and let it in or not"</small></span>
        </label>
        <button type="button" class="button button-main" on:click=make>"Make an invite"</button>
        {move || made().map(|report| {
            let reach = reach.get_value();
            let link = format!("{}{}", reach.origin, report.link);
            let invitation = match report.invite.kind {
                InviteKind::Chat => "Chat with the model at my table",
                InviteKind::Contribute => "Join my table and lend a hand",
            };
            view! { <Card link reach words=terms(&report) invitation /> }
        })}
    }
}

fn invites(status: &potluck_panel::Status) -> Vec<InviteReport> {
    status.doors.as_ref().map(|doors| doors.invites.clone()).unwrap_or_default()
}

/// What whoever has the link may do.
fn terms(report: &InviteReport) -> String {
    let who = match report.invite.uses {
        1 => "One device".to_owned(),
        uses => format!("Up to {uses} devices"),
    };
    let may = match report.invite.kind {
        InviteKind::Chat => "come in by it to chat",
        InviteKind::Contribute => "come in by it, lend their GPU and chat",
    };
    let asked = if report.invite.ask { "You are asked first." } else { "You are not asked." };
    format!("{who} can {may}. {asked}")
}

/// The invites that were given out.
#[component]
pub(super) fn Given() -> impl IntoView {
    let store = store();
    let list = Memo::new(move |_| store.room.status.with(invites));
    let take_back = move |id| {
        if browser::confirm("Take this invite back? Its link stops working. Whoever has used it stays.") {
            store.send(ToNode::Revoke(id));
        }
    };
    let row = move |report: InviteReport| {
        let id = report.invite.id;
        let is_open = report.state(now()) == InviteState::Open;
        view! {
            <li class="card invite-row">
                <span class="card-words"><strong>{name(&report)}</strong><span class="hint">{standing(&report, now())}</span></span>
                {is_open.then(|| view! {
                    <button type="button" class="button" on:click=move |_| take_back(id)>"Take back"</button>
                })}
            </li>
        }
    };
    view! {
        <Show when=move || list.with(|list| !list.is_empty())>
            <section class="given" aria-label="Invites">
                <h3>"Invites"</h3>
                <ul class="cards">
                    <For each=move || list.get() key=|report| (report.invite.id, report.used, report.revoked) children=row />
                </ul>
            </section>
        </Show>
    }
}

fn name(report: &InviteReport) -> &'static str {
    match report.invite.kind {
        InviteKind::Chat => "To chat",
        InviteKind::Contribute => "To lend a GPU",
    }
}

/// "2 of 3 devices came by it. Good for 5 hours more."
fn standing(report: &InviteReport, now: UnixSeconds) -> String {
    let used =
        format!("{} of {} came by it.", report.used, plural(usize::from(report.invite.uses), "device", "devices"));
    let left = report.invite.expires.0.saturating_sub(now.0).div_ceil(3_600);
    let state = match report.state(now) {
        InviteState::Open => format!("Good for {} more.", plural(left as usize, "hour", "hours")),
        InviteState::Expired => "It has expired.".to_owned(),
        InviteState::UsedUp => "It is used up.".to_owned(),
        InviteState::Revoked => "You took it back.".to_owned(),
    };
    format!("{used} {state}")
}

/// The devices that may not come in.
#[component]
pub(super) fn Banned() -> impl IntoView {
    let store = store();
    let list = Memo::new(move |_| {
        store.room.status.with(|status| status.doors.as_ref().map(|doors| doors.banned.clone()).unwrap_or_default())
    });
    let row = move |BannedReport { device, name, words }: BannedReport| {
        view! {
            <li class="card invite-row">
                <span class="card-words"><strong>{name}</strong><span class="hint">{words}</span></span>
                <button type="button" class="button" on:click=move |_| store.send(ToNode::Unban(device))>"Lift the ban"</button>
            </li>
        }
    };
    view! {
        <Show when=move || list.with(|list| !list.is_empty())>
            <section class="given" aria-label="Banned devices">
                <h3>"Banned devices"</h3>
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
        assert_eq!(terms(&report(0)), "Up to 3 devices can come in by it to chat. You are asked first.");
        assert_eq!(standing(&report(1), UnixSeconds(9_000)), "1 of 3 devices came by it. Good for 1 hour more.");
        assert_eq!(standing(&report(3), UnixSeconds(9_000)), "3 of 3 devices came by it. It is used up.");
        assert_eq!(standing(&report(0), UnixSeconds(10_001)), "0 of 3 devices came by it. It has expired.");
        let taken = InviteReport { revoked: true, ..report(0) };
        assert_eq!(standing(&taken, UnixSeconds(0)), "0 of 3 devices came by it. You took it back.");
    }
}
