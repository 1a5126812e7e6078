//! What the host's log says about those who came.

use potluck_protocol::{BannedDevice, Doors, LogEvent, Way};

use super::*;

fn log(host: &Peer) -> Vec<(Option<DeviceId>, LogEvent, u32)> {
    let doors = host.view().doors.cloned().unwrap_or_default();
    doors.log.into_iter().map(|entry| (entry.device, entry.event, entry.times)).collect()
}

#[test]
fn the_log_says_who_came_by_what_and_a_hello_alone_is_no_visit() {
    let (mut host, proof) = invited(InviteKind::Contribute, false);
    enter(&mut host, ROUTE_A, A, proof);
    frame(&mut host, ROUTE_A, A, Frame::Hello(Hello { name: "Ann".into(), ..hello() }));
    enter(&mut host, ROUTE_B, B, Proof::Link(0));
    let came = |way| LogEvent::CameIn(way);
    let expected = [(Some(device(A)), came(Way::Invite(InviteId(1))), 1), (Some(device(B)), came(Way::Link), 1)];
    assert_eq!(log(&host), expected);
    let first = host.view().doors.map(|doors| doors.log[0].first);
    assert_eq!(first, Some(UnixSeconds(1_000)), "by the clock of its session");
}

#[test]
fn the_log_says_who_was_refused_and_why_and_whom_the_host_let_in() {
    let mut host = host();
    enter(&mut host, ROUTE_A, A, Proof::Visitor);
    assert_eq!(log(&host), [], "it only asks");
    on(&mut host, Event::Admit { peer: A, allow: false });
    enter(&mut host, ROUTE_B, B, Proof::Visitor);
    on(&mut host, Event::Admit { peer: B, allow: true });
    let refused = LogEvent::Refused("The host did not let this device in.".into());
    assert_eq!(log(&host), [(Some(device(A)), refused, 1), (Some(device(B)), LogEvent::CameIn(Way::List), 1)]);
}

#[test]
fn the_log_says_who_was_put_out_and_comes_back_with_the_room() {
    let mut first = host();
    enter(&mut first, ROUTE_A, A, Proof::Link(0));
    on(&mut first, Event::Remove(A));
    enter(&mut first, RelayRoute(4), A, Proof::Link(0));
    on(&mut first, Event::Ban(A));
    enter(&mut first, RelayRoute(5), A, Proof::Link(0));
    on(&mut first, Event::Unban(device(A)));
    let is = |event: &LogEvent| log(&first).iter().any(|(by, known, _)| *by == Some(device(A)) && known == event);
    for event in [LogEvent::Removed, LogEvent::Banned, LogEvent::Forgiven] {
        assert!(is(&event), "{event:?}: {:?}", log(&first));
    }
    assert!(log(&first).contains(&(Some(device(A)), LogEvent::CameIn(Way::Link), 2)), "twice: {:?}", log(&first));
    let turned_away =
        |(_, event, _): &(_, LogEvent, _)| matches!(event, LogEvent::Refused(why) if why.contains("does not let"));
    assert_eq!(log(&first).iter().filter(|entry| turned_away(entry)).count(), 1);
    let doors = first.view().doors.cloned().unwrap_or_default();
    let mut again = peer(HOST);
    on(&mut again, Event::Host(HostCommand { doors, ..examples::command() }));
    assert_eq!(log(&again), log(&first), "a reload keeps it");
}

/// It said 1970.
#[test]
fn what_happens_before_anybody_comes_has_its_time() {
    let banned = vec![BannedDevice { device: device(A), name: "Eve".into() }];
    let doors = Doors { banned, ..Doors::default() };
    let mut host = peer(HOST);
    on(&mut host, Event::Host(HostCommand { doors, at: UnixSeconds(900), ..examples::command() }));
    on(&mut host, Event::Unban(device(A)));
    let times = host.view().doors.map(|doors| doors.log.iter().map(|entry| entry.first).collect::<Vec<_>>());
    assert_eq!(times, Some(vec![UnixSeconds(900)]));
}

#[test]
fn the_log_says_who_sent_wrong_numbers() {
    let mut host = host();
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    host.cx.members.distrust(A, Millis(0.0));
    on(&mut host, Event::Tick);
    assert!(log(&host).contains(&(Some(device(A)), LogEvent::WrongNumbers, 1)), "{:?}", log(&host));
}

#[test]
fn a_guest_keeps_no_log() {
    let mut guest = guest();
    guest.cx.members.distrust(B, Millis(0.0));
    on(&mut guest, Event::Tick);
    assert!(guest.doorkeeper.doors().log.is_empty(), "a guest has no doors");
}
