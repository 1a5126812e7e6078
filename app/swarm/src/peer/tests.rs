//! A peer against others that say what they should not.

use potluck_plan::{BlockIndex, Bytes, DeviceId, ExpertId, Millis, PeerId, PlanEpoch};
use potluck_protocol::{
    AnswerPart, AnswerStop, Contribution, DeviceKind, Frame, Hello, Invite, InviteId, InviteKind, Leaving,
    LogitOptions, MemberView, Message, PieceRequest, PromptRequest, Received, RequestId, Residency, ResidencyChange,
    Role, Sampling, StartId, ToolOffer, UnixSeconds,
};

mod leaving;
mod log;
mod renewing;
mod succeeding;

use super::{Membership, Peer};
use crate::{Action, Event, HostCommand, Identity, Proof, RelayRoute, examples, limits};

const HOST: PeerId = PeerId([1; 16]);
const A: PeerId = PeerId([2; 16]);
const B: PeerId = PeerId([3; 16]);
const ROUTE_A: RelayRoute = RelayRoute(2);
const ROUTE_B: RelayRoute = RelayRoute(3);

fn peer(id: PeerId) -> Peer {
    Peer::new(Identity {
        peer: id,
        device: device(id),
        start: StartId(1),
        build: "test".into(),
        kernel_class: 1,
        name: "A device".into(),
        kind: DeviceKind::Native,
        adapter: "test".into(),
    })
}

/// The device of the tests' peers.
fn device(peer: PeerId) -> DeviceId {
    DeviceId([peer.0[0]; 32])
}

fn met(route: RelayRoute, peer: PeerId, proof: Proof) -> Event {
    Event::PeerConnected { route, peer, device: device(peer), proof, at: UnixSeconds(1_000) }
}

fn on(peer: &mut Peer, event: Event) -> Vec<Action> {
    peer.on(event, Millis(0.0))
}

fn host() -> Peer {
    let mut host = peer(HOST);
    on(&mut host, Event::Host(examples::command()));
    on(&mut host, Event::Connected);
    host
}

fn hello() -> Hello {
    Hello {
        start: StartId(7),
        build: "test".into(),
        kernel_class: 1,
        name: "Another device".into(),
        kind: DeviceKind::Native,
        adapter: "test".into(),
        contribution: None,
        epoch: PlanEpoch(0),
        hidden: false,
    }
}

fn frame(peer: &mut Peer, route: RelayRoute, from: PeerId, frame: Frame) -> Vec<Action> {
    on(peer, Event::Frame { route, from, frame })
}

fn enter(peer: &mut Peer, route: RelayRoute, other: PeerId, proof: Proof) -> Vec<Action> {
    let mut actions = on(peer, met(route, other, proof));
    actions.extend(frame(peer, route, other, Frame::Hello(hello())));
    actions
}

/// A guest that the host let in, with another guest.
fn guest() -> Peer {
    let mut guest = peer(A);
    on(&mut guest, Event::Join);
    on(&mut guest, Event::Connected);
    enter(&mut guest, RelayRoute(1), HOST, Proof::Host);
    enter(&mut guest, ROUTE_B, B, Proof::Group);
    guest
}

fn sent(actions: &[Action], to: RelayRoute) -> Vec<&Frame> {
    let to_route = |action| match action {
        &Action::Send { to: route, ref frame } if route == to => Some(frame),
        _ => None,
    };
    actions.iter().filter_map(to_route).collect()
}

fn refusal(actions: &[Action], to: RelayRoute) -> Option<&str> {
    sent(actions, to).into_iter().find_map(|frame| match frame {
        Frame::Refused(sentence) => Some(sentence.as_str()),
        _ => None,
    })
}

fn members(host: &Peer) -> usize {
    host.view().room.map_or(0, |room| room.members.len())
}

fn prompt(request: u32, content: &str, messages: usize) -> Frame {
    Frame::Prompt(PromptRequest {
        request: RequestId(request),
        conversation: "a".into(),
        messages: vec![Message::new(Role::User, content); messages],
        raw: false,
        max_tokens: 8,
        sampling: Sampling::default(),
        reasoning: None,
        tools: ToolOffer::default(),
        logits: LogitOptions::default(),
    })
}

