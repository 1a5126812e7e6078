//! The host renews the room's keys.

use super::*;

/// Another tab of the first guest.
const TAB: PeerId = PeerId([9; 16]);

/// The members that get the renewed keys, and the number of the link that the room has from then on.
fn given(actions: &[Action]) -> (Option<u32>, Vec<PeerId>) {
    let link = actions.iter().find_map(|action| match action {
        Action::Renewed { link, .. } => Some(*link),
        _ => None,
    });
    let to = actions.iter().filter_map(|action| match action {
        Action::GiveRenewed(peer) => Some(*peer),
        _ => None,
    });
    (link, to.collect())
}

/// What the host reads.
fn notice(actions: &[Action]) -> Option<&str> {
    actions.iter().find_map(|action| match action {
        Action::Notice { sentence, .. } => Some(sentence.as_str()),
        _ => None,
    })
}

#[test]
fn renewed_keys_are_given_once_they_are_kept_and_only_to_members_that_may_meet_others() {
    let (mut host, chat) = invited(InviteKind::Chat, false);
    let [chats, waits] = [8, 9].map(|n| PeerId([n; 16]));
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    enter(&mut host, ROUTE_B, B, Proof::Link(0));
    enter(&mut host, RelayRoute(8), chats, chat);
    enter(&mut host, RelayRoute(9), waits, Proof::Visitor);
    let actions = on(&mut host, Event::Renew);
    assert_eq!(given(&actions), (None, vec![]), "the page has not kept them yet");
    let kept = actions.iter().find_map(|action| match action {
        Action::DoorsChanged(doors) => Some((doors.link, doors.generation)),
        _ => None,
    });
    assert_eq!(kept, Some((1, 1)), "the page is told to keep them");
    assert_eq!(given(&on(&mut host, Event::DoorsKept(0))), (None, vec![]), "those are the doors from before");
    let actions = on(&mut host, Event::DoorsKept(1));
    assert_eq!(given(&actions), (Some(1), vec![A, B]), "not whoever only chats or waits");
    assert!(sent(&actions, ROUTE_A).is_empty() && put_out(&actions).is_empty(), "nobody is put out");
    assert_eq!(given(&on(&mut host, Event::DoorsKept(1))), (None, vec![]), "once");
}

#[test]
fn two_renewals_in_a_row_give_the_second_link() {
    let mut host = host();
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    for link in [1, 2] {
        let at = Millis(10_000.0 * f64::from(link));
        host.on(Event::Renew, at);
        let again = host.on(Event::Renew, at);
        assert!(
            notice(&again).is_some_and(|sentence| sentence.contains("still being stored")),
            "the first press counts"
        );
        assert!(!again.iter().any(|action| matches!(action, Action::DoorsChanged(_))), "and nothing else follows");
        assert_eq!(given(&host.on(Event::DoorsKept(link + 1), at)), (None, vec![]), "nobody has kept those");
        assert_eq!(given(&host.on(Event::DoorsKept(link), at)), (Some(link), vec![A]));
    }
}

/// A second press just before members had five seconds for the first one ended their sessions.
#[test]
fn a_second_renewal_waits_until_members_have_followed_the_first() {
    let mut host = host();
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    on(&mut host, Event::Renew);
    on(&mut host, Event::DoorsKept(1));
    let actions = host.on(Event::Renew, Millis(9_999.0));
    let told = notice(&actions).is_some_and(|sentence| sentence.contains("was replaced a moment ago"));
    assert!(told, "the host is told why");
    assert_eq!(given(&host.on(Event::DoorsKept(2), Millis(9_999.0))), (None, vec![]));
    host.on(Event::Renew, Millis(10_000.0));
    assert_eq!(given(&host.on(Event::DoorsKept(2), Millis(10_000.0))), (Some(2), vec![A]));
}

#[test]
fn a_renewal_counts_once_its_keys_are_kept() {
    let mut host = host();
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    on(&mut host, Event::Renew);
    assert_eq!(let_in(&enter(&mut host, ROUTE_B, B, Proof::Link(0))), [B], "the room still has the link that it shows");
    let actions = on(&mut host, Event::DoorsKept(1));
    assert_eq!(given(&actions), (Some(1), vec![A]), "who came after the press needs the new link");
    assert!(refusal(&actions, ROUTE_B).is_some_and(|sentence| sentence.contains("was replaced")));
    assert_eq!(put_out(&actions), [ROUTE_B]);
    let late = PeerId([8; 16]);
    let actions = enter(&mut host, RelayRoute(8), late, Proof::Link(0));
    assert!(refusal(&actions, RelayRoute(8)).is_some_and(|sentence| sentence.contains("was replaced")));
    assert_eq!(put_out(&actions), [RelayRoute(8)]);
    assert_eq!(let_in(&enter(&mut host, RelayRoute(4), A, Proof::Link(0))), [A]);
}

