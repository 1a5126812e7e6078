//! Cutting the blocks into ranges over a given order of devices, by dynamic programming.

use potluck_plan::{BlockRange, Stage};

use crate::cost::{CostModel, Ends};
use crate::{Device, Sharing};

/// A little cost per block that would have to be loaded anew: of two equal plans the one that moves less wins.
const MOVE_MILLIS: f64 = 1e-3;

/// The best cut of all `blocks` into one range per device, in this order, or `None` if they do not fit. With
/// [`Sharing::Fastest`] the sum over the stages is least, with [`Sharing::Everyone`] the slowest stage (then the sum).
pub(crate) fn cut(model: &CostModel<'_>, order: &[&Device], blocks: u16, sharing: Sharing) -> Option<Vec<BlockRange>> {
    let count = order.len();
    let n = usize::from(blocks);
    // best[i][b]: cost of the first i devices covering the first b blocks; from[i][b]: where device i's range starts.
    let mut best = vec![vec![None::<(f64, f64)>; n + 1]; count + 1];
    let mut from = vec![vec![0usize; n + 1]; count + 1];
    best[0][0] = Some((0.0, 0.0));
    for (i, device) in order.iter().enumerate() {
        let ends = Ends { first: i == 0, last: i + 1 == count };
        for start in 0..=n {
            let Some((slowest, sum)) = best[i][start] else { continue };
            for end in start + 1..=n {
                let range = BlockRange::new(start as u16, end as u16);
                if model.stage_bytes(range, ends) > device.budget {
                    break;
                }
                if ends.last && end != n {
                    continue;
                }
                let millis = model.stage_millis(device, range, ends) + moved(device, range);
                let cost = (slowest.max(millis), sum + millis);
                if best[i + 1][end].is_none_or(|known| less(cost, known, sharing)) {
                    best[i + 1][end] = Some(cost);
                    from[i + 1][end] = start;
                }
            }
        }
    }
    best[count][n]?;
    let mut ranges = Vec::with_capacity(count);
    let mut end = n;
    for i in (1..=count).rev() {
        ranges.push(BlockRange::new(from[i][end] as u16, end as u16));
        end = from[i][end];
    }
    ranges.reverse();
    Some(ranges)
}

/// The little cost of everything that these stages would have to load anew.
pub(crate) fn move_millis(devices: &[Device], stages: &[Stage]) -> f64 {
    let device = |stage: &Stage| devices.iter().find(|device| device.peer == stage.peer);
    stages.iter().filter_map(|stage| Some(moved(device(stage)?, stage.blocks))).sum()
}

fn moved(device: &Device, range: BlockRange) -> f64 {
    range.iter().filter(|block| !device.holds.contains(block)).count() as f64 * MOVE_MILLIS
}

fn less(a: (f64, f64), b: (f64, f64), sharing: Sharing) -> bool {
    match sharing {
        Sharing::Fastest => a.1 < b.1,
        Sharing::Everyone => a < b,
    }
}
