//! Members against others that send far too much.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use futures::future::LocalBoxFuture;
use potluck_trust::{IdentityKeys, OwnerKey, RoomSecret};

use super::*;
use crate::events::{Receiver, channel};
use crate::native::{Network, platform};
use crate::platform::SocketMessage;
use crate::relay::Relay;
use crate::room::Listing;

const HOST: u32 = 1;
const GUEST: u32 = 2;

/// Time that passes when a test says so.
#[derive(Default)]
struct Steps(Cell<f64>);

impl Clock for Steps {
    fn now(&self) -> Millis {
        Millis(self.0.get())
    }

    fn unix_seconds(&self) -> u64 {
        1_000_000
    }

    fn sleep(&self, _: f64) -> LocalBoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// The relay's connection: what was sent over it.
#[derive(Default)]
struct Sent(RefCell<Vec<SocketMessage>>);

impl SocketSender for Sent {
    fn send(&self, message: SocketMessage) {
        self.0.borrow_mut().push(message);
    }

    fn close(&self) {}
}

impl Sent {
    /// The requests to the relay of this kind.
    fn asked(&self, kind: &str) -> usize {
        let is = |message: &&SocketMessage| matches!(message, SocketMessage::Text(text) if text.contains(kind));
        self.0.borrow().iter().filter(is).count()
    }
}

/// A peer whose relay is this test. Nobody handles its events, so they wait.
struct End {
    route: u32,
    members: Members,
    sent: Rc<Sent>,
    _events: Receiver<Event>,
}

impl End {
    fn new(route: u32, role: RoomRole, clock: Rc<dyn Clock>) -> Self {
        let platform = Platform { clock, ..platform(std::env::temp_dir(), &Network::default()) };
        let options = LineOptions {
            relay: Relay::new(platform.clone(), "http://relay.example"),
            room: owner().room(),
            role,
            listing: Listing::default(),
            revoked: Default::default(),
            earlier_links: Default::default(),
            keys: IdentityKeys::generate(platform.random),
            connects: false,
            term: Default::default(),
        };
        let (events, receiver) = channel();
        let members = Members::new(&platform, &options, events.sink());
        let sent = Rc::new(Sent::default());
        let welcome = Welcome { own: route, owner: Some(HOST), members: &[HOST], window: u64::MAX, takes_parts: false };
        members.connect(sent.clone(), &welcome, &platform);
        Self { route, members, sent, _events: receiver }
    }

    /// Carries what it has sent to the other one, as the relay does. False if that is nothing.
    fn carry(&self, to: &End) -> bool {
        let sent = std::mem::take(&mut *self.sent.0.borrow_mut());
        let mut carried = false;
        for message in sent {
            match message {
                SocketMessage::Binary(bytes) => {
                    let (route, message) = relay_api::Route::split(&bytes).unwrap();
                    assert_eq!(route.0, to.route);
                    to.members.relayed(&relay_api::Route(self.route).prepend(message));
                    carried = true;
                }
                text => self.sent.0.borrow_mut().push(text),
            }
        }
        carried
    }
}

fn owner() -> OwnerKey {
    OwnerKey::from_seed([7; 32])
}

fn host(clock: Rc<dyn Clock>) -> End {
    let secret = RoomSecret::from_bytes([9; 16]);
    End::new(HOST, RoomRole::Owner { key: owner(), secret, link: 0, generation: 0, visible: false }, clock)
}

/// Whoever had a key of the room could send the host what a member may send, as long as it shook no hands.
#[test]
fn whoever_only_sends_and_never_shakes_hands_is_put_out() {
    let host = host(Rc::new(Steps::default()));
    host.members.joined(GUEST, false);
    let message = relay_api::Route(GUEST).prepend(&[0; 100]);
    let opened = || host.members.sealing().messages;
    (0..1_000).for_each(|_| host.members.relayed(&message));
    assert_eq!(opened(), 128, "of 1,000 messages");
    assert_eq!(host.sent.asked("put-out"), 1);
}

/// A member that muted its host could do nothing any more, and did not know why.
#[test]
fn a_member_leaves_a_host_that_floods_it_and_mutes_it_not() {
    let clock = Rc::new(Steps::default());
    let host = host(clock.clone());
    let guest = End::new(GUEST, RoomRole::Guest(RoomSecret::from_bytes([9; 16])), clock.clone());
    host.members.joined(GUEST, false);
    for _ in 0..20 {
        clock.0.set(clock.0.get() + 60_000.0);
        guest.members.tick();
        // Handshakes take three messages, and nobody repeats them before more time has passed.
        for _ in 0..8 {
            guest.carry(&host);
            host.carry(&guest);
        }
        host.members.send((0..5_000).map(|_| (RelayRoute(GUEST), Frame::Writing)));
        host.carry(&guest);
        if guest.members.fault.borrow().is_some() {
            break;
        }
    }
    let fault = guest.members.take_fault();
    assert!(fault.as_ref().is_some_and(|sentence| sentence.contains("The host sent far more")), "{fault:?}");
    assert_eq!(guest.sent.asked("mute"), 0);
}
