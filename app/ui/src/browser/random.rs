//! Random ids and seeds.

use potluck_panel::KeySeed;

use super::window;

/// `bytes` random bytes as hexadecimal digits.
#[must_use]
pub fn hex(bytes: usize) -> String {
    random(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A secret key for a device or a tab that has none yet.
#[must_use]
pub fn key_seed() -> KeySeed {
    let mut seed = KeySeed([0; 32]);
    seed.0.copy_from_slice(&random(32));
    seed
}

/// A seed that a JavaScript number holds exactly (53 bits).
#[must_use]
pub fn seed() -> u64 {
    random(7).iter().fold(0_u64, |seed, byte| (seed << 8) | u64::from(*byte)) & ((1 << 53) - 1)
}

fn random(bytes: usize) -> Vec<u8> {
    let mut out = vec![0_u8; bytes];
    let filled = window().crypto().and_then(|crypto| crypto.get_random_values_with_u8_array(&mut out));
    // Every browser that runs WebAssembly has it, in insecure contexts too. Keys must not be made of anything weaker.
    filled.expect("the browser has no source of randomness");
    out
}