/// The disk of a host was full: its room refused everybody by the link that it showed, and gave nobody the new one.
#[test]
fn a_renewal_that_cannot_be_kept_leaves_the_room_as_it_was() {
    let (mut host, invite) = invited(InviteKind::Chat, false);
    on(&mut host, Event::Renew);
    let actions = on(&mut host, Event::DoorsLost(1));
    let told = notice(&actions);
    assert!(told.is_some_and(|sentence| sentence.contains("could not be stored")), "{told:?}");
    let to_keep = actions.iter().find_map(|action| match action {
        Action::DoorsChanged(doors) => Some((doors.link, doors.generation, doors.invites[0].revoked)),
        _ => None,
    });
    assert_eq!(to_keep, Some((0, 0, false)), "what the page has remembered is no longer so");
    for (n, proof) in [(8, Proof::Link(0)), (9, invite)] {
        let (route, peer) = (RelayRoute(u32::from(n)), PeerId([n; 16]));
        assert_eq!(refusal(&enter(&mut host, route, peer, proof), route), None, "{proof:?}");
    }
    assert_eq!(given(&on(&mut host, Event::DoorsKept(1))), (None, vec![]), "that renewal is over");
    on(&mut host, Event::Renew);
    assert_eq!(given(&on(&mut host, Event::DoorsKept(1))).0, Some(1), "it can be tried again");
}

#[test]
fn whoever_waits_at_the_door_by_an_invite_is_turned_away_by_a_renewal_and_a_visitor_waits_on() {
    let (mut host, asks) = invited(InviteKind::Contribute, true);
    enter(&mut host, ROUTE_A, A, asks);
    enter(&mut host, ROUTE_B, B, Proof::Visitor);
    assert_eq!(put_out(&on(&mut host, Event::Renew)), [], "not before the new keys are kept");
    assert_eq!(put_out(&on(&mut host, Event::DoorsKept(1))), [ROUTE_A]);
    assert_eq!(let_in(&on(&mut host, Event::Admit { peer: B, allow: true })), [B]);
}

/// Somebody enters with 1,024 profiles. Members inside were forgotten and put out as soon as their tab was hidden or shown.
#[test]
fn whoever_is_inside_stays_however_many_others_came_by_the_link() {
    let (mut host, invite) = invited(InviteKind::Contribute, false);
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    enter(&mut host, ROUTE_B, B, invite);
    let flood = |host: &mut Peer| {
        for n in 0..limits::MAX_DEVICES {
            let mut device = [0xff; 32];
            device[..8].copy_from_slice(&(n as u64).to_le_bytes());
            host.doorkeeper.came_in(DeviceId(device), Proof::Link(0));
        }
    };
    flood(&mut host);
    on(&mut host, Event::Renew);
    assert_eq!(given(&on(&mut host, Event::DoorsKept(1))), (Some(1), vec![A, B]));
    assert_eq!(host.doorkeeper.doors().by_link.len(), 1, "nobody else came by the link");
    flood(&mut host);
    for (route, peer) in [(ROUTE_A, A), (ROUTE_B, B)] {
        let again = frame(&mut host, route, peer, Frame::Hello(Hello { hidden: true, ..hello() }));
        assert_eq!(
            (refusal(&again, route), put_out(&again)),
            (None, vec![]),
            "a hidden tab is no reason to turn it away"
        );
    }
    on(&mut host, Event::Ban(A));
    let again = enter(&mut host, RelayRoute(4), A, Proof::Link(0));
    assert!(refusal(&again, RelayRoute(4)).is_some(), "a ban is one");
}

/// It says goodbye and keeps its session, over which it had been let in.
#[test]
fn a_session_of_somebody_who_has_left_does_not_outlast_a_renewal() {
    let mut host = host();
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    frame(&mut host, ROUTE_A, A, Frame::Bye);
    on(&mut host, Event::Renew);
    on(&mut host, Event::DoorsKept(1));
    let again = frame(&mut host, ROUTE_A, A, Frame::Hello(hello()));
    assert!(refusal(&again, ROUTE_A).is_some_and(|sentence| sentence.contains("was replaced")));
    assert!(let_in(&again).is_empty(), "it gets no keys");
}

/// Somebody with a link that was passed on comes in with one profile for a moment and is put out with another one. The first one came
/// back after the renewal, and got the new link and the new group secret.
#[test]
fn profiles_that_were_in_and_are_away_do_not_come_back() {
    for leaves in [true, false] {
        let (mut host, invite) = invited(InviteKind::Contribute, false);
        for (n, proof) in [(8, Proof::Link(0)), (9, invite), (10, Proof::Visitor)] {
            let (route, peer) = (RelayRoute(u32::from(n)), PeerId([n; 16]));
            enter(&mut host, route, peer, proof);
            on(&mut host, Event::Admit { peer, allow: true });
            if leaves {
                frame(&mut host, route, peer, Frame::Bye);
            }
        }
        on(&mut host, Event::Renew);
        on(&mut host, Event::DoorsKept(1));
        for (n, proof) in [(8, Proof::Link(0)), (9, invite), (10, Proof::Visitor)] {
            let route = RelayRoute(u32::from(n) + 100);
            let actions = enter(&mut host, route, PeerId([n; 16]), proof);
            assert_eq!(let_in(&actions).is_empty(), leaves, "{proof:?}");
            assert_eq!(refusal(&actions, route).is_some(), leaves && proof != Proof::Visitor, "{proof:?}");
        }
    }
}

