//! The room's link for other devices; it never contains localhost.

use leptos::prelude::*;

use crate::{
    browser,
    common::{CopyButton, Dialog, QrCode},
    relay::{self, Addresses},
    state::{DialogKind, store},
};

/// The dialog with the link, the QR code and a preview of what the other device shows.
#[component]
pub fn Invite() -> impl IntoView {
    view! {
        <Dialog kind=DialogKind::Invite title="Invite a device">
            <Inside />
        </Dialog>
    }
}

/// The origin for the room's link, and whether other devices can reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reach {
    origin: String,
    elsewhere: bool,
    warns: bool,
}

fn reach(addresses: &Addresses, here: &str) -> Reach {
    let own = ["//localhost", "//127.", "//[::1]"].iter().any(|mark| here.contains(mark));
    match addresses.urls.first() {
        _ if !own => Reach { origin: here.to_owned(), elsewhere: true, warns: false },
        Some(url) => {
            Reach { origin: url.trim_end_matches('/').to_owned(), elsewhere: true, warns: addresses.self_signed }
        }
        None => Reach { origin: here.to_owned(), elsewhere: false, warns: false },
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
    let reach = move || addresses.get().map(|addresses| reach(&addresses, &browser::origin()));
    let path = Memo::new(move |_| store.room.status.with(|status| status.room.as_ref().map(|room| room.link.clone())));
    move || match (reach(), path.get()) {
        (Some(reach), Some(path)) => {
            let link = format!("{}{path}", reach.origin);
            view! { <Card link reach /> }.into_any()
        }
        _ => view! { <p class="hint">"Looking for this relay's address"</p> }.into_any(),
    }
}

#[component]
fn Card(link: String, reach: Reach) -> impl IntoView {
    let invitation = format!("Join my table and lend a hand: {link}");
    let shown = link.clone();
    view! {
        {reach.elsewhere.then(|| view! { <div class="qr-card"><QrCode address=link.clone() /></div> })}
        <p class="invite-link mono">{shown}</p>
        <div class="row row-centre">
            <CopyButton text=link.clone() label="Copy link" class="button button-main" />
            <CopyButton text=invitation label="Copy invitation" class="button" />
        </div>
        {if reach.elsewhere {
            view! { <p class="hint">"Scan it with a phone, or send the link. Whoever has the link can come in without being asked."</p> }.into_any()
        } else {
            view! {
                <p class="hint">
                    "The relay accepts connections from this computer only, so the link works only in browsers here. Restart it without “--local” to invite other devices."
                </p>
            }.into_any()
        }}
        {reach.warns.then(|| view! {
            <p class="hint">
                "The other device warns once about an unknown certificate, because this relay made its own. In Chrome choose “Advanced”, then “Proceed”. In Safari choose “Show details”, then “visit this website”."
            </p>
        })}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_for_others_never_says_localhost() {
        let addresses =
            Addresses { urls: vec!["https://192.168.1.5:8787/".into()], self_signed: true, ..Addresses::default() };
        let reach_from = |here| reach(&addresses, here);
        assert_eq!(reach_from("http://localhost:8787").origin, "https://192.168.1.5:8787");
        assert!(reach_from("http://127.0.0.1:8787").warns);
        assert_eq!(reach_from("https://potluck.example").origin, "https://potluck.example");
        assert!(!reach(&Addresses::default(), "http://localhost:8787").elsewhere);
    }
}