/// The sentence with which a question of this asker ended at once.
fn failure(actions: &[Action], to: RelayRoute) -> Option<&str> {
    sent(actions, to).into_iter().find_map(|frame| match frame {
        Frame::Answer(
            _,
            AnswerPart::End { stop: AnswerStop::Failed(sentence) | AnswerStop::Refused(sentence), .. },
        ) => Some(sentence.as_str()),
        _ => None,
    })
}

#[test]
fn a_hello_over_another_route_moves_nobody() {
    let mut host = host();
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    enter(&mut host, ROUTE_B, B, Proof::Link(0));
    frame(&mut host, ROUTE_B, A, Frame::Hello(hello()));
    let actions = frame(&mut host, ROUTE_B, A, Frame::Resume(RequestId(1), Received::default()));
    assert!(sent(&actions, ROUTE_B).is_empty(), "the transcript of A is nothing for B");
    let actions = frame(&mut host, ROUTE_A, A, Frame::Resume(RequestId(1), Received::default()));
    assert_eq!(sent(&actions, ROUTE_A).len(), 1, "A is where it was");
}

#[test]
fn only_the_host_turns_a_guest_away() {
    let mut guest = guest();
    frame(&mut guest, ROUTE_B, B, Frame::Refused("Go.".into()));
    assert_eq!(guest.view().membership, Membership::Waiting, "B is a guest itself");
    frame(&mut guest, RelayRoute(1), HOST, Frame::Refused("Go.".into()));
    assert_eq!(guest.view().membership, Membership::Outside);
}

#[test]
fn only_a_proof_makes_a_host() {
    let mut host = host();
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    assert!(host.view().coordinator, "a member is no second host");
    let actions = on(&mut host, met(ROUTE_B, B, Proof::Host));
    assert!(actions.iter().any(|action| matches!(action, Action::Close { reason: Some(_) })));
    assert!(!host.view().coordinator, "whoever holds the key later hosts the room");
}

#[test]
fn a_visitor_learns_nothing_until_it_is_let_in() {
    let mut host = host();
    let actions = enter(&mut host, ROUTE_A, A, Proof::Visitor);
    assert!(sent(&actions, ROUTE_A).iter().all(|frame| matches!(frame, Frame::Hello(_))), "only who the host is");
    assert!(!actions.iter().any(|action| matches!(action, Action::Admitted(_))));
    let actions = frame(&mut host, ROUTE_A, A, prompt(1, "hello", 1));
    assert!(actions.is_empty(), "its question is not heard");
    let lent = Contribution { budget: Bytes(1), binding: Bytes(1), bandwidth: 1.0, sync_millis: 1.0 };
    on(&mut host, Event::Contribute(lent));
    let actions = on(&mut host, Event::Tick);
    let heartbeats = [Frame::Heartbeat { sent: 0.0, status: None }];
    assert_eq!(sent(&actions, ROUTE_A), heartbeats.iter().collect::<Vec<_>>(), "nor is it told who is there");
    let actions = on(&mut host, Event::Admit { peer: A, allow: true });
    assert!(actions.iter().any(|action| matches!(action, Action::Admitted(A))));
    assert!(
        actions.iter().any(|action| matches!(action, Action::LetIn(A))),
        "nor is it a visitor to the relay any more"
    );
    assert!(sent(&actions, ROUTE_A).iter().any(|frame| matches!(frame, Frame::Room(_))));
}

#[test]
fn who_was_turned_away_is_not_heard_again_on_its_session() {
    let mut host = host();
    enter(&mut host, ROUTE_A, A, Proof::Visitor);
    on(&mut host, Event::Admit { peer: A, allow: false });
    assert!(frame(&mut host, ROUTE_A, A, Frame::Hello(hello())).is_empty());
    assert_eq!(members(&host), 1, "the host is not asked again");
}

#[test]
fn the_newest_session_of_a_peer_counts() {
    let mut host = host();
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    enter(&mut host, ROUTE_B, A, Proof::Link(0));
    assert!(
        frame(&mut host, ROUTE_A, A, Frame::Resume(RequestId(1), Received::default())).is_empty(),
        "the old one is over"
    );
    assert_eq!(frame(&mut host, ROUTE_B, A, Frame::Resume(RequestId(1), Received::default())).len(), 1);
    on(&mut host, Event::RouteLeft(ROUTE_A));
    assert_eq!(
        frame(&mut host, ROUTE_B, A, Frame::Resume(RequestId(1), Received::default())).len(),
        1,
        "its end changes nothing"
    );
}

