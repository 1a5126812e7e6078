//! The host leaves on purpose.

use potluck_panel::Condition;

use super::*;

const ENDED: &str = "The host has ended this room.";
const CLOSED: &str = "The host has closed this room for now. This device joins again as soon as the host opens it.";

/// A guest that is in the room, and what the host says of that.
fn inside() -> (Peer, Frame) {
    let (mut guest, host) = (guest(), host());
    let room = host.view().room.cloned().map(|room| Frame::Room(Box::new(room))).expect("a host has a room");
    frame(&mut guest, RelayRoute(1), HOST, room.clone());
    assert_eq!(guest.view().membership, Membership::Inside);
    (guest, room)
}

fn ask(guest: &mut Peer) {
    let Frame::Prompt(question) = prompt(1, "hello", 1) else { unreachable!("a prompt") };
    on(guest, Event::Prompt(question));
}

fn notices(actions: &[Action]) -> Vec<(&str, Option<Condition>)> {
    let notice = |action| match action {
        &Action::Notice { ref sentence, condition, .. } => Some((sentence.as_str(), condition)),
        _ => None,
    };
    actions.iter().filter_map(notice).collect()
}

fn failures(actions: &[Action]) -> Vec<&str> {
    let failure = |action| match action {
        &Action::Answer(_, AnswerPart::End { stop: AnswerStop::Failed(ref sentence), .. }) => Some(sentence.as_str()),
        _ => None,
    };
    actions.iter().filter_map(failure).collect()
}

#[test]
fn a_host_tells_members_and_those_at_the_door_before_it_hangs_up() {
    for leaving in [Leaving::ForGood, Leaving::ForNow] {
        let mut host = host();
        enter(&mut host, ROUTE_A, A, Proof::Link(0));
        enter(&mut host, ROUTE_B, B, Proof::Visitor);
        let actions = on(&mut host, Event::Leave(leaving));
        for route in [ROUTE_A, ROUTE_B] {
            assert_eq!(sent(&actions, route), [&Frame::Closed(leaving)]);
        }
        let at = |wanted: fn(&Action) -> bool| actions.iter().rposition(wanted);
        let sent = at(|action| matches!(action, Action::Send { .. }));
        assert!(sent < at(|action| matches!(action, Action::Close { reason: None })), "{leaving:?}");
        assert!(!host.view().coordinator);
    }
}

#[test]
fn a_guest_says_bye_whatever_it_thinks_of_the_room() {
    for leaving in [Leaving::ForGood, Leaving::ForNow] {
        let mut guest = guest();
        let actions = on(&mut guest, Event::Leave(leaving));
        for route in [RelayRoute(1), ROUTE_B] {
            assert_eq!(sent(&actions, route), [&Frame::Bye]);
        }
    }
}

#[test]
fn a_room_that_ends_is_over_for_everyone_at_once() {
    let (mut guest, _) = inside();
    ask(&mut guest);
    let actions = frame(&mut guest, RelayRoute(1), HOST, Frame::Closed(Leaving::ForGood));
    let closed = actions.iter().find_map(|action| match action {
        Action::Close { reason } => reason.as_deref(),
        _ => None,
    });
    assert_eq!(closed, Some(ENDED));
    assert_eq!(failures(&actions), [ENDED]);
    assert!(actions.iter().any(|action| matches!(action, Action::Unload)), "its GPU is free");
    assert_eq!(notices(&actions), [], "nothing is waited for");
    assert_eq!(sent(&actions, ROUTE_B), [&Frame::Bye]);
    assert_eq!(guest.view().membership, Membership::Outside);
}

#[test]
fn a_visitor_that_waits_to_be_let_in_learns_that_the_room_ended() {
    let mut visitor = peer(A);
    on(&mut visitor, Event::Join);
    on(&mut visitor, Event::Connected);
    enter(&mut visitor, RelayRoute(1), HOST, Proof::Host);
    frame(&mut visitor, RelayRoute(1), HOST, Frame::Closed(Leaving::ForGood));
    assert_eq!(visitor.view().membership, Membership::Outside);
}

#[test]
fn a_room_that_is_closed_for_now_is_waited_for() {
    let (mut guest, room) = inside();
    ask(&mut guest);
    let actions = frame(&mut guest, RelayRoute(1), HOST, Frame::Closed(Leaving::ForNow));
    assert_eq!(notices(&actions), [(CLOSED, Some(Condition::HostAway))]);
    assert_eq!(failures(&actions), [""; 0], "it is asked again when the room is open");
    assert!(!actions.iter().any(|action| matches!(action, Action::Close { .. } | Action::Unload)));
    assert_eq!(guest.view().membership, Membership::Waiting);
    let actions = on(&mut guest, Event::RouteLeft(RelayRoute(1)));
    assert_eq!(notices(&actions), [], "that was said");

    // The same browser opens it again, in another tab.
    let (tab, route) = (PeerId([9; 16]), RelayRoute(9));
    enter(&mut guest, route, tab, Proof::Host);
    frame(&mut guest, route, tab, room);
    assert_eq!(guest.view().membership, Membership::Inside);
}

#[test]
fn a_host_that_was_given_up_is_heard_when_it_leaves() {
    for (leaving, membership) in [(Leaving::ForGood, Membership::Outside), (Leaving::ForNow, Membership::Waiting)] {
        let (mut guest, _) = inside();
        let mut last = Vec::new();
        for second in 0..30 {
            last.extend(guest.on(Event::Tick, Millis(1_000.0 * f64::from(second))));
        }
        assert_eq!(notices(&last).len(), 1, "the host is away: {:?}", notices(&last));
        let actions = frame(&mut guest, RelayRoute(1), HOST, Frame::Closed(leaving));
        assert_eq!(guest.view().membership, membership);
        assert_eq!(notices(&actions).len(), usize::from(leaving == Leaving::ForNow));
    }
}

#[test]
fn only_the_host_closes_a_room() {
    for leaving in [Leaving::ForGood, Leaving::ForNow] {
        let (mut guest, _) = inside();
        on(&mut guest, met(RelayRoute(9), PeerId([9; 16]), Proof::Link(0)));
        for (route, from) in [(ROUTE_B, B), (RelayRoute(9), PeerId([9; 16]))] {
            assert!(frame(&mut guest, route, from, Frame::Closed(leaving)).is_empty(), "{from:?}");
        }
        assert_eq!(guest.view().membership, Membership::Inside);

        let mut host = host();
        enter(&mut host, ROUTE_A, A, Proof::Link(0));
        enter(&mut host, ROUTE_B, B, Proof::Visitor);
        for (route, from) in [(ROUTE_A, A), (ROUTE_B, B)] {
            assert!(frame(&mut host, route, from, Frame::Closed(leaving)).is_empty(), "{from:?}");
        }
        assert!(host.view().coordinator);
    }
}
