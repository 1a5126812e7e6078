//! Two connections to one room of a real relay. The browser is simulated: its channels are queues in this process.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::cell::RefCell;
use std::rc::Rc;

use common::*;
use futures::StreamExt;
use futures::channel::mpsc;
use futures::stream::LocalBoxStream;
use potluck_node::events::{Receiver, channel};
use potluck_node::platform::{SameBrowser, Socket, SocketMessage, SocketSender};
use potluck_node::relay::Relay;
use potluck_node::room::{self, LineOptions, LineState, Listing, RoomLine};
use potluck_protocol::Frame;
use potluck_swarm::{Event, Proof, RelayRoute};
use potluck_trust::{IdentityKeys, OwnerKey, RoomRole, RoomSecret};

type Met = mpsc::UnboundedSender<(u32, Socket)>;

/// Connects every newcomer with everyone who is there.
#[derive(Clone, Default)]
struct Browser(Rc<RefCell<Vec<(u32, Met)>>>);

impl SameBrowser for Browser {
    fn discover(&self, _: &str, route: u32) -> LocalBoxStream<'static, (u32, Socket)> {
        let (sender, met) = mpsc::unbounded();
        for (other, there) in self.0.borrow().iter() {
            let (mine, theirs) = pair();
            // Fails if the tab is gone.
            let _ = there.unbounded_send((route, theirs));
            let _ = sender.unbounded_send((*other, mine));
        }
        self.0.borrow_mut().push((route, sender));
        met.boxed_local()
    }
}

fn pair() -> (Socket, Socket) {
    let ((to_left, left), (to_right, right)) = (mpsc::unbounded(), mpsc::unbounded());
    let socket = |to, messages: mpsc::UnboundedReceiver<SocketMessage>| Socket {
        sender: Rc::new(Queue(to)),
        messages: messages.boxed_local(),
    };
    (socket(to_right, left), socket(to_left, right))
}

struct Queue(mpsc::UnboundedSender<SocketMessage>);

impl SocketSender for Queue {
    fn send(&self, message: SocketMessage) {
        // Fails if the other end is gone.
        let _ = self.0.unbounded_send(message);
    }

    fn close(&self) {
        self.0.close_channel();
    }
}

struct Tab {
    line: RoomLine,
    events: Receiver<room::Event>,
}

impl Tab {
    fn open(role: RoomRole, origin: &str, same_browser: Rc<dyn SameBrowser>) -> Self {
        let platform = potluck_node::native::platform(folder("direct"), &potluck_node::native::Network::default());
        let platform = potluck_node::platform::Platform { same_browser, ..platform };
        let (sender, events) = channel();
        let relay = Relay::new(platform.clone(), origin);
        let keys = IdentityKeys::generate(platform.random);
        let (room, listing, revoked) = (owner().room(), Listing::default(), Default::default());
        let options = LineOptions {
            relay,
            room,
            role,
            listing,
            term: Default::default(),
            revoked,
            earlier_links: Default::default(),
            keys,
            connects: false,
        };
        Self { line: RoomLine::open(&platform, options, sender.sink()), events }
    }

    /// The route of the next peer whose session is up.
    async fn met(&mut self, wanted: Proof) -> RelayRoute {
        loop {
            if let Event::PeerConnected { route, proof, .. } = self.event().await {
                assert_eq!(proof, wanted);
                return route;
            }
        }
    }

    async fn event(&mut self) -> Event {
        loop {
            match self.events.next().await.unwrap() {
                room::Event::Member(event) | room::Event::Frame(event, _) => return event,
                _ => {}
            }
        }
    }

    fn send(&self, to: RelayRoute, number: usize) {
        let frame = Frame::Probe { sent: number as f64, bytes: vec![7; 100 * (number % 30)] };
        assert_eq!(self.line.members.send([(to, frame)]), []);
    }

    /// The number of the next probe, and its route.
    async fn probe(&mut self) -> (RelayRoute, usize) {
        loop {
            if let Event::Frame { route, frame: Frame::Probe { sent, .. }, .. } = self.event().await {
                return (route, sent as usize);
            }
        }
    }
}

fn owner() -> OwnerKey {
    OwnerKey::from_seed([7; 32])
}

fn host_role() -> RoomRole {
    RoomRole::Owner { key: owner(), secret: RoomSecret::from_bytes([9; 16]), link: 0, generation: 0, visible: false }
}

fn guest_role() -> RoomRole {
    RoomRole::Guest(RoomSecret::from_bytes([9; 16]))
}

/// Two tabs in one room, and the route of each as the other sees it.
async fn room(origin: &str, same_browser: [Rc<dyn SameBrowser>; 2]) -> ([Tab; 2], [RelayRoute; 2]) {
    let [first, second] = same_browser;
    let mut host = Tab::open(host_role(), origin, first);
    assert!(matches!(host.event().await, Event::Connected));
    let mut guest = Tab::open(guest_role(), origin, second);
    let (host_route, route) = (guest.met(Proof::Host).await, host.met(Proof::Link(0)).await);
    ([host, guest], [host_route, route])
}

