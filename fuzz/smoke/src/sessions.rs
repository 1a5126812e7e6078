//! What a relay or a stranger sends into the handshakes and sealed sessions of a peer.

use std::sync::LazyLock;

use potluck_gguf::WriteError;
use potluck_plan::Millis;
use potluck_trust::{Action, IdentityKeys, NodeIdentity, OwnerKey, RoomRole, RoomSecret, Route, Sessions};

const HOST: Route = Route(1);
const GUEST: Route = Route(2);

/// The same bytes in every run.
fn fixed(bytes: &mut [u8]) {
    bytes.iter_mut().zip(1..).for_each(|(byte, value)| *byte = value);
}

/// Identities and keys are made once: a handshake costs less than they do.
struct Fixtures {
    host: NodeIdentity,
    guest: NodeIdentity,
    owner: OwnerKey,
    secret: RoomSecret,
    /// Nothing is random here, so every pair exchanges the same messages: sender after sender, the guest first.
    handshake: [Vec<Vec<u8>>; MESSAGES],
    /// The guest's first frame.
    frame: Vec<u8>,
}

/// Messages of a handshake.
const MESSAGES: usize = 3;

static FIXTURES: LazyLock<Fixtures> = LazyLock::new(|| {
    let identity =
        |tab: u8| NodeIdentity::new(&IdentityKeys { device: [tab; 32].into(), tab: [tab + 1; 32].into() }, fixed);
    let (owner, secret) = (OwnerKey::from_seed([7; 32]), RoomSecret::from_bytes([9; 16]));
    let handshake = std::array::from_fn(|_| Vec::new());
    let frame = Vec::new();
    let mut fixtures = Fixtures { host: identity(10), guest: identity(20), owner, secret, handshake, frame };
    let (mut host, mut guest) = (fixtures.host(0), fixtures.guest(0));
    for number in 0..MESSAGES {
        let (from, to, route) =
            if number % 2 == 0 { (&mut guest, &mut host, GUEST) } else { (&mut host, &mut guest, HOST) };
        fixtures.handshake[number] = sent(from);
        fixtures.handshake[number].iter().for_each(|message| to.received(route, message, Millis(0.0)));
    }
    fixtures.frame = guest.seal(HOST, b"frame").expect("the handshake is over");
    fixtures
});

impl Fixtures {
    /// The host after the first `messages` messages of the handshake.
    fn host(&self, messages: usize) -> Sessions {
        let (key, secret) = (self.owner.clone(), self.secret.clone());
        let role = RoomRole::Owner { key, secret, link: 0, generation: 0, visible: true };
        let mut host = Sessions::new(self.host.clone(), self.owner.room(), role, fixed);
        host.welcomed(HOST, Some(HOST), &[GUEST], Millis(0.0));
        let received = self.handshake.iter().take(messages).step_by(2).flatten();
        received.for_each(|message| host.received(GUEST, message, Millis(0.0)));
        host
    }

    /// The guest at the same point.
    fn guest(&self, messages: usize) -> Sessions {
        let role = RoomRole::Guest(self.secret.clone());
        let mut guest = Sessions::new(self.guest.clone(), self.owner.room(), role, fixed);
        guest.welcomed(GUEST, Some(HOST), &[HOST], Millis(0.0));
        let received = self.handshake.iter().take(messages).skip(1).step_by(2).flatten();
        received.for_each(|message| guest.received(HOST, message, Millis(0.0)));
        guest
    }
}

fn sent(sessions: &mut Sessions) -> Vec<Vec<u8>> {
    let actions = sessions.take_actions().into_iter();
    actions.filter_map(|action| if let Action::Send(_, bytes) = action { Some(bytes) } else { None }).collect()
}

/// Any bytes but the honest ones at any point of a handshake or a session open nothing. The first byte says how far the
/// handshake is and who receives.
///
/// # Panics
/// If a frame or a new session comes of them.
pub fn sessions(data: &[u8]) {
    let Some((&point, message)) = data.split_first() else { return };
    // A seed is one bit away from what may be opened, and a mutation may flip it back.
    if FIXTURES.handshake.iter().flatten().chain([&FIXTURES.frame]).any(|honest| honest == message) {
        return;
    }
    let messages = usize::from(point / 2) % (MESSAGES + 1);
    // Only the receiver is made: what the other side has sent is known.
    let (mut victim, route) =
        if point % 2 == 0 { (FIXTURES.host(messages), GUEST) } else { (FIXTURES.guest(messages), HOST) };
    // What honest messages caused does not count.
    victim.take_actions();
    victim.received(route, message, Millis(1_000.0));
    victim.tick(Millis(5_000.0));
    for action in victim.take_actions() {
        let is_forged = matches!(action, Action::Up(..) | Action::Frame(..));
        assert!(!is_forged, "{action:?}");
    }
}

/// The messages of a handshake and a sealed frame, each changed in its last byte so that it must not be accepted.
pub fn seeds() -> Result<Vec<Vec<u8>>, WriteError> {
    let mut seeds = Vec::new();
    for point in 0..=MESSAGES {
        let expected = FIXTURES.handshake.get(point).into_iter().flatten();
        for message in expected.chain([&FIXTURES.frame]) {
            for receiver in 0..2 {
                let mut seed = vec![point as u8 * 2 + receiver];
                seed.extend(message);
                seed.last_mut().into_iter().for_each(|last| *last ^= 1);
                seeds.push(seed);
            }
        }
    }
    Ok(seeds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_can_be_put_at_every_point() {
        let up = |messages| [FIXTURES.host(messages), FIXTURES.guest(messages)].map(|side| side.up().count());
        assert_eq!((0..=MESSAGES).map(up).collect::<Vec<_>>(), [[0, 0], [0, 0], [0, 1], [1, 1]]);
        let mut host = FIXTURES.host(MESSAGES);
        host.take_actions();
        host.received(GUEST, &FIXTURES.frame, Millis(1_000.0));
        let frames = host.take_actions().into_iter().filter(|action| matches!(action, Action::Frame(..)));
        assert_eq!(frames.count(), 1, "what the other side seals is opened, so that forging it is worth a try");
    }
}