#[test]
fn a_name_of_a_megabyte_is_refused_with_a_sentence() {
    let mut host = host();
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    on(&mut host, met(ROUTE_B, B, Proof::Link(0)));
    let long = Hello { name: "n".repeat(1 << 20), ..hello() };
    let actions = frame(&mut host, ROUTE_B, B, Frame::Hello(long));
    assert!(refusal(&actions, ROUTE_B).is_some_and(|sentence| sentence.contains("40 characters")));
    assert_eq!(members(&host), 2, "the room is as it was");
}

#[test]
fn the_largest_epoch_is_not_believed() {
    let mut host = host();
    on(&mut host, met(ROUTE_A, A, Proof::Link(0)));
    let claim = Hello { epoch: PlanEpoch(u32::MAX), ..hello() };
    frame(&mut host, ROUTE_A, A, Frame::Hello(claim));
    let coordinator = host.coordinator.as_ref().map(|coordinator| coordinator.next_epoch(&host.cx.members));
    assert_eq!(coordinator, Some(PlanEpoch(1)));
}

#[test]
fn budgets_and_speeds_are_numbers() {
    for lent in [(u64::MAX, 1.0), (1, f64::NAN), (1, -1.0)] {
        let mut host = host();
        on(&mut host, met(ROUTE_A, A, Proof::Link(0)));
        let (budget, bandwidth) = (Bytes(lent.0), lent.1);
        let contribution = Some(Contribution { budget, binding: Bytes(1), bandwidth, sync_millis: 1.0 });
        let actions = frame(&mut host, ROUTE_A, A, Frame::Hello(Hello { contribution, ..hello() }));
        assert!(refusal(&actions, ROUTE_A).is_some(), "{lent:?}");
    }
}

#[test]
fn a_crowd_at_the_door_is_bounded() {
    let mut host = host();
    for n in 0..40 {
        enter(&mut host, RelayRoute(100 + n), PeerId([100 + n as u8; 16]), Proof::Visitor);
    }
    assert_eq!(members(&host), 1 + limits::MAX_ASKING);
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    assert_eq!(members(&host), 2 + crate::limits::MAX_ASKING, "who has the link comes in all the same");
}

#[test]
fn whoever_says_hello_without_end_is_put_out() {
    let mut host = host();
    enter(&mut host, ROUTE_B, B, Proof::Link(0));
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    let mut last = Vec::new();
    for session in 0..200 {
        let actions = frame(&mut host, ROUTE_A, A, Frame::Hello(Hello { start: StartId(session), ..hello() }));
        if !actions.is_empty() {
            last = actions;
        }
    }
    assert!(refusal(&last, ROUTE_A).is_some_and(|sentence| sentence.contains("over and over")));
    assert_eq!(members(&host), 2, "the host and B");
}

#[test]
fn a_question_is_measured_before_it_is_rendered() {
    for (content, messages) in [("‹".repeat(6 << 20), 1), (String::new(), 100_000)] {
        let mut host = host();
        enter(&mut host, ROUTE_A, A, Proof::Link(0));
        let actions = frame(&mut host, ROUTE_A, A, prompt(1, &content, messages));
        let sentence = failure(&actions, ROUTE_A);
        assert!(sentence.is_some_and(|sentence| sentence.contains("too long")), "{messages} messages: {sentence:?}");
    }
}

#[test]
fn one_asker_cannot_fill_the_queue_or_push_out_what_is_kept_for_others() {
    let mut host = host();
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    enter(&mut host, ROUTE_B, B, Proof::Link(0));
    let over = (0..500).filter(|n| failure(&frame(&mut host, ROUTE_A, A, prompt(*n, "hello", 1)), ROUTE_A).is_some());
    assert_eq!(over.count(), 500 - crate::limits::MAX_WAITING_PER_PEER);
    let actions = frame(&mut host, ROUTE_B, B, prompt(1, "hello", 1));
    assert_eq!(failure(&actions, ROUTE_B), None, "B may still ask");
}

