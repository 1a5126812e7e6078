//! How the units of a model are laid out in a browser's cache: one file per block, the **pack**, which grows at its end, and one
//! **journal** per model, which records the bytes of each unit in the packs. Opening and closing a file takes a browser
//! milliseconds, and a model can have thousands of units.
//!
//! A record is appended to the journal after its bytes are on disk. If a tab dies while it writes a unit, the unit counts up to
//! its last record. Bytes without a record are overwritten; all others never change, so readers need no lock. The space of a
//! dropped unit is reused only for the same unit, so a reader with an older journal still finds the right bytes. The journal
//! begins with a generation, which is part of the packs' names: a reader with a journal of an older generation finds no file
//! instead of wrong bytes.

use std::collections::BTreeMap;
use std::fmt;

use potluck_plan::{BlockIndex, ExpertId, WeightUnit};

/// The journal's file name.
pub const JOURNAL: &str = "units";

/// Bytes in a record.
pub const RECORD: usize = 32;

/// Bytes of a record's checksum: the first bytes of its BLAKE3 hash.
const CHECK: usize = 8;

/// A file of the cache that contains units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pack {
    /// The journal's generation.
    pub generation: u32,
    /// The block of its units; `None` for embedding and LM head.
    pub block: Option<BlockIndex>,
}

impl Pack {
    /// The pack of a unit.
    pub fn of(unit: WeightUnit, generation: u32) -> Self {
        Self { generation, block: unit.block() }
    }

    /// Parses a file name; `None` if it is not a pack's.
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split('-');
        let block = match parts.next()? {
            "ends" => None,
            "block" => Some(BlockIndex(parts.next()?.parse().ok()?)),
            _ => return None,
        };
        let pack = Self { generation: u32::from_str_radix(parts.next()?, 16).ok()?, block };
        (pack.to_string() == name).then_some(pack)
    }
}

impl fmt::Display for Pack {
    /// The file's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.block {
            None => write!(f, "ends-{:08x}", self.generation),
            Some(block) => write!(f, "block-{}-{:08x}", block.0, self.generation),
        }
    }
}

/// Contiguous bytes in a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

impl Extent {
    /// One past the last byte.
    fn end(self) -> u64 {
        self.offset + self.len
    }

    /// What remains before and after another extent.
    fn without(self, other: Extent) -> impl Iterator<Item = Extent> {
        let before = Extent { offset: self.offset, len: other.offset.clamp(self.offset, self.end()) - self.offset };
        let from = other.end().clamp(self.offset, self.end());
        [before, Extent { offset: from.max(before.end()), len: self.end() - from.max(before.end()) }]
            .into_iter()
            .filter(|extent| extent.len > 0)
    }
}

/// An entry of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// The journal begins.
    Begin {
        /// A number that no earlier journal had.
        generation: u32,
    },
    /// These bytes of its pack continue a unit.
    Grown(WeightUnit, Extent),
    /// The stored bytes of a unit are no longer valid.
    Dropped(WeightUnit),
}

impl Record {
    /// The bytes in the file: kind, unit, offset, length, checksum; numbers are little-endian.
    pub fn to_bytes(self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        let (kind, unit, first, second) = match self {
            Self::Begin { generation } => (0, None, u64::from(generation), 0),
            Self::Grown(unit, extent) => (1, Some(unit), extent.offset, extent.len),
            Self::Dropped(unit) => (2, Some(unit), 0, 0),
        };
        bytes[0] = kind;
        if let Some(unit) = unit {
            let (part, block, expert) = numbers(unit);
            bytes[1] = part;
            bytes[2..4].copy_from_slice(&block.to_le_bytes());
            bytes[4..6].copy_from_slice(&expert.to_le_bytes());
        }
        bytes[8..16].copy_from_slice(&first.to_le_bytes());
        bytes[16..24].copy_from_slice(&second.to_le_bytes());
        let check = check(&bytes);
        bytes[RECORD - CHECK..].copy_from_slice(&check);
        bytes
    }

    fn parse(bytes: &[u8; RECORD]) -> Option<Self> {
        if bytes[RECORD - CHECK..] != check(bytes) {
            return None;
        }
        let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let long = |at: usize| bytes[at..at + 8].try_into().ok().map(u64::from_le_bytes);
        let (first, second) = (long(8)?, long(16)?);
        let unit = || unit(bytes[1], BlockIndex(short(2)), ExpertId(short(4)));
        Some(match bytes[0] {
            0 => Self::Begin { generation: u32::try_from(first).ok()? },
            1 => {
                first.checked_add(second)?;
                Self::Grown(unit()?, Extent { offset: first, len: second })
            }
            2 => Self::Dropped(unit()?),
            _ => return None,
        })
    }
}

fn check(record: &[u8; RECORD]) -> [u8; CHECK] {
    let hash = blake3::hash(&record[..RECORD - CHECK]);
    let mut check = [0; CHECK];
    check.copy_from_slice(&hash.as_bytes()[..CHECK]);
    check
}

fn numbers(unit: WeightUnit) -> (u8, u16, u16) {
    match unit {
        WeightUnit::Embedding => (0, 0, 0),
        WeightUnit::LmHead => (1, 0, 0),
        WeightUnit::TokenMixer(block) => (2, block.0, 0),
        WeightUnit::Router(block) => (3, block.0, 0),
        WeightUnit::Dense(block) => (4, block.0, 0),
        WeightUnit::SharedExpert(block) => (5, block.0, 0),
        WeightUnit::Expert(block, expert) => (6, block.0, expert.0),
    }
}

