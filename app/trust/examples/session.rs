//! A sealed session between two devices, and what somebody in between sees of it: `cargo run -p potluck-trust --example session`.

use potluck_plan::Millis;
use potluck_trust::{Action, IdentityKeys, NodeIdentity, OwnerKey, RoomRole, RoomSecret, Route, Sessions};
use ring::rand::{SecureRandom, SystemRandom};

const HOST: Route = Route(1);
const GUEST: Route = Route(2);
const NOW: Millis = Millis(0.0);

fn random(bytes: &mut [u8]) {
    SystemRandom::new().fill(bytes).expect("the system has random numbers");
}

fn main() {
    // The owner's key names the room. Its secret is in the link that the host passes on.
    let (key, secret) = (OwnerKey::generate(random), RoomSecret::generate(random));
    let room = key.room();
    println!("the link: /r/{room}#{}", secret.text());
    let identity = || NodeIdentity::new(&IdentityKeys::generate(random), random);
    let owner = RoomRole::Owner { key, secret: secret.clone(), link: 0, generation: 0, visible: false };
    let mut host = Sessions::new(identity(), room.clone(), owner, random);
    let mut guest = Sessions::new(identity(), room, RoomRole::Guest(secret), random);

    // The relay says who is there. It need not be believed: the handshake proves who owns the room, and who has the link.
    host.welcomed(HOST, Some(HOST), &[GUEST], NOW);
    guest.welcomed(GUEST, Some(HOST), &[HOST], NOW);
    while carry(&mut guest, &mut host, "guest", GUEST) | carry(&mut host, &mut guest, "host", HOST) {}

    let mut sealed = guest.seal(HOST, b"why is the sky blue?").expect("the session is up");
    println!("the relay sees {} bytes, which begin with {:02x?}", sealed.len(), &sealed[..12]);
    host.received(GUEST, &sealed, NOW);
    carry(&mut host, &mut guest, "host", HOST);

    // One bit on the way, and the session ends.
    sealed = guest.seal(HOST, b"and the sea?").expect("the session is up");
    *sealed.last_mut().expect("a message has bytes") ^= 1;
    host.received(GUEST, &sealed, NOW);
    carry(&mut host, &mut guest, "host", HOST);
}

/// Carries what one side sends to the other, and prints what it learns. Returns whether there was anything.
fn carry(from: &mut Sessions, to: &mut Sessions, who: &str, from_route: Route) -> bool {
    let actions = from.take_actions();
    let any = !actions.is_empty();
    for action in actions {
        match action {
            Action::Send(_, message) => to.received(from_route, &message, NOW),
            Action::Up(_, other, proof, words) => {
                println!("{who}: a session with {}, which proves: {proof:?}; compare \"{words}\"", other.peer);
            }
            Action::Frame(_, _, frame) => println!("{who}: reads {:?}", String::from_utf8_lossy(&frame)),
            Action::Down(_, why) => println!("{who}: the session has ended: {why}"),
            other => println!("{who}: {other:?}"),
        }
    }
    any
}