#[test]
fn pieces_are_read_a_few_at_a_time() {
    let mut host = host();
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    enter(&mut host, ROUTE_B, B, Proof::Link(0));
    let ask = |host: &mut Peer, route, peer, id| {
        let request = PieceRequest { id, file: 0, offset: 0, len: PieceRequest::MAX_LEN };
        let actions = frame(host, route, peer, Frame::PieceRequest(request));
        actions.iter().any(|action| matches!(action, Action::ReadPiece { .. }))
    };
    let read = (0..20_000).filter(|id| ask(&mut host, ROUTE_A, A, *id)).count();
    assert_eq!(read, crate::limits::MAX_PIECES as usize);
    assert!(ask(&mut host, ROUTE_B, B, 1), "another device loads on");
    on(&mut host, Event::PieceRead { peer: A, id: 0, bytes: Ok(Vec::new()) });
    assert!(ask(&mut host, ROUTE_A, A, 20_001), "the next one, once one is read");
    let large = PieceRequest { id: 1, file: 0, offset: 0, len: u32::MAX };
    let actions = frame(&mut host, ROUTE_B, B, Frame::PieceRequest(large));
    assert!(matches!(sent(&actions, ROUTE_B)[..], [Frame::Piece { failed: Some(_), .. }]));
}

fn let_in(actions: &[Action]) -> Vec<PeerId> {
    let admitted = |action: &Action| match action {
        Action::Admitted(peer) => Some(*peer),
        _ => None,
    };
    actions.iter().filter_map(admitted).collect()
}

fn put_out(actions: &[Action]) -> Vec<RelayRoute> {
    let out = |action: &Action| match action {
        Action::PutOut(route) => Some(*route),
        _ => None,
    };
    actions.iter().filter_map(out).collect()
}

#[test]
fn who_only_chats_is_let_in_at_the_relay_too() {
    let mut host = host();
    let invite =
        Invite { id: InviteId(7), kind: InviteKind::Chat, ask: false, expires: UnixSeconds(u32::MAX), uses: 2 };
    on(&mut host, Event::Invite(invite));
    let actions = enter(&mut host, ROUTE_A, A, Proof::Invite(invite));
    assert!(actions.iter().any(|action| matches!(action, Action::LetIn(A))));
    assert!(let_in(&actions).is_empty(), "it does not meet the others");
    let again = frame(&mut host, ROUTE_A, A, Frame::Hello(hello()));
    assert!(!again.iter().any(|action| matches!(action, Action::LetIn(_))), "once a session");
}

#[test]
fn a_ban_ends_the_invite_by_which_the_device_came() {
    let mut host = host();
    let invite = |id| Invite {
        id: InviteId(id),
        kind: InviteKind::Contribute,
        ask: true,
        expires: UnixSeconds(u32::MAX),
        uses: 2,
    };
    on(&mut host, Event::Invite(invite(7)));
    on(&mut host, Event::Invite(invite(8)));
    enter(&mut host, ROUTE_A, A, Proof::Invite(invite(7)));
    let actions = on(&mut host, Event::Ban(A));
    assert_eq!(put_out(&actions), [ROUTE_A]);
    let revoked = actions.iter().find_map(|action| match action {
        Action::DoorsChanged(doors) => Some(doors.revoked().for_nobody),
        _ => None,
    });
    assert_eq!(revoked, Some(vec![7]), "though it only asked to come in");
}

#[test]
fn a_removed_member_is_told_and_may_come_back() {
    let mut host = host();
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    let actions = on(&mut host, Event::Remove(A));
    assert!(refusal(&actions, ROUTE_A).is_some_and(|sentence| sentence.contains("removed this device")));
    assert_eq!(put_out(&actions), [ROUTE_A], "it leaves its seat at the relay");
    assert_eq!(members(&host), 1);
    assert!(frame(&mut host, ROUTE_A, A, Frame::Hello(hello())).is_empty(), "not over the same session");
    let actions = enter(&mut host, ROUTE_B, A, Proof::Link(0));
    assert_eq!((refusal(&actions, ROUTE_B), members(&host)), (None, 2));
}

