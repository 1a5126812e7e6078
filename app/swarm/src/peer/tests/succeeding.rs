//! A deputy and its host.

use potluck_protocol::{DeputyChoice, OwnerSecrets, Succession, Term};

use super::*;
use crate::Ownership;

const ROUTE_HOST: RelayRoute = RelayRoute(1);
/// A deputy that has been connected for long enough.
const SETTLED: Millis = Millis(3_500.0);

fn ownership(term: u32) -> Option<Ownership> {
    let secrets = OwnerSecrets { owner: [1; 32], link: [2; 16] };
    Some(Ownership { secrets, term: Term(term), visible: false })
}

fn command(deputy: DeputyChoice, term: u32) -> HostCommand {
    HostCommand { deputy, ownership: ownership(term), ..examples::command() }
}

/// A host that was met by A.
fn host_of(deputy: DeputyChoice) -> Peer {
    let mut host = peer(HOST);
    on(&mut host, Event::Host(command(deputy, 4)));
    on(&mut host, Event::Connected);
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    host
}

/// What the host makes A its deputy with.
fn succession() -> Box<Succession> {
    let mut host = host_of(DeputyChoice::Anyone);
    let actions = on(&mut host, Event::Tick);
    let appointed = sent(&actions, ROUTE_A).into_iter().find_map(|frame| match frame {
        Frame::Deputy(succession) => succession.clone(),
        _ => None,
    });
    appointed.expect("A is the deputy")
}

/// A, who is the deputy.
fn deputy() -> Peer {
    let mut deputy = peer(A);
    on(&mut deputy, Event::Join);
    on(&mut deputy, Event::Connected);
    enter(&mut deputy, ROUTE_HOST, HOST, Proof::Host);
    frame(&mut deputy, ROUTE_HOST, HOST, Frame::Deputy(Some(succession())));
    deputy
}

fn takes_over(actions: &[Action]) -> bool {
    actions.iter().any(|action| matches!(action, Action::TakeOver(_)))
}

/// The host's connection ends at this time, and its grace is over a little later.
fn loses_host(deputy: &mut Peer, at: Millis) -> Vec<Action> {
    let mut actions = deputy.on(Event::RouteLeft(ROUTE_HOST), at);
    for tick in 0..16 {
        actions.extend(deputy.on(Event::Tick, Millis(at.0 + 200.0 * f64::from(tick))));
    }
    actions
}

#[test]
fn a_host_tells_its_deputy_what_it_needs_and_nobody_else() {
    let given = succession();
    assert_eq!((given.term, given.secrets), (Term(5), OwnerSecrets { owner: [1; 32], link: [2; 16] }));
    for choice in [DeputyChoice::Nobody, DeputyChoice::Device(device(B))] {
        let mut host = host_of(choice);
        let actions = on(&mut host, Event::Tick);
        assert!(!sent(&actions, ROUTE_A).iter().any(|frame| matches!(frame, Frame::Deputy(Some(_)))), "{choice:?}");
    }
    let mut chooses = host_of(DeputyChoice::Nobody);
    let actions = on(&mut chooses, Event::SetDeputy(DeputyChoice::Device(device(A))));
    assert!(sent(&actions, ROUTE_A).iter().any(|frame| matches!(frame, Frame::Deputy(Some(_)))));
    let actions = on(&mut chooses, Event::SetDeputy(DeputyChoice::Nobody));
    assert!(sent(&actions, ROUTE_A).contains(&&Frame::Deputy(None)), "it is told that it no longer is");
}

#[test]
fn a_file_on_the_hosts_disk_has_no_deputy() {
    let mut host = peer(HOST);
    let source = potluck_protocol::ModelSource::File { name: "a.gguf".into(), bytes: Bytes(1) };
    on(&mut host, Event::Host(HostCommand { source, ..command(DeputyChoice::Anyone, 0) }));
    on(&mut host, Event::Connected);
    let mut actions = enter(&mut host, ROUTE_A, A, Proof::Link(0));
    actions.extend(on(&mut host, Event::Tick));
    assert!(!sent(&actions, ROUTE_A).iter().any(|frame| matches!(frame, Frame::Deputy(Some(_)))));
}

