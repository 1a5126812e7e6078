//! The host renews the room's keys.

use super::*;

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
    on(&mut host, Event::Renew);
    on(&mut host, Event::Renew);
    assert_eq!(given(&on(&mut host, Event::DoorsKept(1))), (None, vec![]), "the room has another link by now");
    assert_eq!(given(&on(&mut host, Event::DoorsKept(2))), (Some(2), vec![A]));
}

#[test]
fn between_the_press_and_the_keeping_nobody_new_comes_in_and_members_come_back() {
    let mut host = host();
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    on(&mut host, Event::Renew);
    let actions = enter(&mut host, ROUTE_B, B, Proof::Link(0));
    assert!(refusal(&actions, ROUTE_B).is_some_and(|sentence| sentence.contains("was renewed")));
    assert_eq!(put_out(&actions), [ROUTE_B]);
    assert_eq!(let_in(&enter(&mut host, RelayRoute(4), A, Proof::Link(0))), [A]);
    assert_eq!(given(&on(&mut host, Event::DoorsKept(1))), (Some(1), vec![A]));
}

#[test]
fn whoever_waits_at_the_door_by_an_invite_is_turned_away_by_a_renewal_and_a_visitor_waits_on() {
    let (mut host, asks) = invited(InviteKind::Contribute, true);
    enter(&mut host, ROUTE_A, A, asks);
    enter(&mut host, ROUTE_B, B, Proof::Visitor);
    let actions = on(&mut host, Event::Renew);
    assert_eq!(put_out(&actions), [ROUTE_A]);
    on(&mut host, Event::DoorsKept(1));
    assert_eq!(let_in(&on(&mut host, Event::Admit { peer: B, allow: true })), [B]);
}

/// The host removed one tab of a device, and another one is still inside.
#[test]
fn a_device_that_is_still_inside_with_another_tab_comes_back_by_the_earlier_link() {
    let mut host = host();
    let (tab, route) = (PeerId([9; 16]), RelayRoute(9));
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    let second =
        Event::PeerConnected { route, peer: tab, device: device(A), proof: Proof::Link(0), at: UnixSeconds(0) };
    on(&mut host, second);
    frame(&mut host, route, tab, Frame::Hello(hello()));
    on(&mut host, Event::Remove(A));
    on(&mut host, Event::Renew);
    assert_eq!(given(&on(&mut host, Event::DoorsKept(1))), (Some(1), vec![tab]));
    let again = frame(&mut host, route, tab, Frame::Hello(Hello { name: "Renamed".into(), ..hello() }));
    assert_eq!(refusal(&again, route), None, "another name is no reason to turn it away");
    let returned = Event::PeerConnected {
        route: RelayRoute(10),
        peer: tab,
        device: device(A),
        proof: Proof::Link(0),
        at: UnixSeconds(0),
    };
    on(&mut host, returned);
    let again = frame(&mut host, RelayRoute(10), tab, Frame::Hello(hello()));
    assert_eq!(let_in(&again), [tab], "it comes back by the link that it had");
}

#[test]
fn only_the_host_renews_the_keys() {
    let mut guest = guest();
    for event in [Event::Renew, Event::DoorsKept(1)] {
        assert!(on(&mut guest, event).is_empty());
    }
}