#[test]
fn a_banned_device_stays_out_with_every_tab_and_the_others_get_another_secret() {
    let mut host = host();
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    enter(&mut host, ROUTE_B, B, Proof::Link(0));
    let (tab, route) = (PeerId([9; 16]), RelayRoute(9));
    let second_tab =
        Event::PeerConnected { route, peer: tab, device: device(A), proof: Proof::Link(0), at: UnixSeconds(0) };
    on(&mut host, second_tab);
    frame(&mut host, route, tab, Frame::Hello(hello()));
    let actions = on(&mut host, Event::Ban(A));
    for route in [ROUTE_A, route] {
        assert!(refusal(&actions, route).is_some_and(|sentence| sentence.contains("does not let it in again")));
    }
    assert!(actions.iter().any(|action| matches!(action, Action::Regroup(1))));
    assert_eq!(let_in(&actions), [B], "the new secret is for B only");
    let kept = actions.iter().find_map(|action| match action {
        Action::DoorsChanged(doors) => Some(doors.banned.len()),
        _ => None,
    });
    assert_eq!(kept, Some(1), "the ban is kept with the room");
    let actions = enter(&mut host, RelayRoute(10), A, Proof::Link(0));
    assert!(refusal(&actions, RelayRoute(10)).is_some_and(|sentence| sentence.contains("does not let")));
    assert_eq!(members(&host), 2, "the host and B");
    on(&mut host, Event::Unban(device(A)));
    enter(&mut host, RelayRoute(11), A, Proof::Link(0));
    assert_eq!(members(&host), 3);
}

#[test]
fn a_host_does_not_ban_its_own_browser() {
    let mut host = host();
    let own = Event::PeerConnected {
        route: ROUTE_A,
        peer: A,
        device: device(HOST),
        proof: Proof::Link(0),
        at: UnixSeconds(0),
    };
    on(&mut host, own);
    frame(&mut host, ROUTE_A, A, Frame::Hello(hello()));
    let actions = on(&mut host, Event::Ban(A));
    assert!(actions.iter().any(|action| matches!(action, Action::Notice { .. })));
    assert_eq!(members(&host), 2);
}

#[test]
fn only_the_host_puts_anybody_out() {
    let mut guest = guest();
    for event in [Event::Remove(B), Event::Ban(B)] {
        assert!(on(&mut guest, event).is_empty());
    }
}

fn invited(kind: InviteKind, ask: bool) -> (Peer, Proof) {
    let mut host = host();
    let invite = Invite { id: InviteId(1), kind, ask, expires: UnixSeconds(2_000), uses: 1 };
    on(&mut host, Event::Invite(invite));
    (host, Proof::Invite(invite))
}

#[test]
fn who_is_invited_to_chat_may_ask_but_gets_no_work_and_no_group_secret() {
    let (mut host, proof) = invited(InviteKind::Chat, false);
    on(&mut host, met(ROUTE_A, A, proof));
    let contribution = Some(Contribution { budget: Bytes(1), binding: Bytes(1), bandwidth: 1.0, sync_millis: 1.0 });
    let actions = frame(&mut host, ROUTE_A, A, Frame::Hello(Hello { contribution, ..hello() }));
    assert!(let_in(&actions).is_empty(), "it would reach the others");
    let lent = host.view().room.and_then(|room| room.members.iter().find(|member| member.peer == A)?.lent);
    assert_eq!(lent, None, "what it lends is not taken");
    assert!(!frame(&mut host, ROUTE_A, A, prompt(1, "hello", 1)).is_empty(), "its question is heard");
    let request = PieceRequest { id: 1, file: 0, offset: 0, len: 1 };
    assert!(frame(&mut host, ROUTE_A, A, Frame::PieceRequest(request)).is_empty(), "nor does it read the host's file");
}

#[test]
fn an_invite_that_asks_first_waits_for_the_host_and_counts_once_it_says_yes() {
    let (mut host, proof) = invited(InviteKind::Contribute, true);
    assert!(let_in(&enter(&mut host, ROUTE_A, A, proof)).is_empty());
    assert!(frame(&mut host, ROUTE_A, A, prompt(1, "hello", 1)).is_empty(), "its question is not heard yet");
    enter(&mut host, ROUTE_B, B, proof);
    assert_eq!(let_in(&on(&mut host, Event::Admit { peer: A, allow: true })), [A]);
    let actions = on(&mut host, Event::Admit { peer: B, allow: true });
    assert!(refusal(&actions, ROUTE_B).is_some_and(|sentence| sentence.contains("used up")), "one use, and A has it");
}

