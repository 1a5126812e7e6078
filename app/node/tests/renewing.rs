//! The host renews the room's link, over a real relay: who stays, who comes back, who does not.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::{Path, PathBuf};

use common::*;
use potluck_gguf::synthetic::{Architecture, Synthetic};
use potluck_panel::{InviteChoice, InviteKind, Leaving, ModelSource, PeerId, Status, ToNode};
use potluck_protocol::LogEvent;
use potluck_terminal::Session;

const RENEWED: &str = "This link was replaced. Ask the host for the new one.";

fn models() -> PathBuf {
    let models = folder("models");
    let model = Synthetic { architecture: Architecture::Llama, blocks: 2, seed: 3, ..Synthetic::default() };
    write(&model, &models, "small");
    models
}

/// A room whose keys are kept in a file.
async fn open(relay: &RunningRelay, keys: &Path) -> Session {
    let mut host = peer("Host", &relay.origin, folder("host"));
    host.host(choice(ModelSource::Relay { name: "small".into() }, 0), Vec::new(), Some(keys)).unwrap();
    host.link().await.unwrap();
    host
}

fn key(session: &Session) -> String {
    session.status.room.as_ref().unwrap().key.clone().unwrap()
}

fn link(relay: &RunningRelay, session: &Session) -> String {
    format!("{}{}", relay.origin, session.status.room.as_ref().unwrap().link)
}

/// Waits until a state is there, while the others do their part.
async fn together(waits: &mut Session, what: &str, is: impl Fn(&Status) -> bool, others: &mut [&mut Session]) {
    let mut rest = futures::stream::FuturesUnordered::new();
    for other in others {
        rest.push(until(other, "never", |_| false));
    }
    tokio::select! {
        () = until(waits, what, is) => {}
        Some(()) = futures::StreamExt::next(&mut rest) => unreachable!(),
    }
}

async fn inside(guest: &mut Session, others: &mut [&mut Session]) {
    together(guest, "inside", |status| status.role.guest, others).await;
}

/// What a device is told that may not come in.
async fn turned_away(guest: &mut Session, host: &mut Session) -> String {
    tokio::select! {
        sentence = async { loop { if let Err(failure) = guest.next().await { break failure.to_string() } } } => sentence,
        () = until(host, "never", |_| false) => unreachable!(),
    }
}

fn id_of(host: &Session, name: &str) -> PeerId {
    host.status.peers.iter().find(|member| member.name == name).unwrap().peer
}

#[test]
fn members_stay_and_get_the_new_link_and_whoever_was_removed_does_not() {
    test(async {
        let relay = relay(&models(), 0).await;
        let mut host = open(&relay, &folder("keys").join("room.json")).await;
        let old = link(&relay, &host);
        let choice = InviteChoice { kind: InviteKind::Contribute, ask: false, hours: 1, uses: 9 };
        host.page(ToNode::Invite(choice));
        until(&mut host, "an invite", |status| status.doors.as_ref().is_some_and(|doors| !doors.invites.is_empty()))
            .await;
        let invite = format!("{}{}", relay.origin, host.status.doors.as_ref().unwrap().invites[0].link);
        let [mut one, mut invited, mut out] =
            ["One", "Invited", "Out"].map(|name| peer(name, &relay.origin, folder("guest")));
        join_room(&one, &old, None);
        inside(&mut one, &mut [&mut host]).await;
        join_room(&invited, &invite, None);
        inside(&mut invited, &mut [&mut host, &mut one]).await;
        join_room(&out, &old, None);
        inside(&mut out, &mut [&mut host, &mut one, &mut invited]).await;
        let four = |status: &Status| status.peers.len() == 4;
        together(&mut host, "all are in", four, &mut [&mut one, &mut invited, &mut out]).await;
        let (id, invited_id) = (id_of(&host, "Out"), id_of(&host, "Invited"));
        let met = |status: &Status| status.words_of(invited_id).is_some();
        together(&mut one, "two members have met", met, &mut [&mut host, &mut invited, &mut out]).await;
        let words = one.status.words_of(invited_id).unwrap().to_owned();
        host.page(ToNode::Remove(id));
        assert_eq!(turned_away(&mut out, &mut host).await, "The host removed this device from the room.");

        let first = key(&host);
        host.page(ToNode::RenewLink);
        let has_new = |status: &Status| status.room.as_ref().is_some_and(|room| room.key.as_ref() != Some(&first));
        together(&mut host, "another link", has_new, &mut [&mut one, &mut invited]).await;
        let newest = key(&host);
        let has_newest = |status: &Status| status.room.as_ref().is_some_and(|room| room.key.as_ref() == Some(&newest));
        together(&mut one, "the same link", has_newest, &mut [&mut host, &mut invited]).await;
        let rekeyed = |status: &Status| {
            assert!(status.role.guest, "it stays inside");
            let now = status.words_of(invited_id);
            assert!(now.is_some(), "the session with another member never ends");
            now != Some(words.as_str())
        };
        together(&mut one, "another key of the session", rekeyed, &mut [&mut host, &mut invited]).await;
        assert!(key(&invited).starts_with("lend."), "an invite is not turned into the room's link");
        let log = host.status.doors.clone().unwrap().log;
        assert!(log.iter().any(|entry| entry.event == LogEvent::LinkRenewed), "{log:?}");

        join_room(&out, &old, None);
        assert_eq!(turned_away(&mut out, &mut host).await, RENEWED);
        let mut late = peer("Late", &relay.origin, folder("guest"));
        join_room(&late, &old, None);
        assert_eq!(turned_away(&mut late, &mut host).await, RENEWED);
        let mut late = peer("Late", &relay.origin, folder("guest"));
        join_room(&late, &invite, None);
        assert!(turned_away(&mut late, &mut host).await.contains("took this invite back"));
        join_room(&late, &link(&relay, &host), None);
        inside(&mut late, &mut [&mut host, &mut one, &mut invited]).await;
        // Those that were in come back by what they had.
        for (guest, by) in [(&mut one, &old), (&mut invited, &invite)] {
            guest.page(ToNode::Leave(Leaving::ForNow));
            together(guest, "outside", |status| !status.role.guest, &mut [&mut host, &mut late]).await;
            join_room(guest, by, None);
            inside(guest, &mut [&mut host, &mut late]).await;
        }
        together(&mut one, "the newest link", has_newest, &mut [&mut host, &mut late, &mut invited]).await;
    });
}