/// It came back before the relay had put it out, or right after.
#[test]
fn a_renewal_puts_out_whoever_the_host_has_removed_and_not_let_in_again_itself() {
    let mut host = host();
    for (peer, route, proof) in [(A, ROUTE_A, Proof::Link(0)), (B, ROUTE_B, Proof::Visitor)] {
        enter(&mut host, route, peer, proof);
        on(&mut host, Event::Admit { peer, allow: true });
        on(&mut host, Event::Remove(peer));
    }
    assert_eq!(let_in(&enter(&mut host, RelayRoute(4), A, Proof::Link(0))), [A], "until the renewal");
    // It was let in from the list before, and still is.
    assert_eq!(let_in(&enter(&mut host, RelayRoute(5), B, Proof::Visitor)), [B]);
    on(&mut host, Event::Renew);
    let actions = on(&mut host, Event::DoorsKept(1));
    assert_eq!(given(&actions), (Some(1), vec![]));
    assert_eq!(put_out(&actions), [RelayRoute(4), RelayRoute(5)]);
    assert!(refusal(&actions, RelayRoute(4)).is_some_and(|sentence| sentence.contains("was replaced")));
    assert_eq!(members(&host), 1);
    enter(&mut host, RelayRoute(6), B, Proof::Visitor);
    assert_eq!(let_in(&on(&mut host, Event::Admit { peer: B, allow: true })), [B], "the host is asked again");
    host.on(Event::Renew, Millis(10_000.0));
    assert_eq!(given(&on(&mut host, Event::DoorsKept(2))), (Some(2), vec![B]));
}

/// The host removed one tab of a device after the other. Each came back while the other one was inside.
#[test]
fn a_device_with_two_tabs_that_were_removed_is_put_out_by_a_renewal() {
    for removed in [&[A][..], &[A, TAB]] {
        let mut host = host();
        enter(&mut host, ROUTE_A, A, Proof::Link(0));
        let tab = |host: &mut Peer, route, peer| {
            let (device, proof) = (device(A), Proof::Link(0));
            on(host, Event::PeerConnected { route, peer, device, proof, at: UnixSeconds(0) });
            frame(host, route, peer, Frame::Hello(hello()))
        };
        assert_eq!(let_in(&tab(&mut host, RelayRoute(9), TAB)), [TAB]);
        for (n, peer) in (10..).zip(removed) {
            on(&mut host, Event::Remove(*peer));
            assert_eq!(let_in(&tab(&mut host, RelayRoute(n), *peer)), [*peer], "until the renewal it may come back");
        }
        on(&mut host, Event::Renew);
        let actions = on(&mut host, Event::DoorsKept(1));
        assert_eq!(given(&actions), (Some(1), vec![]), "{removed:?} were removed");
        assert_eq!(put_out(&actions).len(), 2, "both tabs are put out");
        let again = tab(&mut host, RelayRoute(20), TAB);
        assert!(refusal(&again, RelayRoute(20)).is_some_and(|sentence| sentence.contains("was replaced")));
    }
}

/// The host lets a visitor in while the browser stores the new link, and bans a member.
#[test]
fn what_the_host_decides_before_the_new_keys_are_kept_counts() {
    let mut host = host();
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    let (banned, visitor) = (PeerId([8; 16]), PeerId([9; 16]));
    enter(&mut host, RelayRoute(8), banned, Proof::Link(0));
    enter(&mut host, RelayRoute(9), visitor, Proof::Visitor);
    on(&mut host, Event::Renew);
    assert_eq!(let_in(&on(&mut host, Event::Admit { peer: visitor, allow: true })), [visitor]);
    on(&mut host, Event::Ban(banned));
    let actions = on(&mut host, Event::DoorsKept(1));
    assert_eq!(given(&actions), (Some(1), vec![A, visitor]));
    assert_eq!(put_out(&actions), [], "the visitor stays");
    let doors = host.doorkeeper.doors();
    assert!(doors.by_link.iter().all(|holder| holder.device == device(A)), "it cannot come back by the earlier link");
    assert_eq!(doors.admitted, [device(visitor)]);
}

#[test]
fn only_the_host_renews_the_keys() {
    let mut guest = guest();
    for event in [Event::Renew, Event::DoorsKept(1), Event::DoorsLost(1)] {
        assert!(on(&mut guest, event).is_empty());
    }
}
