//! The doors of a room over a real relay: invites by kind, expired and used up; removed and banned devices.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::{Path, PathBuf};
use std::time::Duration;

use common::*;
use potluck_gguf::synthetic::{Architecture, Synthetic};
use potluck_panel::{
    Bytes, Condition, Connection, HostChoice, Invite, InviteChoice, InviteId, InviteKind, Leaving, MemberStatus,
    ModelSource, PeerId, Status, ToNode, ToPage, UnixSeconds,
};
use potluck_protocol::{Doors, IssuedInvite, LogEvent};
use potluck_terminal::Session;

const ANY: InviteChoice = InviteChoice { kind: InviteKind::Contribute, ask: false, hours: 1, uses: 1 };

/// A folder with one model.
fn models() -> PathBuf {
    let models = folder("models");
    let model = Synthetic { architecture: Architecture::Llama, blocks: 2, seed: 3, ..Synthetic::default() };
    write(&model, &models, "small");
    models
}

/// A room that lends nothing: only its doors matter here.
async fn room(relay: &RunningRelay, doors: Doors) -> Session {
    open(relay, doors, None).await
}

/// The same, with a file for its keys.
async fn open(relay: &RunningRelay, doors: Doors, keys: Option<&Path>) -> Session {
    let mut host = peer("Host", &relay.origin, folder("host"));
    let choice = HostChoice { doors, ..choice(ModelSource::Relay { name: "small".into() }, 0) };
    host.host(choice, Vec::new(), keys).unwrap();
    host.link().await.unwrap();
    host
}

fn links(status: &Status) -> Vec<String> {
    status.doors.iter().flat_map(|doors| &doors.invites).map(|invite| invite.link.clone()).collect()
}

async fn invite(host: &mut Session, origin: &str, choice: InviteChoice) -> String {
    let before = links(&host.status);
    host.page(ToNode::Invite(choice));
    until(host, "an invite", |status| links(status).len() > before.len()).await;
    format!("{origin}{}", links(&host.status)[0])
}

/// Waits until a device is in the room, while the host does its part.
async fn inside(host: &mut Session, guest: &mut Session) {
    tokio::select! {
        () = until(guest, "inside", |status| status.role.guest) => {}
        () = until(host, "never", |_| false) => {}
    }
}

/// Waits until a device is told to stay out; the sentence.
async fn turned_away(host: &mut Session, guest: &mut Session) -> String {
    tokio::select! {
        sentence = async { loop { if let Err(failure) = guest.next().await { break failure.to_string() } } } => sentence,
        () = until(host, "never", |_| false) => unreachable!(),
    }
}

async fn sees(host: &mut Session, name: &str) -> PeerId {
    until(host, name, |status| status.peers.iter().any(|member| member.name == name)).await;
    host.status.peers.iter().find(|member| member.name == name).unwrap().peer
}

#[test]
fn an_invite_to_chat_lets_its_holder_in_to_chat_and_no_more() {
    test(async {
        let relay = relay(&models(), 0).await;
        let mut host = room(&relay, Doors::default()).await;
        let link = invite(&mut host, &relay.origin, InviteChoice { kind: InviteKind::Chat, ..ANY }).await;
        assert!(link.contains("#chat."), "{link}");
        let own = host.status.room.as_ref().unwrap().key.clone().unwrap();
        assert!(!link.contains(&own), "it does not show the room's secret");
        let mut guest = peer("Guest", &relay.origin, folder("guest"));
        join_room(&guest, &link, Some(64 << 20));
        inside(&mut host, &mut guest).await;
        assert!(guest.status.room.as_ref().unwrap().chat_only);
        let id = sees(&mut host, "Guest").await;
        let member = host.status.peers.iter().find(|member| member.peer == id).unwrap();
        assert_eq!((member.status, member.lent), (MemberStatus::Guest, None), "what it lends is not taken");
        assert_eq!(host.status.words_of(id), guest.status.host_words.as_deref(), "both sides see the same three words");
        assert_eq!(host.status.key_of(id), guest.status.key);

        let mut second = peer("Second", &relay.origin, folder("guest"));
        join_room(&second, &link, None);
        assert!(turned_away(&mut host, &mut second).await.contains("used up"));
    });
}

