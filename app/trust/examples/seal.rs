//! Times what sealing costs: `cargo run --release -p potluck-trust --example seal`. For WebAssembly, build it for
//! `wasm32-wasip1` and run it in Node.js (`app/trust/examples/seal.mjs`).
#![allow(clippy::unwrap_used, reason = "a measurement may panic")]

use std::time::Instant;

use potluck_plan::Millis;
use potluck_trust::{Action, IdentityKeys, NodeIdentity, OwnerKey, Proof, RoomRole, RoomSecret, Route, Sessions};

/// Bytes of a frame: a token's hidden vector of a small model, a large one, and a chunk of a prompt.
const SIZES: [usize; 3] = [8 * 1024, 32 * 1024, 1024 * 1024];

/// Not random: only times are taken here.
fn counting(bytes: &mut [u8]) {
    use std::sync::atomic::{AtomicU8, Ordering};
    static NEXT: AtomicU8 = AtomicU8::new(1);
    bytes.iter_mut().for_each(|byte| *byte = NEXT.fetch_add(7, Ordering::Relaxed));
}

fn sessions(role: RoomRole, room: &str) -> Sessions {
    let identity = NodeIdentity::new(&IdentityKeys::generate(counting), counting);
    Sessions::new(identity, room.to_owned(), role, counting)
}

/// Carries messages between the two until both are silent.
fn settle(host: &mut Sessions, guest: &mut Sessions, now: Millis) -> Vec<Proof> {
    let mut proofs = Vec::new();
    loop {
        let (from_host, from_guest) = (host.take_actions(), guest.take_actions());
        if from_host.is_empty() && from_guest.is_empty() {
            return proofs;
        }
        for (actions, to, route) in [(from_host, &mut *guest, Route(1)), (from_guest, &mut *host, Route(2))] {
            for action in actions {
                match action {
                    Action::Send(_, message) => to.received(route, &message, now),
                    Action::Up(_, _, proof, _) => proofs.push(proof),
                    _ => {}
                }
            }
        }
    }
}

fn main() {
    let owner = OwnerKey::generate(counting);
    let (room, secret) = (owner.room(), RoomSecret::generate(counting));
    let mut host =
        sessions(RoomRole::Owner { key: owner, secret: secret.clone(), link: 0, generation: 0, visible: false }, &room);
    let mut guest = sessions(RoomRole::Guest(secret), &room);
    const HANDSHAKES: u32 = 20;
    let begun = Instant::now();
    for number in 0..HANDSHAKES {
        let now = Millis(f64::from(number) * 10_000.0);
        host.welcomed(Route(1), Some(Route(1)), &[Route(2)], now);
        guest.welcomed(Route(2), Some(Route(1)), &[Route(1)], now);
        assert_eq!(settle(&mut host, &mut guest, now).len(), 2, "both sides are up");
    }
    let millis = begun.elapsed().as_secs_f64() * 1000.0 / f64::from(HANDSHAKES);
    println!("handshake, both sides together: {millis:.2} ms");
    for size in SIZES {
        let frame = vec![7; size];
        let rounds = (64 << 20) / size;
        let begun = Instant::now();
        let sealed: Vec<Vec<u8>> = (0..rounds).map(|_| guest.seal(Route(1), &frame).unwrap()).collect();
        let seal = begun.elapsed().as_secs_f64() * 1e6 / rounds as f64;
        let begun = Instant::now();
        sealed.iter().for_each(|message| host.received(Route(2), message, Millis(0.0)));
        let open = begun.elapsed().as_secs_f64() * 1e6 / rounds as f64;
        assert_eq!(host.take_actions().len(), rounds, "every frame arrived");
        let megabytes = |micros: f64| size as f64 / micros;
        println!(
            "{size:8} bytes: seal {seal:8.1} µs ({:5.0} MB/s), open {open:8.1} µs ({:5.0} MB/s)",
            megabytes(seal),
            megabytes(open)
        );
    }
}
