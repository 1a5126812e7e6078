//! Packs and journals survive a crash at any point.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
use super::*;
use crate::blob::tests::every_kind;

const TOKEN_MIXER: WeightUnit = WeightUnit::TokenMixer(BlockIndex(3));
const EXPERT: WeightUnit = WeightUnit::Expert(BlockIndex(3), ExpertId(127));

fn grown(unit: WeightUnit, offset: u64, len: u64) -> Record {
    Record::Grown(unit, Extent { offset, len })
}

fn journal(records: &[Record]) -> Vec<u8> {
    records.iter().flat_map(|record| record.to_bytes()).collect()
}

#[test]
fn names_round_trip_and_others_are_refused() {
    for block in [None, Some(BlockIndex(0)), Some(BlockIndex(u16::MAX))] {
        for generation in [0, 7, u32::MAX] {
            let pack = Pack { generation, block };
            assert_eq!(Pack::parse(&pack.to_string()), Some(pack));
        }
    }
    for other in ["", "ends", "ends-1", "block-1", "block-00000001", "block-01-00000001", "units", "mixer-1"] {
        assert_eq!(Pack::parse(other), None, "{other}");
    }
}

#[test]
fn records_round_trip_and_changed_ones_are_refused() {
    let units = every_kind(BlockIndex(300), ExpertId(511));
    let records = units.iter().flat_map(|&unit| [grown(unit, 1 << 40, 4096), Record::Dropped(unit)]);
    for record in records.chain([Record::Begin { generation: u32::MAX }]) {
        let bytes = record.to_bytes();
        assert_eq!(Record::parse(&bytes), Some(record));
        for at in 0..RECORD {
            let mut changed = bytes;
            changed[at] ^= 1;
            assert_eq!(Record::parse(&changed), None, "byte {at} of {record:?}");
        }
    }
}

#[test]
fn units_of_a_block_grow_in_one_pack() {
    let other = WeightUnit::Dense(BlockIndex(4));
    let records = [
        Record::Begin { generation: 9 },
        grown(TOKEN_MIXER, 0, 100),
        grown(TOKEN_MIXER, 100, 50),
        grown(EXPERT, 150, 10),
        grown(other, 0, 7),
        grown(TOKEN_MIXER, 160, 5),
    ];
    let mut index = Index::default();
    index.read(&journal(&records));
    assert_eq!((index.generation(), index.next()), (Some(9), 6 * RECORD as u64));
    assert_eq!((index.len(TOKEN_MIXER), index.len(EXPERT), index.len(other)), (155, 10, 7));
    assert_eq!((index.end(EXPERT), index.end(other), index.end(WeightUnit::LmHead)), (165, 7, 0));
    let extent = |offset, len| Extent { offset, len };
    assert_eq!(
        index.extents(TOKEN_MIXER, 20, 60),
        Some(vec![extent(20, 60)]),
        "what was written end to end is one read"
    );
    assert_eq!(index.extents(TOKEN_MIXER, 140, 15), Some(vec![extent(140, 10), extent(160, 5)]));
    assert_eq!(index.extents(TOKEN_MIXER, 140, 16), None, "a byte too many");
    assert_eq!(index.extents(WeightUnit::LmHead, 0, 1), None);
}

#[test]
fn a_journal_is_read_up_to_the_first_invalid_record() {
    let records = [Record::Begin { generation: 9 }, grown(TOKEN_MIXER, 0, 100), grown(EXPERT, 100, 10)];
    let whole = journal(&records);
    for cut in 0..=whole.len() {
        let mut index = Index::default();
        index.read(&whole[..cut]);
        let known = (cut / RECORD) as u64;
        assert_eq!(index.next(), known * RECORD as u64, "{cut} bytes");
        assert_eq!(index.len(EXPERT), if known == 3 { 10 } else { 0 }, "{cut} bytes");
        index.read(&whole[index.next() as usize..]);
        assert_eq!(index.len(EXPERT), 10, "the rest came after {cut} bytes");
    }
    let mut broken = whole.clone();
    broken[RECORD + 9] ^= 1;
    let mut index = Index::default();
    index.read(&broken);
    assert_eq!(index.next(), RECORD as u64, "nothing behind a broken record counts");
    let mut headless = Index::default();
    headless.read(&whole[RECORD..]);
    assert_eq!(headless, Index::default(), "without a generation it is no journal");
}

#[test]
fn the_space_of_a_dropped_unit_is_reused_only_by_it() {
    let extent = |offset, len| Extent { offset, len };
    let mut index = Index::default();
    let records =
        [grown(TOKEN_MIXER, 0, 100), grown(EXPERT, 100, 10), grown(TOKEN_MIXER, 110, 20), Record::Dropped(TOKEN_MIXER)];
    index.read(&journal(&[Record::Begin { generation: 1 }]));
    records.into_iter().for_each(|record| index.add(record));
    assert_eq!((index.len(TOKEN_MIXER), index.end(TOKEN_MIXER)), (0, 130));
    assert_eq!(index.room(EXPERT, 5), [extent(130, 5)], "another unit");
    assert_eq!(index.room(TOKEN_MIXER, 30), [extent(0, 30)]);
    assert_eq!(index.room(TOKEN_MIXER, 125), [extent(0, 100), extent(110, 20), extent(130, 5)]);
    index.add(grown(TOKEN_MIXER, 0, 30));
    assert_eq!(index.room(TOKEN_MIXER, 80), [extent(30, 70), extent(110, 10)], "what is written again is taken");
    assert_eq!(index.units().collect::<Vec<_>>(), [(TOKEN_MIXER, 30), (EXPERT, 10)]);
}

