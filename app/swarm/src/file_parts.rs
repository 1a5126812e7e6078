//! Which bytes of the host's file are whose: a host that protects its model sends the experts that a device is to hold, and
//! nothing else.

use std::ops::Range;

use potluck_plan::WeightUnit;

/// Where the weight units of a file lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileParts {
    header_bytes: u64,
    group_bytes: u64,
    /// In the order of the file. Units may share bytes.
    units: Vec<(Range<u64>, WeightUnit)>,
}

impl FileParts {
    /// The header takes the first `header_bytes` bytes. Bytes are sent, and checked by the receiver, in whole groups of
    /// `group_bytes`.
    pub fn new(header_bytes: u64, group_bytes: u64, mut units: Vec<(Range<u64>, WeightUnit)>) -> Self {
        units.sort_by_key(|(range, unit)| (range.start, range.end, *unit));
        Self { header_bytes, group_bytes: group_bytes.max(1), units }
    }

    /// Every group of these bytes has a byte of the header, or of a unit that the asker may have.
    pub(crate) fn allow(&self, wanted: Range<u64>, may_have: impl Fn(WeightUnit) -> bool) -> bool {
        let first = wanted.start / self.group_bytes;
        let groups = first..wanted.end.div_ceil(self.group_bytes).max(first + 1);
        groups.into_iter().all(|group| {
            let start = group.saturating_mul(self.group_bytes);
            let end = start.saturating_add(self.group_bytes);
            start < self.header_bytes || self.within(start..end).any(&may_have)
        })
    }

    /// The units with bytes in a range.
    fn within(&self, range: Range<u64>) -> impl Iterator<Item = WeightUnit> {
        // Ranges are equal or apart, so their ends ascend like their beginnings.
        let first = self.units.partition_point(|(unit, _)| unit.end <= range.start);
        let units = self.units[first..].iter().take_while(move |(unit, _)| unit.start < range.end);
        units.map(|(_, unit)| *unit)
    }
}

#[cfg(test)]
mod tests {
    use potluck_plan::{BlockIndex, ExpertId};

    use super::*;

    const GROUP: u64 = 10;

    fn expert(expert: u16) -> WeightUnit {
        WeightUnit::Expert(BlockIndex(0), ExpertId(expert))
    }

    /// A header of 15 bytes, an embedding that is the LM head as well, a router, and three experts.
    fn parts() -> FileParts {
        let units = vec![
            (15..35, WeightUnit::LmHead),
            (15..35, WeightUnit::Embedding),
            (68..93, expert(2)),
            (35..38, WeightUnit::Router(BlockIndex(0))),
            (38..53, expert(0)),
            (53..68, expert(1)),
        ];
        FileParts::new(15, GROUP, units)
    }

    #[test]
    fn only_groups_of_ones_own_experts_and_the_header_are_allowed() {
        let of = |unit: WeightUnit| {
            (0..10).filter(|group| parts().allow(group * GROUP..(group + 1) * GROUP, |other| other == unit)).collect()
        };
        let groups: [Vec<u64>; 3] = [expert(0), expert(1), expert(2)].map(of);
        assert_eq!(groups, [vec![0, 1, 3, 4, 5], vec![0, 1, 5, 6], vec![0, 1, 6, 7, 8, 9]]);
    }

    #[test]
    fn bytes_of_several_groups_are_allowed_only_if_each_group_is() {
        let is_second = |unit| unit == expert(1);
        assert!(parts().allow(50..70, is_second));
        assert!(!parts().allow(40..70, is_second), "the first group has none of its bytes");
        assert!(!parts().allow(50..71, is_second), "nor the last one");
        assert!(!parts().allow(100..110, |_| true), "behind the last unit is nobody's");
        assert!(!parts().allow(35..35, |_| false), "not even nothing is asked for in a group that is kept");
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let parts = FileParts::new(15, 0, Vec::new());
        assert!(!parts.allow(u64::MAX - 1..u64::MAX, |_| true));
    }
}
