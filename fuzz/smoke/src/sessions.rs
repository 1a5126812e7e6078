//! What a relay or a stranger sends into the handshakes and sealed sessions of a peer.

use potluck_gguf::WriteError;
use potluck_plan::Millis;
use potluck_trust::{Action, IdentityKeys, NodeIdentity, OwnerKey, RoomRole, RoomSecret, Route, Sessions};

const HOST: Route = Route(1);
const GUEST: Route = Route(2);

/// The same bytes in every run.
fn fixed(bytes: &mut [u8]) {
    bytes.iter_mut().zip(1..).for_each(|(byte, value)| *byte = value);
}

fn pair() -> (Sessions, Sessions) {
    let owner = OwnerKey::from_seed([7; 32]);
    let secret = RoomSecret::from_bytes([9; 16]);
    let sessions = |role, tab: u8| {
        let keys = IdentityKeys { device: [tab; 32].into(), tab: [tab + 1; 32].into() };
        Sessions::new(NodeIdentity::new(&keys, fixed), owner.room(), role, fixed)
    };
    let host = RoomRole::Owner { key: owner.clone(), secret: secret.clone(), generation: 0, visible: true };
    let (mut host, mut guest) = (sessions(host, 10), sessions(RoomRole::Guest(secret), 20));
    host.welcomed(HOST, Some(HOST), &[GUEST], Millis(0.0));
    guest.welcomed(GUEST, Some(HOST), &[HOST], Millis(0.0));
    (host, guest)
}

fn sent(sessions: &mut Sessions) -> Vec<Vec<u8>> {
    let actions = sessions.take_actions().into_iter();
    actions.filter_map(|action| if let Action::Send(_, bytes) = action { Some(bytes) } else { None }).collect()
}

/// Carries the first `messages` messages of the handshake.
fn shake(host: &mut Sessions, guest: &mut Sessions, messages: usize) {
    for number in 0..messages {
        let (from, to, route) =
            if number % 2 == 0 { (&mut *guest, &mut *host, GUEST) } else { (&mut *host, &mut *guest, HOST) };
        sent(from).iter().for_each(|message| to.received(route, message, Millis(0.0)));
    }
}

/// Any bytes at any point of a handshake or a session open nothing. The first byte says how far the handshake is and who
/// receives.
///
/// # Panics
/// If a frame or a new session comes of them.
pub fn sessions(data: &[u8]) {
    let Some((&point, message)) = data.split_first() else { return };
    let (mut host, mut guest) = pair();
    shake(&mut host, &mut guest, usize::from(point / 2 % 4));
    let (victim, route) = if point % 2 == 0 { (&mut host, GUEST) } else { (&mut guest, HOST) };
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
    for point in 0..4 {
        let (mut host, mut guest) = pair();
        shake(&mut host, &mut guest, point);
        let (from, receiver) = if point % 2 == 0 { (&mut guest, 0) } else { (&mut host, 1) };
        let mut messages = sent(from);
        messages.extend(guest.seal(HOST, b"frame"));
        for message in &mut messages {
            if let Some(last) = message.last_mut() {
                *last ^= 1;
            }
            seeds.push([&[point as u8 * 2 + receiver], &message[..]].concat());
        }
    }
    Ok(seeds)
}