#[test]
fn frames_stay_in_order_when_they_switch_to_the_channel_and_then_bypass_the_relay() {
    test(async {
        let relay = relay(&folder("models"), 0).await;
        let browser = Browser::default();
        let ([host, mut guest], [host_route, route]) =
            room(&relay.origin, [Rc::new(browser.clone()), Rc::new(browser)]).await;
        const FRAMES: usize = 2000;
        for number in 0..FRAMES {
            host.send(route, number);
            if number % 50 == 0 {
                // Lets the channel and the relay run.
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        }
        for number in 0..FRAMES {
            assert_eq!(guest.probe().await, (host_route, number), "in order, once, of the host's route");
        }
        assert!(guest.line.members.direct_frames() > 0, "some must have come directly");
        let (before, forwarded) = (guest.line.members.direct_frames(), "potluck_relay_frames_forwarded_total");
        let relayed = relay.metric(forwarded).await;
        for number in 0..100 {
            host.send(route, number);
            assert_eq!(guest.probe().await, (host_route, number));
        }
        assert_eq!(guest.line.members.direct_frames() - before, 100);
        assert_eq!(relay.metric(forwarded).await, relayed, "nothing of it went through the relay");
        drop((host, guest));
        relay.stop().await;
    });
}

#[test]
fn a_tab_that_leaves_and_returns_is_discovered_again() {
    test(async {
        let relay = relay(&folder("models"), 0).await;
        let browser = Browser::default();
        let ([mut host, mut guest], [host_route, route]) =
            room(&relay.origin, [Rc::new(browser.clone()), Rc::new(browser.clone())]).await;
        host.send(route, 1);
        assert_eq!(guest.probe().await, (host_route, 1));
        drop(guest);
        while !matches!(host.event().await, Event::RouteLeft(gone) if gone == route) {}
        host.send(route, 2);
        let mut again = Tab::open(guest_role(), &relay.origin, Rc::new(browser));
        let joined = host.met(Proof::Link(0)).await;
        again.met(Proof::Host).await;
        for number in 3.. {
            host.send(joined, number);
            assert_eq!(again.probe().await, (host_route, number));
            if again.line.members.direct_frames() > 0 {
                break;
            }
        }
        drop((host, again));
        relay.stop().await;
    });
}

/// Discovers tabs, but drops everything sent on their channels.
struct Deaf(Browser);

impl SameBrowser for Deaf {
    fn discover(&self, room: &str, route: u32) -> LocalBoxStream<'static, (u32, Socket)> {
        let nothing = || futures::stream::pending().boxed_local();
        self.0
            .discover(room, route)
            .map(move |(route, socket)| (route, Socket { messages: nothing(), ..socket }))
            .boxed_local()
    }
}

#[test]
fn a_tab_that_does_not_answer_on_its_channel_is_reached_through_the_relay() {
    test(async {
        let relay = relay(&folder("models"), 0).await;
        let browser = Browser::default();
        let ([mut host, mut guest], [host_route, route]) =
            room(&relay.origin, [Rc::new(browser.clone()), Rc::new(Deaf(browser))]).await;
        for number in 0..100 {
            host.send(route, number);
            assert_eq!(guest.probe().await, (host_route, number));
            guest.send(host_route, number);
            assert_eq!(host.probe().await, (route, number));
        }
        assert_eq!((host.line.members.direct_frames(), guest.line.members.direct_frames()), (0, 0));
        drop((host, guest));
        relay.stop().await;
    });
}

/// What a flood of a guest does before the host has let it in: the host takes a little of it, and the relay puts it out.
#[test]
fn a_flood_of_somebody_who_is_not_let_in_costs_its_seat() {
    test(async {
        let relay = relay(&folder("models"), 0).await;
        let nobody = || Rc::new(Browser::default());
        let ([mut host, mut guest], [host_route, route]) = room(&relay.origin, [nobody(), nobody()]).await;
        (0..1_000).for_each(|number| guest.send(host_route, number));
        let mut taken = 0;
        loop {
            match host.event().await {
                Event::Frame { .. } => taken += 1,
                Event::RouteLeft(gone) if gone == route && relay.metric(PUT_OUT).await == 1 => break,
                _ => {}
            }
        }
        // A burst of 128, and sixteen a second after it.
        assert!(taken < 256, "{taken} frames were taken");
        let sentence = loop {
            if let room::Event::Line(LineState::Closed(sentence)) = guest.events.next().await.unwrap() {
                break sentence;
            }
        };
        assert_eq!(sentence, "The host removed this device from the room.");
        drop((host, guest));
        relay.stop().await;
    });
}

const PUT_OUT: &str = "potluck_relay_evictions_total{reason=\"put-out\"}";

/// Waiting frames are bounded, even from a member that was let in; before, all of them waited.
#[test]
fn what_waits_of_one_member_is_bounded_and_the_two_begin_anew() {
    test(async {
        let relay = relay(&folder("models"), 0).await;
        let nobody = || Rc::new(Browser::default());
        let ([host, mut guest], [host_route, route]) = room(&relay.origin, [nobody(), nobody()]).await;
        // The guest does not handle what comes: nothing of it is taken from its queue.
        (0..10_000).for_each(|number| host.send(route, number));
        while relay.metric("potluck_relay_frames_forwarded_total").await < 10_000 {
            tokio::task::yield_now().await;
        }
        let mut taken = 0;
        loop {
            match guest.event().await {
                Event::Frame { .. } => taken += 1,
                Event::RouteLeft(_) => break,
                _ => {}
            }
        }
        assert_eq!(taken, 4_096);
        let members = guest.line.members.clone();
        let ticks = async {
            loop {
                members.tick();
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        };
        tokio::select! {
            again = guest.met(Proof::Host) => assert_eq!(again, host_route, "another session"),
            () = ticks => {}
        }
        drop((host, guest));
        relay.stop().await;
    });
}