#[test]
fn an_expired_invite_says_so() {
    test(async {
        let relay = relay(&models(), 0).await;
        let expired =
            Invite { id: InviteId(1), kind: InviteKind::Contribute, ask: false, expires: UnixSeconds(1), uses: 9 };
        let invites = vec![IssuedInvite { invite: expired, revoked: false, devices: Vec::new() }];
        let mut host = room(&relay, Doors { invites, ..Doors::default() }).await;
        let link = format!("{}{}", relay.origin, links(&host.status)[0]);
        let mut guest = peer("Guest", &relay.origin, folder("guest"));
        join_room(&guest, &link, None);
        assert_eq!(turned_away(&mut host, &mut guest).await, "This invite has expired. Ask the host for a new one.");
    });
}

/// Before, all invites held one door key: whoever came by one that had ended still got a seat at the relay.
#[test]
fn a_ban_ends_the_invite_of_the_device_at_the_relay_and_no_other() {
    test(async {
        let relay = relay(&models(), 0).await;
        let mut host = room(&relay, Doors::default()).await;
        let many = InviteChoice { uses: 9, ..ANY };
        let (one, two) = (invite(&mut host, &relay.origin, many).await, invite(&mut host, &relay.origin, many).await);
        let mut guest = peer("Guest", &relay.origin, folder("guest"));
        join_room(&guest, &one, None);
        inside(&mut host, &mut guest).await;
        let id = sees(&mut host, "Guest").await;
        host.page(ToNode::Ban(id));
        assert!(turned_away(&mut host, &mut guest).await.contains("does not let it in again"));
        until(&mut host, "the ban", |status| status.doors.as_ref().is_some_and(|doors| doors.banned.len() == 1)).await;
        let joined = relay.metric("potluck_relay_members_joined_total").await;
        let mut second = peer("Second", &relay.origin, folder("guest"));
        join_room(&second, &one, None);
        let refused = turned_away(&mut host, &mut second).await;
        assert_eq!(refused, "The host took this invite back: ask for a new one.");
        assert_eq!(relay.metric("potluck_relay_members_joined_total").await, joined, "it got no seat");
        let mut third = peer("Third", &relay.origin, folder("guest"));
        join_room(&third, &two, None);
        inside(&mut host, &mut third).await;
    });
}

/// The relay refused everybody with the invite, also those who had been inside before a short loss of connection.
#[test]
fn who_came_by_an_invite_comes_back_after_it_was_taken_back_and_nobody_new_does() {
    test(async {
        let relay = relay(&models(), 0).await;
        let mut host = room(&relay, Doors::default()).await;
        let link = invite(&mut host, &relay.origin, InviteChoice { uses: 9, ..ANY }).await;
        let mut guest = peer("Guest", &relay.origin, folder("guest"));
        join_room(&guest, &link, None);
        inside(&mut host, &mut guest).await;
        let id = host.status.doors.as_ref().unwrap().invites[0].invite.id;
        host.page(ToNode::Revoke(id));
        let is_taken_back = |status: &Status| status.doors.as_ref().is_some_and(|doors| doors.invites[0].revoked);
        until(&mut host, "it is taken back", is_taken_back).await;
        guest.page(ToNode::Leave(Leaving::ForNow));
        until(&mut host, "it left", |status| status.peers.len() == 1).await;
        until(&mut guest, "it is outside", |status| !status.role.guest).await;
        join_room(&guest, &link, None);
        inside(&mut host, &mut guest).await;
        let mut second = peer("Second", &relay.origin, folder("guest"));
        join_room(&second, &link, None);
        assert!(turned_away(&mut host, &mut second).await.contains("took this invite back"));
    });
}