#[test]
fn a_truncated_pack_shows_which_units_are_incomplete() {
    let mut index = Index::default();
    index.read(&journal(&[Record::Begin { generation: 1 }, grown(TOKEN_MIXER, 0, 100), grown(EXPERT, 100, 10)]));
    assert_eq!(index.cut_off(Some(BlockIndex(3)), 110), []);
    assert_eq!(index.cut_off(Some(BlockIndex(3)), 109), [EXPERT]);
    assert_eq!(index.cut_off(Some(BlockIndex(3)), 99), [TOKEN_MIXER, EXPERT]);
    assert_eq!(index.cut_off(None, 0), [], "another pack");
}

/// A journal and a pack on a disk.
#[derive(Default)]
struct Disk {
    journal: Vec<u8>,
    pack: Vec<u8>,
}

/// The byte of a unit at an offset; never 0, which a hole would have.
fn content(unit: WeightUnit, at: u64) -> u8 {
    1 + ((at * 7 + u64::from(numbers(unit).0) * 41) % 251) as u8
}

impl Disk {
    fn index(&self) -> Index {
        let mut index = Index::default();
        index.read(&self.journal);
        index
    }

    /// Writes records, of which only `arrive` bytes reach the disk.
    fn write(&mut self, records: &[Record], arrive: usize) {
        self.journal.truncate(self.index().next() as usize);
        let bytes = journal(records);
        self.journal.extend_from_slice(&bytes[..arrive.min(bytes.len())]);
    }

    /// Appends to a unit as the storage worker does. The tab dies after `pack` bytes of the pack or `journal` bytes of the
    /// journal.
    fn append(&mut self, unit: WeightUnit, len: u64, pack: u64, journal: usize) {
        let index = self.index();
        let lost: Vec<Record> =
            index.cut_off(unit.block(), self.pack.len() as u64).into_iter().map(Record::Dropped).collect();
        self.write(&lost, usize::MAX);
        if lost.contains(&Record::Dropped(unit)) {
            return;
        }
        let index = self.index();
        let room = index.room(unit, len);
        assert_eq!(room.iter().map(|extent| extent.len).sum::<u64>(), len);
        let (mut at, mut left) = (index.len(unit), pack);
        for extent in &room {
            if extent.offset >= index.end(unit) {
                self.pack.truncate(extent.offset as usize);
            }
            for offset in extent.offset..extent.offset + extent.len.min(left) {
                self.pack.resize(self.pack.len().max(offset as usize + 1), 0);
                self.pack[offset as usize] = content(unit, at);
                at += 1;
            }
            left = left.saturating_sub(extent.len);
        }
        if pack >= len {
            let records: Vec<Record> = room.into_iter().map(|extent| Record::Grown(unit, extent)).collect();
            self.write(&records, journal);
        }
    }

    /// Every unit in the journal is stored byte for byte, or known to be truncated.
    fn check(&self, context: &str) {
        let index = self.index();
        let cut_off = index.cut_off(TOKEN_MIXER.block(), self.pack.len() as u64);
        for (unit, len) in index.units().filter(|(unit, _)| !cut_off.contains(unit)) {
            let extents = index.extents(unit, 0, len).unwrap();
            let bytes: Vec<u8> = extents
                .iter()
                .flat_map(|extent| self.pack[extent.offset as usize..extent.end() as usize].iter().copied())
                .collect();
            let expected: Vec<u8> = (0..len).map(|at| content(unit, at)).collect();
            assert_eq!(bytes, expected, "{context}: {unit:?}");
        }
    }
}

#[test]
fn after_any_crash_units_read_back_and_the_pack_stays_bounded() {
    const MAX_LEN: u64 = 200;
    let units = [TOKEN_MIXER, EXPERT, WeightUnit::Router(BlockIndex(3)), WeightUnit::SharedExpert(BlockIndex(3))];
    for seed in 0..60_u64 {
        let mut state = seed;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut disk = Disk::default();
        disk.write(&[Record::Begin { generation: 1 }], usize::MAX);
        for step in 0..150 {
            let unit = units[below(units.len() as u64) as usize];
            let len = (1 + below(60)).min(MAX_LEN - disk.index().len(unit));
            match below(12) {
                _ if len == 0 => disk.write(&[Record::Dropped(unit)], usize::MAX),
                0 => disk.write(&[Record::Dropped(unit)], usize::MAX),
                1 => disk.write(&[Record::Dropped(unit)], below(RECORD as u64) as usize),
                2 => disk.append(unit, len, below(len), 0),
                3 => disk.append(unit, len, u64::MAX, below(3 * RECORD as u64) as usize),
                4 if below(8) == 0 => disk.pack.truncate(below(disk.pack.len() as u64 + 1) as usize),
                _ => disk.append(unit, len, u64::MAX, usize::MAX),
            }
            disk.check(&format!("seed {seed}, step {step}"));
        }
        let most = units.len() as u64 * MAX_LEN + 60;
        assert!(disk.pack.len() as u64 <= most, "seed {seed}: {} bytes for {most}", disk.pack.len());
    }
}
