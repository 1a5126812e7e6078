//! Which calls a block's experts wait for, as a pattern that says nothing about devices: what is expected of the block's time
//! follows from it.

use std::collections::{BTreeMap, BTreeSet};

/// More different calls than this are no pattern any more.
const MOST_CALLS: usize = 20;

/// What experts wait for: `ab ac` is one expert that the calls a and b ask for, and one of a and c. Each call is a letter, since each
/// is answered for itself. Experts that wait for the same calls are one; an expert with further calls than another one is left out, because it is
/// never the last. `asked`: the calls of each expert. Too many are `?`. The same calls under other numbers mostly give the same pattern, and always one
/// with the same time.
pub(super) fn pattern(asked: impl IntoIterator<Item = BTreeSet<u64>>) -> String {
    let all: BTreeSet<BTreeSet<u64>> = asked.into_iter().filter(|calls| !calls.is_empty()).collect();
    let is_last = |calls: &&BTreeSet<u64>| !all.iter().any(|other| other != *calls && other.is_subset(calls));
    let kept: Vec<&BTreeSet<u64>> = all.iter().filter(is_last).collect();
    let uses = |call: u64| kept.iter().filter(|calls| calls.contains(&call)).count();
    // Calls that more experts wait for come first.
    let mut sets: Vec<Vec<(usize, u64)>> = kept
        .iter()
        .map(|calls| {
            let mut calls: Vec<(usize, u64)> = calls.iter().map(|call| (usize::MAX - uses(*call), *call)).collect();
            calls.sort_unstable();
            calls
        })
        .collect();
    let shape = |set: &Vec<(usize, u64)>| (set.len(), set.iter().map(|(uses, _)| *uses).collect::<Vec<_>>());
    sets.sort_by_key(shape);
    let mut letters = BTreeMap::new();
    let mut words = Vec::new();
    for set in sets {
        let mut word: Vec<usize> = Vec::new();
        for (_, call) in set {
            let next = letters.len();
            word.push(*letters.entry(call).or_insert(next));
        }
        word.sort_unstable();
        words.push(word);
    }
    if letters.len() > MOST_CALLS {
        return "?".to_owned();
    }
    words.sort();
    let letter = |index: &usize| char::from(b'a' + *index as u8);
    words.iter().map(|word| word.iter().map(letter).collect::<String>()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(asked: &[&[u64]]) -> String {
        pattern(asked.iter().map(|calls| calls.iter().copied().collect()))
    }

    #[test]
    fn a_pattern_says_which_calls_the_last_expert_may_wait_for() {
        assert_eq!(of(&[]), "", "nobody else was asked");
        assert_eq!(of(&[&[7], &[7], &[7]]), "a", "one call for all experts");
        assert_eq!(of(&[&[7, 9], &[7, 9]]), "ab", "the same twice");
        assert_eq!(of(&[&[7], &[9], &[8]]), "a b c", "three devices");
        assert_eq!(of(&[&[7, 20], &[7, 21], &[7, 22]]), "ab ac ad", "one first holder, copies on three others");
        assert_eq!(of(&[&[1], &[1, 2]]), "a", "the second expert is never the last");
        assert_eq!(of(&[&[], &[3]]), "a", "what is computed here waits for nobody");
    }

    #[test]
    fn the_same_calls_under_other_numbers_are_the_same_pattern() {
        assert_eq!(of(&[&[5, 9], &[5, 2], &[8]]), of(&[&[1], &[2, 7], &[2, 3]]));
        assert_eq!(of(&[&[1, 2], &[3, 4]]), of(&[&[1, 4], &[2, 3]]));
        let many: Vec<Vec<u64>> = (0..30).map(|call| vec![call]).collect();
        assert_eq!(pattern(many.iter().map(|calls| calls.iter().copied().collect())), "?", "too many to tell");
    }
}