/// The relay leaves them, because somebody else came by the same invite and may come back.
#[test]
fn who_waits_at_the_door_by_an_invite_that_is_taken_back_is_turned_away() {
    test(async {
        let relay = relay(&models(), 0).await;
        let mut host = room(&relay, Doors::default()).await;
        let link = invite(&mut host, &relay.origin, InviteChoice { ask: true, uses: 9, ..ANY }).await;
        let mut guest = peer("Guest", &relay.origin, folder("guest"));
        join_room(&guest, &link, None);
        let peer_of_guest = tokio::select! {
            id = sees(&mut host, "Guest") => id,
            () = until(&mut guest, "never", |_| false) => unreachable!(),
        };
        host.page(ToNode::Admit { peer: peer_of_guest, allow: true });
        inside(&mut host, &mut guest).await;
        let mut second = peer("Second", &relay.origin, folder("guest"));
        join_room(&second, &link, None);
        tokio::select! {
            _ = sees(&mut host, "Second") => {}
            () = until(&mut second, "never", |_| false) => unreachable!(),
        }
        let id = host.status.doors.as_ref().unwrap().invites[0].invite.id;
        host.page(ToNode::Revoke(id));
        assert!(turned_away(&mut host, &mut second).await.contains("took this invite back"));
    });
}

/// Before, it was told to try again, and had to do so itself: also a page that was loaded anew while its old connection still counted.
#[test]
fn a_visitor_too_many_waits_and_comes_in_when_another_one_leaves() {
    test(async {
        let relay = relay(&models(), 0).await;
        let mut host = peer("Host", &relay.origin, folder("host"));
        let listed = HostChoice { visible: true, ..choice(ModelSource::Relay { name: "small".into() }, 0) };
        host.host(listed, Vec::new(), None).unwrap();
        host.link().await.unwrap();
        let link = format!("{}{}", relay.origin, host.status.room.as_ref().unwrap().link);
        let (without_key, _) = link.split_once('#').unwrap();
        let mut visitors = Vec::new();
        for name in ["One", "Two", "Three", "Four"] {
            let mut visitor = peer(name, &relay.origin, folder("guest"));
            join_room(&visitor, without_key, None);
            tokio::select! {
                _ = sees(&mut host, name) => {}
                () = until(&mut visitor, "never", |_| false) => unreachable!(),
            }
            visitors.push(visitor);
        }
        let mut late = peer("Five", &relay.origin, folder("guest"));
        join_room(&late, without_key, None);
        until(&mut late, "it waits", |status| {
            matches!(&status.connection, Connection::Reconnecting { cause, .. } if cause.starts_with("Many devices wait"))
        })
        .await;
        visitors[0].page(ToNode::Leave(Leaving::ForGood));
        tokio::select! {
            _ = sees(&mut host, "Five") => {}
            () = until(&mut late, "never", |_| false) => unreachable!(),
            () = until(&mut visitors[0], "never", |_| false) => unreachable!(),
        }
    });
}

#[test]
fn a_visitor_of_a_listed_room_meets_the_others_once_it_is_let_in() {
    test(async {
        let relay = relay(&models(), 0).await;
        let mut host = peer("Host", &relay.origin, folder("host"));
        let listed = HostChoice { visible: true, ..choice(ModelSource::Relay { name: "small".into() }, 0) };
        host.host(listed, Vec::new(), None).unwrap();
        host.link().await.unwrap();
        let link = format!("{}{}", relay.origin, host.status.room.as_ref().unwrap().link);
        let mut other = peer("Other", &relay.origin, folder("guest"));
        join_room(&other, &link, None);
        inside(&mut host, &mut other).await;
        let mut visitor = peer("Visitor", &relay.origin, folder("guest"));
        let (without_key, _) = link.split_once('#').unwrap();
        join_room(&visitor, without_key, None);
        let id = tokio::select! {
            id = sees(&mut host, "Visitor") => id,
            () = until(&mut visitor, "never", |_| false) => unreachable!(),
            () = until(&mut other, "never", |_| false) => unreachable!(),
        };
        assert_eq!(other.status.words_of(id), None);
        host.page(ToNode::Admit { peer: id, allow: true });
        inside(&mut host, &mut visitor).await;
        tokio::select! {
            () = until(&mut other, "they meet", |status| status.words_of(id).is_some()) => {}
            () = until(&mut visitor, "never", |_| false) => {}
            () = until(&mut host, "never", |_| false) => {}
        }
    });
}