/// A host that loses power after it has renewed the link, and a member that was away meanwhile: that one needs the new link.
#[test]
fn a_renewal_outlives_the_host_and_keeps_only_who_was_inside() {
    test(async {
        let relay = relay(&models(), 0).await;
        let keys = folder("keys").join("room.json");
        let mut host = open(&relay, &keys).await;
        let old = link(&relay, &host);
        let [mut stays, mut away] = ["Stays", "Away"].map(|name| peer(name, &relay.origin, folder("guest")));
        for guest in [&mut stays, &mut away] {
            join_room(guest, &old, None);
            inside(guest, &mut [&mut host]).await;
        }
        away.page(ToNode::Leave(Leaving::ForNow));
        together(&mut away, "outside", |status| !status.role.guest, &mut [&mut host, &mut stays]).await;
        together(&mut host, "one has left", |status| status.peers.len() == 2, &mut [&mut stays]).await;
        let first = key(&host);
        host.page(ToNode::RenewLink);
        let has_new = |status: &Status| status.room.as_ref().is_some_and(|room| room.key.as_ref() != Some(&first));
        together(&mut host, "another link", has_new, &mut [&mut stays]).await;
        let newest = link(&relay, &host);
        host.kill();
        drop(host);
        let mut host = open(&relay, &keys).await;
        assert_eq!(link(&relay, &host), newest, "it knows the new link");
        let has_new = |status: &Status| status.role.guest && has_new(status);
        together(&mut stays, "back with the new link", has_new, &mut [&mut host]).await;
        let mut late = peer("Late", &relay.origin, folder("guest"));
        for guest in [&mut away, &mut late] {
            join_room(guest, &old, None);
            assert_eq!(turned_away(guest, &mut host).await, RENEWED);
        }
        join_room(&away, &newest, None);
        inside(&mut away, &mut [&mut host, &mut stays]).await;
    });
}

/// `potluck-node host --room-keys FILE --replace-link`.
#[test]
fn a_host_at_a_terminal_renews_the_link_when_it_opens_the_room() {
    test(async {
        let relay = relay(&models(), 0).await;
        let keys = folder("keys").join("room.json");
        let mut host = open(&relay, &keys).await;
        let old = link(&relay, &host);
        let mut guest = peer("Guest", &relay.origin, folder("guest"));
        join_room(&guest, &old, None);
        inside(&mut guest, &mut [&mut host]).await;
        host.kill();
        drop(host);
        let mut host = peer("Host", &relay.origin, folder("host"));
        host.host(choice(ModelSource::Relay { name: "small".into() }, 0), Vec::new(), Some(&keys)).unwrap();
        host.renew_link();
        let newest = format!("{}{}", relay.origin, host.link().await.unwrap());
        assert_ne!(newest, old);
        assert_eq!(turned_away(&mut guest, &mut host).await, RENEWED, "nobody was inside");
        join_room(&guest, &newest, None);
        inside(&mut guest, &mut [&mut host]).await;
    });
}
