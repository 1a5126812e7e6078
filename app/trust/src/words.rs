//! Three words for a device's key: two people can compare them over the phone.

use potluck_plan::DeviceId;

/// Plain words, sorted. Another list gives every device other words.
const LIST: &str = include_str!("words.txt");
const CONTEXT: &str = "potluck 2026-11 three words of a device key";
/// How often the hash is hashed again. It costs an honest device a few milliseconds once, and whoever looks for a key with
/// the same three words the same for every one of a billion keys: weeks of one processor.
const ROUNDS: u32 = 16_384;

/// The three words of a device.
pub fn words(device: DeviceId) -> String {
    let list: Vec<&str> = LIST.lines().collect();
    let mut hash = blake3::derive_key(CONTEXT, &device.0);
    for _ in 0..ROUNDS {
        hash = *blake3::hash(&hash).as_bytes();
    }
    // 64 bits for each word: that the list's length is no power of two changes nothing that could be noticed.
    let word = |from: usize| {
        let number = hash[from..from + 8].iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        list[(number % list.len() as u64) as usize]
    };
    [word(0), word(8), word(16)].join(" ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_list_is_long_enough_sorted_and_plain() {
        let list: Vec<&str> = LIST.lines().collect();
        assert!(list.len() >= 1_000, "{} words", list.len());
        assert!(list.is_sorted_by(|a, b| a < b), "sorted, none twice");
        assert!(
            list.iter()
                .all(|word| (2..=12).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase()))
        );
    }

    #[test]
    fn a_device_keeps_its_words_and_others_have_others() {
        assert_eq!(words(DeviceId([1; 32])), words(DeviceId([1; 32])));
        let all: BTreeSet<String> = (0..50).map(|n| words(DeviceId([n; 32]))).collect();
        assert_eq!(all.len(), 50);
        assert!(all.iter().all(|words| words.split(' ').count() == 3));
    }
}
