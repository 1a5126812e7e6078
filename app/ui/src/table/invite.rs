//! Links to the room for other devices: the room's own, and invites. They never contain localhost.

use leptos::prelude::*;
use potluck_panel::{InviteKind, ToNode};
use potluck_text::texts;

use super::door_log::DoorLog;
use super::invites::{Banned, Given, NewInvite};
use crate::{
    browser,
    common::{CopyButton, Dialog, QrCode},
    relay::{self, Addresses},
    state::{DialogKind, store},
};

/// What a link lets its holder do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkKind {
    /// The room's own link: everything, without being asked, until the room ends.
    Room,
    /// An invite to chat.
    Chat,
    /// An invite to lend a GPU, and to chat.
    Contribute,
    /// An invite to chat for a program.
    Program,
}

impl LinkKind {
    /// The kind of invite behind it; `None` for the room's own link.
    pub(super) fn invite(self) -> Option<InviteKind> {
        match self {
            Self::Room => None,
            Self::Contribute => Some(InviteKind::Contribute),
            Self::Chat | Self::Program => Some(InviteKind::Chat),
        }
    }
}

/// The dialog with the links, their QR codes, and who came by which.
#[component]
pub fn Invite() -> impl IntoView {
    view! {
        <Dialog kind=DialogKind::Invite title=texts().invite.title() wide=true>
            <Inside />
        </Dialog>
    }
}

/// The origin for the room's link, and whether other devices can reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    pub origin: String,
    elsewhere: bool,
    /// Where another device learns to trust the relay's own certificate; empty if it need not.
    help: String,
    /// How a program without a browser trusts it; empty if it need not.
    fingerprint: String,
}

impl Reach {
    /// The link for a program without a browser.
    pub(super) fn native(&self, link: &str) -> String {
        if self.fingerprint.is_empty() { link.to_owned() } else { format!("{link}&fp={}", self.fingerprint) }
    }
}

fn reach(addresses: &Addresses, here: &str) -> Reach {
    let own = ["//localhost", "//127.", "//[::1]"].iter().any(|mark| here.contains(mark));
    let fingerprint = if addresses.self_signed { addresses.fingerprint.clone() } else { String::new() };
    let here = here.to_owned();
    match addresses.urls.first() {
        _ if !own => Reach { origin: here, elsewhere: true, help: String::new(), fingerprint },
        Some(url) => {
            let origin = url.trim_end_matches('/').to_owned();
            Reach { origin, elsewhere: true, help: addresses.help.clone(), fingerprint }
        }
        None => Reach { origin: here, elsewhere: false, help: String::new(), fingerprint },
    }
}

#[component]
fn Inside() -> impl IntoView {
    let store = store();
    let addresses = RwSignal::new(None::<Addresses>);
    leptos::task::spawn_local(async move {
        // Without an answer, the page's own address is the best guess.
        let known = relay::addresses().await.unwrap_or_default();
        addresses.try_set(Some(known));
    });
    let reach = move || addresses.get().map(|addresses| reach(&addresses, &browser::home()));
    let path = Memo::new(move |_| store.room.status.with(|status| status.room.as_ref().map(|room| room.link.clone())));
    let hosts = Memo::new(move |_| store.room.status.with(|status| status.doors.is_some()));
    let kind = RwSignal::new(LinkKind::Room);
    move || match (reach(), path.get()) {
        (Some(reach), Some(path)) => {
            let link = format!("{}{path}", reach.origin);
            let reach = StoredValue::new(reach);
            view! {
                <Show when=move || hosts.get()><KindChoice kind /></Show>
                <Show
                    when=move || kind.get() == LinkKind::Room
                    fallback=move || view! { <NewInvite kind reach=reach.get_value() /> }
                >
                    <Card link=link.clone() reach=reach.get_value() words=texts().invite.room_terms() />
                    <Show when=move || hosts.get()><Renew /></Show>
                </Show>
                <Show when=move || hosts.get()>
                    <Given />
                    <Banned />
                    <DoorLog />
                </Show>
            }
            .into_any()
        }
        _ => view! { <p class="hint">{texts().invite.looking()}</p> }.into_any(),
    }
}