fn unit(part: u8, block: BlockIndex, expert: ExpertId) -> Option<WeightUnit> {
    Some(match part {
        0 => WeightUnit::Embedding,
        1 => WeightUnit::LmHead,
        2 => WeightUnit::TokenMixer(block),
        3 => WeightUnit::Router(block),
        4 => WeightUnit::Dense(block),
        5 => WeightUnit::SharedExpert(block),
        6 => WeightUnit::Expert(block, expert),
        _ => return None,
    })
}

/// The contents of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    generation: Option<u32>,
    units: BTreeMap<WeightUnit, Vec<Extent>>,
    /// Space of dropped units that was not reused yet.
    dropped: BTreeMap<WeightUnit, Vec<Extent>>,
    /// Ends of the packs, including dropped units: somebody may still read them.
    ends: BTreeMap<Option<BlockIndex>, u64>,
    /// Bytes of the journal that were read.
    read: u64,
}

impl Index {
    /// Reads the journal's bytes from [`Index::next`] on, up to the first invalid record: a record may be incomplete or still
    /// being written.
    pub fn read(&mut self, bytes: &[u8]) {
        for bytes in bytes.as_chunks::<RECORD>().0 {
            match Record::parse(bytes) {
                Some(record) if matches!(record, Record::Begin { .. }) == (self.read == 0) => self.add(record),
                _ => return,
            }
        }
    }

    /// Adds a record that was written at [`Index::next`].
    pub fn add(&mut self, record: Record) {
        match record {
            Record::Begin { generation } => self.generation = Some(generation),
            Record::Grown(unit, extent) => {
                let end = self.ends.entry(unit.block()).or_default();
                *end = (*end).max(extent.end());
                if let Some(dropped) = self.dropped.get_mut(&unit) {
                    *dropped = dropped.iter().flat_map(|old| old.without(extent)).collect();
                }
                let extents = self.units.entry(unit).or_default();
                match extents.last_mut() {
                    Some(last) if last.offset + last.len == extent.offset => last.len += extent.len,
                    _ => extents.push(extent),
                }
            }
            Record::Dropped(unit) => {
                let had = self.units.remove(&unit).unwrap_or_default();
                self.dropped.entry(unit).or_default().extend(had);
            }
        }
        self.read += RECORD as u64;
    }

    /// The journal's generation; `None` if there is no journal.
    pub fn generation(&self) -> Option<u32> {
        self.generation
    }

    /// Offset of the next record in the journal.
    pub fn next(&self) -> u64 {
        self.read
    }

    /// Where the next `len` bytes of a unit go in its pack, in order: into the space of the unit before it was dropped, then at
    /// the end.
    pub fn room(&self, unit: WeightUnit, len: u64) -> Vec<Extent> {
        let (mut room, mut left) = (Vec::new(), len);
        for old in self.dropped.get(&unit).into_iter().flatten() {
            let some = old.len.min(left);
            room.push(Extent { offset: old.offset, len: some });
            left -= some;
        }
        room.push(Extent { offset: self.end(unit), len: left });
        room.retain(|extent| extent.len > 0);
        room
    }

    /// Stored units that a pack truncated to `size` bytes lacks a part of. If more were appended, zeros would be read in their
    /// place.
    pub fn cut_off(&self, pack: Option<BlockIndex>, size: u64) -> Vec<WeightUnit> {
        let reaches = |extents: &[Extent]| extents.iter().any(|extent| extent.end() > size);
        let units = self.units.iter().filter(|(unit, extents)| unit.block() == pack && reaches(extents));
        units.map(|(unit, _)| *unit).collect()
    }

    /// End of the pack of a unit.
    pub fn end(&self, unit: WeightUnit) -> u64 {
        self.ends.get(&unit.block()).copied().unwrap_or(0)
    }

    /// Number of stored bytes of a unit.
    pub fn len(&self, unit: WeightUnit) -> u64 {
        self.units.get(&unit).map_or(0, |extents| extents.iter().map(|extent| extent.len).sum())
    }

    /// The stored units and their lengths.
    pub fn units(&self) -> impl Iterator<Item = (WeightUnit, u64)> {
        self.units.keys().map(|&unit| (unit, self.len(unit)))
    }

    /// The extents of some bytes of a unit in its pack, in order; `None` if not all of them are stored.
    pub fn extents(&self, unit: WeightUnit, offset: u64, len: u64) -> Option<Vec<Extent>> {
        slice(self.units.get(&unit)?, offset, len)
    }
}

/// The extents of some of the bytes in `extents`; `None` if these have fewer bytes.
pub fn slice(extents: &[Extent], offset: u64, len: u64) -> Option<Vec<Extent>> {
    let (end, mut start) = (offset.checked_add(len)?, 0);
    let mut found = Vec::new();
    for extent in extents {
        let (from, to) = (offset.max(start), end.min(start + extent.len));
        if from < to {
            found.push(Extent { offset: extent.offset + from - start, len: to - from });
        }
        start += extent.len;
    }
    (end <= start).then_some(found)
}

#[cfg(test)]
mod tests;
