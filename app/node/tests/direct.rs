//! Two connections to one room of a real relay. The browser is simulated: its channels are queues in this process.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::cell::RefCell;
use std::rc::Rc;

use common::*;
use futures::StreamExt;
use futures::channel::mpsc;
use futures::stream::LocalBoxStream;
use potluck_node::events::{InputQueue, channel};
use potluck_node::node::Input;
use potluck_node::platform::{SameBrowser, Socket, SocketMessage, SocketSender};
use potluck_node::relay::Relay;
use potluck_node::room::{LineOptions, RoomLine};
use potluck_plan::PeerId;
use potluck_protocol::Frame;
use potluck_swarm::{Destination, Event, RelayRoute};

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
    events: InputQueue,
}

impl Tab {
    fn open(number: u8, origin: &str, room: &str, same_browser: Rc<dyn SameBrowser>) -> Self {
        let platform = potluck_node::native::platform(folder("direct"), &potluck_node::native::Network::default());
        let platform = potluck_node::platform::Platform { same_browser, ..platform };
        let (inputs, events) = channel();
        let relay = Relay::new(platform.clone(), origin);
        let options = LineOptions { relay, room: room.to_owned(), create: true, listing: None };
        Self { line: RoomLine::open(&platform, PeerId([number; 16]), options, inputs), events }
    }

    async fn event(&mut self) -> Event {
        loop {
            if let Input::Event(event) = self.events.next().await.unwrap() {
                return event;
            }
        }
    }

    fn send(&self, to: Destination, number: usize) {
        self.line.send(to, &Frame::Probe { sent: number as f64, bytes: vec![7; 100 * (number % 30)] }).unwrap();
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

/// Two tabs in one room, and the route of each as the other sees it.
async fn room(origin: &str, same_browser: [Rc<dyn SameBrowser>; 2]) -> ([Tab; 2], [RelayRoute; 2]) {
    let [first, second] = same_browser;
    let mut host = Tab::open(1, origin, "directly234567ab", first);
    assert!(matches!(host.event().await, Event::Connected { members } if members.is_empty()));
    let mut guest = Tab::open(2, origin, "directly234567ab", second);
    let Event::Connected { members } = guest.event().await else { panic!("not in the room") };
    let Event::RouteJoined(route) = host.event().await else { panic!("nobody came") };
    ([host, guest], [members[0], route])
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
            let everyone = number % 10 == 9;
            host.send(if everyone { Destination::Everyone } else { Destination::Route(route) }, number);
            if number % 50 == 0 {
                // Lets the channel and the relay run.
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        }
        for number in 0..FRAMES {
            assert_eq!(guest.probe().await, (host_route, number), "in order, once, of the host's route");
        }
        assert!(guest.line.direct_frames() > 0, "some must have come directly");
        let (before, forwarded) = (guest.line.direct_frames(), "potluck_relay_frames_forwarded_total");
        let relayed = relay.metric(forwarded).await;
        for number in 0..100 {
            host.send(Destination::Route(route), number);
            assert_eq!(guest.probe().await, (host_route, number));
        }
        assert_eq!(guest.line.direct_frames() - before, 100);
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
        host.send(Destination::Route(route), 1);
        assert_eq!(guest.probe().await, (host_route, 1));
        drop(guest);
        while !matches!(host.event().await, Event::RouteLeft(gone) if gone == route) {}
        host.send(Destination::Route(route), 2);
        let mut again = Tab::open(2, &relay.origin, "directly234567ab", Rc::new(browser));
        let joined = loop {
            if let Event::RouteJoined(route) = host.event().await {
                break route;
            }
        };
        for number in 3.. {
            host.send(Destination::Route(joined), number);
            assert_eq!(again.probe().await, (host_route, number));
            if again.line.direct_frames() > 0 {
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
            host.send(Destination::Route(route), number);
            assert_eq!(guest.probe().await, (host_route, number));
            guest.send(Destination::Route(host_route), number);
            assert_eq!(host.probe().await, (route, number));
        }
        assert_eq!((host.line.direct_frames(), guest.line.direct_frames()), (0, 0));
        drop((host, guest));
        relay.stop().await;
    });
}