#[test]
fn a_deputy_takes_over_when_the_host_is_gone() {
    let mut lost = deputy();
    assert!(takes_over(&loses_host(&mut lost, SETTLED)));
    let mut closed = deputy();
    closed.on(Event::Tick, SETTLED);
    let leaves = Event::Frame { route: ROUTE_HOST, from: HOST, frame: Frame::Closed(Leaving::ForNow) };
    assert!(takes_over(&closed.on(leaves, SETTLED)), "at once, because the host says so");
    let mut ended = deputy();
    ended.on(Event::Tick, SETTLED);
    let ends = Event::Frame { route: ROUTE_HOST, from: HOST, frame: Frame::Closed(Leaving::ForGood) };
    assert!(!takes_over(&ended.on(ends, SETTLED)), "the room is over");
}

#[test]
fn a_deputy_that_has_only_just_connected_waits_for_the_host() {
    let mut deputy = deputy();
    deputy.on(Event::Disconnected, SETTLED);
    deputy.on(Event::Connected, Millis(SETTLED.0 + 10.0));
    let mut actions = Vec::new();
    for tick in 0..12 {
        actions.extend(deputy.on(Event::Tick, Millis(SETTLED.0 + 20.0 + 200.0 * f64::from(tick))));
    }
    assert!(!takes_over(&actions), "the host may need as long to come back");
}

#[test]
fn whom_the_room_does_not_show_as_its_deputy_does_not_take_over() {
    let mut deputy = deputy();
    let mut host = host_of(DeputyChoice::Nobody);
    let actions = on(&mut host, Event::Tick);
    let room = sent(&actions, ROUTE_A).into_iter().find(|frame| matches!(frame, Frame::Room(_))).cloned();
    let room = room.unwrap_or_else(|| {
        let view = host.view().room.expect("it has one").clone();
        Frame::Room(Box::new(view))
    });
    frame(&mut deputy, ROUTE_HOST, HOST, room);
    assert!(!takes_over(&loses_host(&mut deputy, SETTLED)));
}

#[test]
fn a_host_that_another_one_follows_takes_part_in_the_room() {
    let mut host = host_of(DeputyChoice::Anyone);
    let actions = on(&mut host, Event::Superseded);
    assert!(actions.iter().any(|action| matches!(action, Action::StepDown)));
    assert_eq!((host.view().membership, host.view().coordinator), (Membership::Waiting, false));
}

#[test]
fn a_deputy_that_the_relay_refuses_stays_the_deputy() {
    let mut deputy = deputy();
    assert!(takes_over(&loses_host(&mut deputy, SETTLED)));
    let later = Millis(SETTLED.0 + 3_500.0);
    deputy.on(Event::Host(command(DeputyChoice::Anyone, 5)), later);
    let actions = deputy.on(Event::HostPresent, later);
    assert!(actions.iter().any(|action| matches!(action, Action::StepDown)));
    assert!(deputy.is_deputy());
    deputy.on(Event::Connected, later);
    let mut again = Vec::new();
    for tick in 1..20 {
        again.extend(deputy.on(Event::Tick, Millis(later.0 + 200.0 * f64::from(tick))));
    }
    assert!(takes_over(&again), "the host did not turn up");
}

#[test]
fn an_earlier_host_gives_no_orders_any_more() {
    let mut guest = guest();
    enter(&mut guest, RelayRoute(9), PeerId([9; 16]), Proof::Host);
    frame(&mut guest, RelayRoute(1), HOST, Frame::Closed(Leaving::ForGood));
    assert_ne!(guest.view().membership, Membership::Outside, "the room of the new host is not over");
}