#[test]
fn who_was_let_in_before_a_reload_of_the_host_is_not_asked_about_again() {
    let mut first = host();
    enter(&mut first, ROUTE_A, A, Proof::Visitor);
    on(&mut first, Event::Admit { peer: A, allow: true });
    let doors = first.view().doors.cloned().unwrap_or_default();
    let mut again = peer(HOST);
    on(&mut again, Event::Host(HostCommand { doors, ..examples::command() }));
    on(&mut again, Event::Connected);
    assert_eq!(let_in(&enter(&mut again, ROUTE_A, A, Proof::Visitor)), [A]);
    assert!(
        let_in(&enter(&mut again, ROUTE_B, B, Proof::Group)).is_empty(),
        "a secret that was passed on is not enough"
    );
}

/// A stage counts what holders have computed for it. To a host that counts from nothing on, none of that is new.
#[test]
fn another_session_of_a_host_and_another_host_hear_nothing_of_what_holders_did_before() {
    let another = PeerId([9; 16]);
    let again = || Frame::Hello(Hello { start: StartId(8), ..hello() });
    type Change = fn(&mut Peer, PeerId, Frame);
    let changes: [(&str, Change); 3] = [
        ("it reloads", |guest, _, again| drop(frame(guest, RelayRoute(1), HOST, again))),
        ("another one comes", |guest, another, _| drop(on(guest, met(RelayRoute(9), another, Proof::Host)))),
        ("this tab goes to another room", |guest, _, _| drop(on(guest, Event::Leave(Leaving::ForGood)))),
    ];
    for (what, change) in changes {
        let mut guest = guest();
        guest.cx.holders.sent(B, 4_096);
        frame(&mut guest, RelayRoute(1), HOST, Frame::Hello(hello()));
        assert_eq!(guest.cx.holders.reports(|_| 0).len(), 1, "the same session");
        change(&mut guest, another, again());
        assert_eq!(guest.cx.holders.reports(|_| 0), [], "{what}");
    }
}

#[test]
fn who_was_let_in_to_chat_is_asked_about_again_before_it_may_do_more() {
    let contribute =
        Invite { id: InviteId(2), kind: InviteKind::Contribute, ask: true, expires: UnixSeconds(2_000), uses: 1 };
    for more in [Proof::Visitor, Proof::Invite(contribute)] {
        let (mut host, proof) = invited(InviteKind::Chat, false);
        on(&mut host, Event::Invite(contribute));
        enter(&mut host, ROUTE_A, A, proof);
        let actions = enter(&mut host, ROUTE_A, A, more);
        assert_eq!(let_in(&actions), [], "{more:?}: the host has not said yes");
        let doors = host.view().doors.cloned().unwrap_or_default();
        assert_eq!(doors.admitted, [], "{more:?}");
        let request = PieceRequest { id: 1, file: 0, offset: 0, len: 1 };
        let actions = frame(&mut host, ROUTE_A, A, Frame::PieceRequest(request));
        assert!(actions.is_empty(), "{more:?}: nor is the file read");
        assert_eq!(let_in(&on(&mut host, Event::Admit { peer: A, allow: true })), [A], "{more:?}: now it has");
    }
}

#[test]
fn a_member_that_was_silent_while_another_was_banned_gets_the_new_secret() {
    let mut host = host();
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    enter(&mut host, ROUTE_B, B, Proof::Link(0));
    for second in 0..25 {
        host.on(Event::Tick, Millis(1_000.0 * f64::from(second)));
        frame(&mut host, ROUTE_B, B, Frame::Heartbeat { sent: 0.0, status: None });
    }
    assert_eq!(members(&host), 2, "A is given up, and its session is still up");
    assert_eq!(let_in(&on(&mut host, Event::Ban(B))), []);
    assert_eq!(let_in(&frame(&mut host, ROUTE_A, A, Frame::Hello(hello()))), [A], "it has only the old one");
}

/// Keys of tabs cost nothing, so anybody can have thousands.
#[test]
fn a_crowd_of_keys_does_not_hide_a_member_from_a_ban() {
    let mut host = host();
    on(&mut host, met(ROUTE_A, A, Proof::Link(0)));
    for n in 0..5_000u32 {
        let mut key = [0; 16];
        key[..4].copy_from_slice(&n.to_le_bytes());
        on(&mut host, met(ROUTE_B, PeerId(key), Proof::Link(0)));
    }
    frame(&mut host, ROUTE_A, A, Frame::Hello(hello()));
    let actions = on(&mut host, Event::Ban(A));
    assert!(refusal(&actions, ROUTE_A).is_some_and(|sentence| sentence.contains("does not let it in again")));
    assert!(actions.iter().any(|action| matches!(action, Action::Regroup(1))));
}

