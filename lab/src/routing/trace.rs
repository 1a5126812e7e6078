//! Routing traces: what a model's routers chose, token by token, and what predictors that need the model said. A compact
//! file, so that recall and caches are studied without the model.
//!
//! ```text
//! "PLRT", version 1 (u8), blocks (u16), experts (u16), used (u8), channels (u8)
//! for each channel: length (u8), name; the first one is what the model itself chose
//! sequences (u32), for each: tokens (u32), tokens of the prompt among them (u32)
//! then for each sequence, channel, token and block: `used` expert ids of ⌈log2 experts⌉ bits each, in router order
//! ```
//!
//! Numbers are little-endian; bits fill bytes from the lowest; the last byte is filled with zeros. Blocks are those with
//! experts.

use potluck_plan::{BlockIndex, ExpertId, Position};
use potluck_predict::TraceShape;
use thiserror::Error;

/// Most bytes of a trace.
pub const MAX_TRACE_BYTES: usize = 2 << 20;

const MAGIC: [u8; 4] = *b"PLRT";
const VERSION: u8 = 1;

/// What was recorded of one conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// Tokens of the prompt, which come first.
    pub prompt: u32,
    /// For each channel the experts: tokens × blocks × used.
    pub experts: Vec<Vec<ExpertId>>,
}

/// A recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The model's sizes.
    pub shape: TraceShape,
    /// What was recorded; the first channel is what the model chose.
    pub channels: Vec<String>,
    /// Conversations.
    pub sequences: Vec<Sequence>,
}

/// Why bytes are no trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TraceError {
    /// It starts otherwise.
    #[error("this is no routing trace")]
    NoTrace,
    /// Of a later version.
    #[error("the routing trace has version {0}, this program reads 1")]
    Version(u8),
    /// Something is missing at the end, or left over.
    #[error("the routing trace is cut short or too long")]
    Length,
    /// An expert that the model does not have, or one that a token uses twice.
    #[error("the routing trace names experts that cannot be")]
    Expert,
    /// Sizes or names that no trace has.
    #[error("the sizes in the routing trace cannot be")]
    Sizes,
    /// Larger than [`MAX_TRACE_BYTES`].
    #[error("the routing trace is larger than 2 MiB")]
    TooLarge,
}

/// Bits of an expert id.
fn bits(shape: TraceShape) -> u32 {
    u16::BITS - shape.experts.saturating_sub(1).leading_zeros()
}

/// Experts a token uses in all blocks.
fn of_token(shape: TraceShape) -> usize {
    usize::from(shape.blocks) * usize::from(shape.used)
}

fn is_possible(shape: TraceShape) -> bool {
    shape.blocks > 0 && shape.used > 0 && u16::from(shape.used) <= shape.experts
}

impl Sequence {
    /// Tokens, those of the prompt included.
    pub fn tokens(&self, shape: TraceShape) -> u32 {
        (self.experts.first().map_or(0, Vec::len) / of_token(shape).max(1)) as u32
    }

    /// The experts in a channel of a token in a block, in router order.
    pub fn chosen(&self, shape: TraceShape, channel: usize, at: Position, block: BlockIndex) -> Option<&[ExpertId]> {
        let used = usize::from(shape.used);
        let start = (at.0 as usize).checked_mul(of_token(shape))? + usize::from(block.0) * used;
        self.experts.get(channel).filter(|_| block.0 < shape.blocks)?.get(start..start + used)
    }
}

impl Trace {
    /// As a file.
    ///
    /// # Errors
    /// [`TraceError`] if the sizes do not agree.
    pub fn to_bytes(&self) -> Result<Vec<u8>, TraceError> {
        let shape = self.shape;
        let names = self.channels.iter().all(|name| u8::try_from(name.len()).is_ok());
        let channels = u8::try_from(self.channels.len()).map_err(|_| TraceError::Sizes)?;
        if !is_possible(shape) || channels == 0 || !names {
            return Err(TraceError::Sizes);
        }
        let mut bytes = MAGIC.to_vec();
        bytes.push(VERSION);
        bytes.extend(shape.blocks.to_le_bytes());
        bytes.extend(shape.experts.to_le_bytes());
        bytes.extend([shape.used, channels]);
        for name in &self.channels {
            bytes.push(name.len() as u8);
            bytes.extend(name.as_bytes());
        }
        bytes.extend((self.sequences.len() as u32).to_le_bytes());
        let mut packed = Bits::default();
        for sequence in &self.sequences {
            let tokens = sequence.tokens(shape);
            let length = tokens as usize * of_token(shape);
            let is_whole = sequence.experts.len() == self.channels.len()
                && sequence.experts.iter().all(|experts| experts.len() == length)
                && sequence.prompt <= tokens;
            if !is_whole {
                return Err(TraceError::Sizes);
            }
            bytes.extend(tokens.to_le_bytes());
            bytes.extend(sequence.prompt.to_le_bytes());
            for chosen in sequence.experts.iter().flat_map(|experts| experts.chunks_exact(usize::from(shape.used))) {
                check(chosen, shape)?;
                chosen.iter().for_each(|expert| packed.push(expert.0, bits(shape)));
            }
        }
        bytes.extend(packed.bytes);
        if bytes.len() > MAX_TRACE_BYTES { Err(TraceError::TooLarge) } else { Ok(bytes) }
    }

