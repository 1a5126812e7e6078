//! Random ids and seeds.

use potluck_panel::PeerId;

use super::window;

/// `bytes` random bytes as hexadecimal digits.
#[must_use]
pub fn hex(bytes: usize) -> String {
    random(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An id for a tab that has none yet.
#[must_use]
pub fn peer_id() -> PeerId {
    let mut id = PeerId([0; 16]);
    id.0.copy_from_slice(&random(16));
    id
}

/// A seed that a JavaScript number holds exactly (53 bits).
#[must_use]
pub fn seed() -> u64 {
    random(7).iter().fold(0_u64, |seed, byte| (seed << 8) | u64::from(*byte)) & ((1 << 53) - 1)
}

fn random(bytes: usize) -> Vec<u8> {
    let mut out = vec![0_u8; bytes];
    let filled = window().crypto().and_then(|crypto| crypto.get_random_values_with_u8_array(&mut out));
    if filled.is_err() {
        // Only insecure contexts reach this; such ids are unique enough to tell peers in a room apart.
        out.fill_with(|| (js_sys::Math::random() * 256.0) as u8);
    }
    out
}