#[test]
fn who_is_put_out_keeps_nothing_of_the_room() {
    let mut guest = guest();
    let actions = frame(&mut guest, RelayRoute(1), HOST, Frame::Refused("Go.".into()));
    assert!(actions.iter().any(|action| matches!(action, Action::Unload)), "its part is not loaded to the end");
    assert!(actions.iter().any(|action| matches!(action, Action::Close { reason: Some(_) })));
}

fn room_frames(actions: &[Action], to: RelayRoute) -> usize {
    let of_room = |frame: &&Frame| matches!(frame, Frame::Room(_) | Frame::RoomUpdate(..));
    sent(actions, to).into_iter().filter(of_room).count()
}

#[test]
fn names_that_change_are_told_to_the_others_together() {
    let mut host = host();
    enter(&mut host, ROUTE_A, A, Proof::Link(0));
    enter(&mut host, ROUTE_B, B, Proof::Link(0));
    let mut told = 0;
    for n in 0..40 {
        let (at, hello) = (Millis(f64::from(n) * 250.0), Hello { name: format!("name {n}"), ..hello() });
        let event = Event::Frame { route: ROUTE_A, from: A, frame: Frame::Hello(hello) };
        told += room_frames(&host.on(event, at), ROUTE_B);
        told += room_frames(&host.on(Event::Tick, at), ROUTE_B);
        host.on(Event::Frame { route: ROUTE_B, from: B, frame: Frame::Heartbeat { sent: 0.0, status: None } }, at);
    }
    assert!((8..=11).contains(&told), "once a second in ten seconds, not {told} times");
    let actions = host.on(Event::Tick, Millis(11_000.0));
    assert_eq!(room_frames(&actions, ROUTE_B), 1, "the last one is told, too");
    assert!(host.view().room.is_some_and(|room| room.members.iter().any(|member| member.name == "name 39")));
}

#[test]
fn names_of_those_who_ask_are_told_together_too() {
    let mut host = host();
    enter(&mut host, ROUTE_B, B, Proof::Link(0));
    let mut told = room_frames(&enter(&mut host, ROUTE_A, A, Proof::Visitor), ROUTE_B);
    for n in 0..40 {
        let hello = Hello { name: format!("name {n}"), ..hello() };
        told += room_frames(&frame(&mut host, ROUTE_A, A, Frame::Hello(hello)), ROUTE_B);
    }
    assert!(told <= 1, "told {told} times");
}

/// 4 MiB of postcard hold some hundred thousand members without names.
#[test]
fn a_room_with_more_than_any_room_has_is_not_shown() {
    let mut guest = guest();
    let Some(mut view) = host().view().room.cloned() else { panic!("a host shows its room") };
    frame(&mut guest, RelayRoute(1), HOST, Frame::Room(Box::new(view.clone())));
    let member = view.members[0].clone();
    view.members = (0..100_000u32)
        .map(|n| {
            let mut id = [0; 16];
            id[..4].copy_from_slice(&n.to_le_bytes());
            MemberView { peer: PeerId(id), ..member.clone() }
        })
        .collect();
    let actions = frame(&mut guest, RelayRoute(1), HOST, Frame::Room(Box::new(view)));
    assert!(!actions.iter().any(|action| matches!(action, Action::ViewChanged)));
    assert_eq!(members(&guest), 1, "the page shows the room as it was");
}

/// 4 MiB of postcard hold 200,000 changes, and removing a device visits every expert.
#[test]
fn changes_of_a_plan_are_bounded_and_so_are_devices_that_are_struck_off() {
    let with = |changes| Residency { epoch: PlanEpoch(1), version: 1, changes };
    let add = |peer| ResidencyChange::Add { block: BlockIndex(0), expert: ExpertId(0), peer };
    let peer = |n: u32| {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&n.to_le_bytes());
        PeerId(id)
    };
    assert!(limits::is_residency(&with(vec![add(A); 100_000])), "25,000 experts move four times");
    assert!(!limits::is_residency(&with(vec![add(A); 200_000])));
    assert!(!limits::is_residency(&with(vec![ResidencyChange::Drop(A); 2_000])), "one after the other");
    assert!(!limits::is_residency(&with((0..2_000).map(|n| add(peer(n))).collect())), "more devices than a room has");
}