/// Which kind of link to show.
#[component]
fn KindChoice(kind: RwSignal<LinkKind>) -> impl IntoView {
    let option = move |this: LinkKind, name: &'static str, means: &'static str| {
        view! {
            <label class="card option-card" class:card-chosen=move || kind.get() == this>
                <input type="radio" name="link-kind" prop:checked=move || kind.get() == this on:change=move |_| kind.set(this) />
                <span class="card-words"><strong>{name}</strong><span class="hint">{means}</span></span>
            </label>
        }
    };
    view! {
        <fieldset class="group">
            <legend>{texts().invite.kind()}</legend>
            <div class="option-cards">
                {option(LinkKind::Room, texts().invite.room(), texts().invite.room_hint())}
                {option(LinkKind::Contribute, texts().invite.lend(), texts().invite.lend_hint())}
                {option(LinkKind::Chat, texts().invite.chat(), texts().invite.chat_hint())}
                {option(LinkKind::Program, texts().programs.title(), texts().programs.title_hint())}
            </div>
        </fieldset>
    }
}

/// The room's link stops working, and it gets another one.
#[component]
fn Renew() -> impl IntoView {
    let store = store();
    let renew = move |_| {
        if browser::confirm(texts().invite.confirm_renew()) {
            store.send(ToNode::RenewLink);
        }
    };
    view! {
        <div class="row row-centre">
            <button type="button" class="button" aria-describedby="renew-hint" on:click=renew>{texts().invite.renew()}</button>
        </div>
        <p class="hint" id="renew-hint">{texts().invite.renew_hint()}</p>
    }
}

#[component]
pub(super) fn Card(
    /// The whole link.
    link: String,
    /// Whether other devices can reach it.
    reach: Reach,
    /// What whoever has it may do.
    #[prop(into)]
    words: String,
    /// What stands before the link in an invitation.
    #[prop(default = texts().invite.invitation_to_lend())]
    invitation: &'static str,
) -> impl IntoView {
    let invitation = format!("{invitation}: {link}");
    let shown = link.clone();
    view! {
        {reach.elsewhere.then(|| view! { <div class="qr-card"><QrCode address=link.clone() /></div> })}
        <p class="invite-link mono">{shown}</p>
        <div class="row row-centre">
            <CopyButton text=link.clone() label=texts().invite.copy_link() class="button button-main" />
            <CopyButton text=invitation label=texts().invite.copy_invitation() class="button" />
        </div>
        {if reach.elsewhere {
            view! { <p class="hint">{texts().invite.scan(&words)}</p> }.into_any()
        } else {
            view! {
                <p class="hint">
                    {texts().invite.only_here()}
                </p>
            }.into_any()
        }}
        {(!reach.help.is_empty()).then(|| view! {
            <p class="hint">{texts().invite.certificate(&reach.help)}</p>
        })}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "http://192.168.1.5:8787/certificate";

    #[test]
    fn a_link_for_others_never_says_localhost() {
        let addresses =
            Addresses { urls: vec!["https://192.168.1.5:8787/".into()], help: HELP.into(), ..Addresses::default() };
        let reach_from = |here| reach(&addresses, here);
        assert_eq!(reach_from("http://localhost:8787").origin, "https://192.168.1.5:8787");
        assert_eq!(reach_from("http://127.0.0.1:8787").help, HELP);
        assert_eq!(reach_from("https://potluck.example").origin, "https://potluck.example");
        assert!(!reach(&Addresses::default(), "http://localhost:8787").elsewhere);
    }

    #[test]
    fn a_program_learns_the_fingerprint_of_a_certificate_that_nobody_else_signed() {
        let link = "https://h/r/k3v9#00ff";
        let native = |self_signed| {
            let addresses = Addresses { fingerprint: "ab".into(), self_signed, ..Addresses::default() };
            reach(&addresses, "https://h").native(link)
        };
        assert_eq!((native(true), native(false)), (format!("{link}&fp=ab"), link.to_owned()));
    }
}