    /// From a file.
    ///
    /// # Errors
    /// [`TraceError`] for whatever is no whole trace. Nothing is allocated before the length is checked.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TraceError> {
        if bytes.len() > MAX_TRACE_BYTES {
            return Err(TraceError::TooLarge);
        }
        let mut reader = Reader(bytes);
        if reader.take(MAGIC.len())? != MAGIC {
            return Err(TraceError::NoTrace);
        }
        let version = reader.u8()?;
        if version != VERSION {
            return Err(TraceError::Version(version));
        }
        let shape = TraceShape { blocks: reader.u16()?, experts: reader.u16()?, used: reader.u8()? };
        let count = reader.u8()?;
        if !is_possible(shape) || count == 0 {
            return Err(TraceError::Sizes);
        }
        let channels = (0..count).map(|_| reader.name()).collect::<Result<Vec<_>, _>>()?;
        let sequences = reader.u32()? as usize;
        if sequences > reader.0.len() / 8 {
            return Err(TraceError::Length);
        }
        let sizes =
            (0..sequences).map(|_| Ok((reader.u32()?, reader.u32()?))).collect::<Result<Vec<_>, TraceError>>()?;
        let tokens: u64 = sizes.iter().map(|(tokens, _)| u64::from(*tokens)).sum();
        // At most 2^32 sequences of 2^32 tokens would overflow, but the sizes of that many do not fit 2 MiB.
        let numbers = tokens.saturating_mul(u64::from(count)).saturating_mul(of_token(shape) as u64);
        if numbers.saturating_mul(u64::from(bits(shape))).div_ceil(8) != reader.0.len() as u64
            || numbers > 8 * MAX_TRACE_BYTES as u64
        {
            return Err(TraceError::Length);
        }
        if sizes.iter().any(|(tokens, prompt)| prompt > tokens) {
            return Err(TraceError::Sizes);
        }
        let mut packed = BitReader { bytes: reader.0, at: 0 };
        let mut channel = |tokens: u32| {
            let experts: Vec<ExpertId> =
                (0..tokens as usize * of_token(shape)).map(|_| ExpertId(packed.next(bits(shape)))).collect();
            experts.chunks_exact(usize::from(shape.used)).try_for_each(|chosen| check(chosen, shape))?;
            Ok(experts)
        };
        let sequences = sizes.into_iter().map(|(tokens, prompt)| {
            let experts = channels.iter().map(|_| channel(tokens)).collect::<Result<Vec<_>, TraceError>>()?;
            Ok(Sequence { prompt, experts })
        });
        let sequences = sequences.collect::<Result<Vec<_>, TraceError>>()?;
        Ok(Self { shape, channels, sequences })
    }
}

fn check(chosen: &[ExpertId], shape: TraceShape) -> Result<(), TraceError> {
    let known = chosen.iter().all(|expert| expert.0 < shape.experts);
    let distinct = chosen.iter().enumerate().all(|(index, expert)| !chosen[..index].contains(expert));
    if known && distinct { Ok(()) } else { Err(TraceError::Expert) }
}

/// Bits to bytes.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    used: u32,
}

impl Bits {
    fn push(&mut self, value: u16, bits: u32) {
        for bit in 0..bits {
            if self.used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= ((value >> bit & 1) as u8) << (self.used % 8);
            }
            self.used += 1;
        }
    }
}

/// Bytes to bits. What is missing is zero; lengths are checked before.
struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl BitReader<'_> {
    fn next(&mut self, bits: u32) -> u16 {
        let mut value = 0;
        for bit in 0..bits {
            let byte = self.bytes.get(self.at / 8).copied().unwrap_or(0);
            value |= u16::from(byte >> (self.at % 8) & 1) << bit;
            self.at += 1;
        }
        value
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], TraceError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(TraceError::Length)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], TraceError> {
        self.take(N)?.try_into().map_err(|_| TraceError::Length)
    }

    fn u8(&mut self) -> Result<u8, TraceError> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    fn u16(&mut self) -> Result<u16, TraceError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, TraceError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn name(&mut self) -> Result<String, TraceError> {
        let length = usize::from(self.u8()?);
        String::from_utf8(self.take(length)?.to_vec()).map_err(|_| TraceError::Sizes)
    }
}

#[cfg(test)]
mod tests;