#[test]
fn who_asks_first_shows_three_words_and_waits() {
    test(async {
        let relay = relay(&models(), 0).await;
        let mut host = room(&relay, Doors::default()).await;
        let link = invite(&mut host, &relay.origin, InviteChoice { ask: true, ..ANY }).await;
        let mut guest = peer("Guest", &relay.origin, folder("guest"));
        join_room(&guest, &link, None);
        let id = tokio::select! {
            id = sees(&mut host, "Guest") => id,
            () = until(&mut guest, "never", |_| false) => unreachable!(),
        };
        assert_eq!(host.status.peers.iter().find(|member| member.peer == id).unwrap().status, MemberStatus::Asking);
        let waits = |status: &Status| status.connection == Connection::WaitingForHost && status.host_words.is_some();
        until(&mut guest, "waiting", waits).await;
        let words = guest.status.host_words.clone().unwrap();
        assert_eq!(host.status.words_of(id), Some(words.as_str()));
        assert_eq!(words.split(' ').count(), 3);
        host.page(ToNode::Admit { peer: id, allow: true });
        inside(&mut host, &mut guest).await;
        // The host knows it by its key now. Another session has other words, which nobody has to compare.
        guest.page(ToNode::Leave(Leaving::ForNow));
        until(&mut host, "it left", |status| status.peers.len() == 1).await;
        join_room(&guest, &link, None);
        tokio::select! {
            () = until(&mut guest, "other words", |status| status.host_words.as_ref().is_some_and(|now| *now != words)) => {}
            () = until(&mut host, "never", |_| false) => unreachable!(),
        }
        let again = guest.status.host_words.clone();
        until(&mut host, "the same other words", |status| status.words_of(id) == again.as_deref()).await;
    });
}

#[test]
fn a_removed_device_comes_back_and_a_banned_one_reaches_nobody() {
    test(async {
        let relay = relay(&models(), 0).await;
        let mut host = room(&relay, Doors::default()).await;
        let link = format!("{}{}", relay.origin, host.status.room.as_ref().unwrap().link);
        let mut other = peer("Other", &relay.origin, folder("guest"));
        join_room(&other, &link, None);
        inside(&mut host, &mut other).await;
        let mut guest = peer("Guest", &relay.origin, folder("guest"));
        join_room(&guest, &link, None);
        inside(&mut host, &mut guest).await;
        let id = sees(&mut host, "Guest").await;
        until(&mut other, "the two have met", |status| status.key_of(id).is_some()).await;

        host.page(ToNode::Remove(id));
        assert_eq!(turned_away(&mut host, &mut guest).await, "The host removed this device from the room.");
        join_room(&guest, &link, None);
        inside(&mut host, &mut guest).await;

        sees(&mut host, "Guest").await;
        host.page(ToNode::Ban(id));
        assert!(turned_away(&mut host, &mut guest).await.contains("does not let it in again"));
        until(&mut host, "the ban", |status| status.doors.as_ref().is_some_and(|doors| doors.banned.len() == 1)).await;
        assert_eq!(host.status.doors.as_ref().unwrap().banned[0].device, guest.status.key.unwrap());
        join_room(&guest, &link, None);
        assert!(turned_away(&mut host, &mut guest).await.contains("does not let this device"));
        // The other one is in, with the new group secret.
        let mut third = peer("Third", &relay.origin, folder("guest"));
        join_room(&third, &link, None);
        inside(&mut host, &mut third).await;
        let third_id = third.status.peer.unwrap();
        until(&mut other, "they meet", |status| status.key_of(third_id).is_some()).await;
    });
}

