//! Where the experts of a plan lie, in few words.

use std::collections::BTreeMap;

use potluck_plan::{BlockIndex, ExpertHolder, Millis, PeerId, Stage};

use super::TraceLine;

/// A line for all blocks whose experts lie alike: `blocks 0-2 5: a 30 b 2 | b 32` says that of each of these blocks the device a is the first
/// holder of 30 experts and b of 2, and that b is the second holder of 32. `own`: the device of the stage.
pub(crate) fn placement(stages: &[Stage], now: Millis) -> Vec<TraceLine> {
    let mut letters: BTreeMap<PeerId, String> = BTreeMap::new();
    let mut alike: BTreeMap<String, Vec<BlockIndex>> = BTreeMap::new();
    for remote in stages.iter().flat_map(|stage| &stage.remote) {
        let ranks = remote.holders.iter().map(Vec::len).max().unwrap_or(0);
        let rank = |rank: usize| {
            let mut held: BTreeMap<String, usize> = BTreeMap::new();
            for holder in remote.holders.iter().filter_map(|holders| holders.get(rank)) {
                let name = match holder {
                    ExpertHolder::Own => "own".to_owned(),
                    ExpertHolder::Peer(peer) => {
                        let next = letter(letters.len());
                        letters.entry(*peer).or_insert(next).clone()
                    }
                };
                *held.entry(name).or_default() += 1;
            }
            held.into_iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(" ")
        };
        let ranks: Vec<String> = (0..ranks).map(rank).collect();
        alike.entry(ranks.join(" | ")).or_default().push(remote.block);
    }
    let line = |(ranks, blocks): (String, Vec<BlockIndex>)| {
        TraceLine::told("plan", format!("blocks {}: {ranks}", runs(&blocks)), now)
    };
    alike.into_iter().map(line).collect()
}

/// `a` to `z`, `a1` to `z1`…
fn letter(index: usize) -> String {
    let letter = char::from(b'a' + (index % 26) as u8);
    if index < 26 { letter.to_string() } else { format!("{letter}{}", index / 26) }
}

/// `0-2 5`
fn runs(blocks: &[BlockIndex]) -> String {
    let mut runs: Vec<(u16, u16)> = Vec::new();
    for block in blocks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == block.0 => *last = block.0,
            _ => runs.push((block.0, block.0)),
        }
    }
    let run = |(first, last): &(u16, u16)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    runs.iter().map(run).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use potluck_plan::{BlockRange, RemoteExperts, StageId};

    use super::*;

    #[test]
    fn blocks_whose_experts_lie_alike_are_one_line() {
        let (a, b) = (ExpertHolder::Peer(PeerId([9; 16])), ExpertHolder::Peer(PeerId([3; 16])));
        let remote = |block, holders: &[&[ExpertHolder]]| RemoteExperts {
            block: BlockIndex(block),
            holders: holders.iter().map(|holders| holders.to_vec()).collect(),
        };
        let mut stage = Stage::new(StageId(0), PeerId([1; 16]), BlockRange::new(0, 6));
        let alike: &[&[ExpertHolder]] = &[&[a, b], &[a, b], &[b, a], &[a]];
        stage.remote =
            vec![remote(0, alike), remote(1, alike), remote(2, &[&[b, ExpertHolder::Own]]), remote(4, alike)];
        let lines: Vec<String> = placement(&[stage], Millis(0.0)).into_iter().map(|line| line.what).collect();
        assert_eq!(lines, ["blocks 0-1 4: a 3 b 1 | a 1 b 2", "blocks 2: b 1 | own 1"]);
    }
}