/// A native host used to keep only its keys: once it had started again, whoever it had banned came back.
#[test]
fn a_host_that_starts_again_keeps_its_bans_and_invites() {
    test(async {
        let relay = relay(&models(), 0).await;
        let keys = folder("keys").join("room.json");
        let mut host = open(&relay, Doors::default(), Some(&keys)).await;
        let link = format!("{}{}", relay.origin, host.status.room.as_ref().unwrap().link);
        let used_up = invite(&mut host, &relay.origin, ANY).await;
        let mut invited = peer("Invited", &relay.origin, folder("guest"));
        join_room(&invited, &used_up, None);
        inside(&mut host, &mut invited).await;
        let mut banned = peer("Banned", &relay.origin, folder("guest"));
        join_room(&banned, &link, None);
        inside(&mut host, &mut banned).await;
        let id = sees(&mut host, "Banned").await;
        host.page(ToNode::Ban(id));
        turned_away(&mut host, &mut banned).await;
        until(&mut host, "the ban", |status| status.doors.as_ref().is_some_and(|doors| doors.banned.len() == 1)).await;
        // What the log says last of all is written a second later.
        let kept = |host: &Session| host.status.doors.clone().map(|doors| (doors.invites, doors.banned));
        let before = kept(&host);
        // Like a machine that loses power: nothing is said or written any more.
        host.kill();
        drop((host, invited));

        let mut host = open(&relay, Doors::default(), Some(&keys)).await;
        assert_eq!(format!("{}{}", relay.origin, host.status.room.as_ref().unwrap().link), link, "the same room");
        assert_eq!(kept(&host), before, "the same doors");
        let log = host.status.doors.clone().map(|doors| doors.log).unwrap_or_default();
        assert!(log.iter().any(|entry| entry.event == LogEvent::Banned && entry.name == "Banned"), "{log:?}");
        join_room(&banned, &link, None);
        assert!(turned_away(&mut host, &mut banned).await.contains("does not let this device"));
        let mut second = peer("Second", &relay.origin, folder("guest"));
        join_room(&second, &used_up, None);
        assert!(turned_away(&mut host, &mut second).await.contains("used up"));
    });
}

/// The link used to be printed before the relay knew the room: whoever was quick read that there is no such room.
#[test]
fn a_room_has_no_link_before_the_relay_has_the_room() {
    test(async {
        let models = models();
        let first = relay(&models, 0).await;
        let (origin, port) = (first.origin.clone(), first.port());
        first.stop().await;
        let mut host = peer("Host", &origin, folder("host"));
        // The host's own file, for which it asks no relay.
        let files = potluck_node::native::open_model_files(&models.join("small.gguf")).unwrap();
        let source = ModelSource::File { name: files[0].name(), bytes: Bytes(files[0].len()) };
        host.host(choice(source, 0), files, None).unwrap();
        let early = tokio::time::timeout(Duration::from_millis(500), host.link()).await;
        assert!(early.is_err(), "there is no relay yet: {early:?}");
        let relay = relay(&models, port).await;
        let link = format!("{origin}{}", host.link().await.unwrap());
        let mut guest = peer("Guest", &origin, folder("guest"));
        join_room(&guest, &link, None);
        inside(&mut host, &mut guest).await;
        relay.stop().await;
    });
}

/// A guest in a room whose host keeps the room's keys in a file, or nowhere.
async fn guest_of(relay: &RunningRelay, keys: Option<&Path>) -> (Session, Session) {
    let mut host = open(relay, Doors::default(), keys).await;
    let link = format!("{}{}", relay.origin, host.status.room.as_ref().unwrap().link);
    let mut guest = peer("Guest", &relay.origin, folder("guest"));
    join_room(&guest, &link, None);
    inside(&mut host, &mut guest).await;
    (host, guest)
}

#[test]
fn a_room_that_its_host_ends_is_over_for_its_guests() {
    test(async {
        let relay = relay(&models(), 0).await;
        let (mut host, mut guest) = guest_of(&relay, None).await;
        host.page(ToNode::Leave(Leaving::ForGood));
        assert_eq!(turned_away(&mut host, &mut guest).await, "The host has ended this room.");
    });
}

#[test]
fn a_room_that_its_host_closes_for_now_is_waited_for_until_it_is_open_again() {
    test(async {
        let relay = relay(&models(), 0).await;
        let keys = folder("keys").join("room.json");
        let (host, mut guest) = guest_of(&relay, Some(&keys)).await;
        host.page(ToNode::Leave(Leaving::ForNow));
        loop {
            if let ToPage::Notice(notice) = guest.next().await.unwrap() {
                assert!(notice.sentence.contains("closed this room for now"), "{}", notice.sentence);
                assert_eq!(notice.condition, Some(Condition::HostAway));
                break;
            }
        }
        until(&mut guest, "waiting", |status| status.connection == Connection::WaitingForHost).await;
        let mut host = open(&relay, Doors::default(), Some(&keys)).await;
        inside(&mut host, &mut guest).await;
    });
}
