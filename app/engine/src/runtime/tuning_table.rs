//! Records which of several kernels with identical bits is fastest for a shape on this device. The caller stores the
//! measured choices; they never change a result.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use potluck_shaders::{Format, Job, KernelVariant, PackedTile, Tile};

/// The shape of a product in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shape {
    /// A decode product of one vector.
    Decode {
        /// Weight format of the matrix.
        format: Format,
        /// Whether vectors are quantized.
        packed: bool,
        /// Operations fused into the kernel.
        job: Job,
        /// Number of results.
        rows: u32,
        /// Values per matrix row.
        cols: u32,
    },
    /// A prefill product.
    Prefill {
        /// Weight format of the matrix.
        format: Format,
        /// Rows of the matrix.
        rows: u32,
        /// Values per matrix row.
        cols: u32,
        /// Largest chunk in vectors, a power of two. The shape covers all chunks with more than half as many vectors.
        vectors: u32,
    },
    /// A prefill product of packed integers, otherwise as [`Shape::Prefill`].
    Packed {
        /// Weight format of the matrix.
        format: Format,
        /// Rows of the matrix.
        rows: u32,
        /// Values per matrix row.
        cols: u32,
        /// Largest chunk in vectors.
        vectors: u32,
    },
}

impl Shape {
    /// The chunk size that represents chunks of `n` vectors.
    pub fn chunk(n: u32) -> u32 {
        n.next_power_of_two().clamp(32, 512)
    }
}

/// How a shape is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// With a variant of the fused kernel.
    Variant(KernelVariant),
    /// With a tile of the tiled product.
    Tile(Tile),
    /// With a tile of the packed product.
    Packed(PackedTile),
}

/// Measurement of a shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuned {
    /// The fastest kernel, or the default if none is faster.
    pub choice: Choice,
    /// Speedup over the default; 1 if the default is fastest.
    pub gain: f64,
}

/// Measurements of all shapes so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tuning(BTreeMap<Shape, Tuned>);

/// A line that is not a measurement of this build's kernels.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a tuned shape")]
pub struct UnknownLine(String);

impl Tuning {
    /// Measurement of a shape, if there is one.
    pub fn get(&self, shape: &Shape) -> Option<Tuned> {
        self.0.get(shape).copied()
    }

    /// Stores a measurement.
    pub fn set(&mut self, shape: Shape, tuned: Tuned) {
        self.0.insert(shape, tuned);
    }

    /// Iterates over all measurements.
    pub fn iter(&self) -> impl Iterator<Item = (&Shape, &Tuned)> {
        self.0.iter()
    }

    /// True if nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Serializes each shape as one line.
    pub fn lines(&self) -> Vec<String> {
        self.0.iter().map(|(shape, tuned)| format!("{shape} {} {:.3}", tuned.choice, tuned.gain)).collect()
    }

    /// Parses the output of [`Tuning::lines`].
    ///
    /// # Errors
    /// The first invalid line. The whole input is rejected then.
    pub fn read<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<Tuning, UnknownLine> {
        let read = |line: &'a str| read_line(line).ok_or_else(|| UnknownLine(line.to_owned()));
        lines.into_iter().map(read).collect::<Result<_, _>>().map(Tuning)
    }
}

fn read_line(line: &str) -> Option<(Shape, Tuned)> {
    let words: Vec<&str> = line.split(' ').collect();
    let (shape, [choice, gain]) = words.split_at_checked(words.len().checked_sub(2)?)? else { return None };
    let shape: Shape = shape.join(" ").parse().ok()?;
    let gain: f64 = gain.parse().ok().filter(|gain: &f64| gain.is_finite() && *gain > 0.0)?;
    let choice = match shape {
        // A gated result reads two matrix rows.
        Shape::Decode { job, packed, .. } => {
            let candidates = if packed { KernelVariant::packed_candidates } else { KernelVariant::candidates };
            let known = [1, 2, 4, 8, 16, 32].into_iter().flat_map(|subgroup| candidates(job, subgroup));
            let variant = choice.parse().ok()?;
            Choice::Variant(known.into_iter().find(|known| *known == variant)?)
        }
        Shape::Prefill { .. } => Choice::Tile(Tile::CANDIDATES.into_iter().find(|tile| tile_name(*tile) == *choice)?),
        Shape::Packed { .. } => Choice::Packed(PackedTile::ALL.into_iter().find(|tile| tile.to_string() == *choice)?),
    };
    Some((shape, Tuned { choice, gain }))
}

fn tile_name(tile: Tile) -> String {
    format!("{}x{}", tile.vectors(), tile.rows())
}

impl fmt::Display for Shape {
    /// `decode Q4_K Gated 8192x2048`, `decode packed Q4_K Gated 8192x2048`, `prefill Q4_K 8192x2048 x512`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decode { format, packed, job, rows, cols } => {
                let how = if *packed { "packed " } else { "" };
                write!(f, "decode {how}{} {job:?} {rows}x{cols}", format.name())
            }
            Self::Prefill { format, rows, cols, vectors } => {
                write!(f, "prefill {} {rows}x{cols} x{vectors}", format.name())
            }
            Self::Packed { format, rows, cols, vectors } => {
                write!(f, "packed {} {rows}x{cols} x{vectors}", format.name())
            }
        }
    }
}

impl FromStr for Shape {
    type Err = ();

    fn from_str(text: &str) -> Result<Shape, ()> {
        let words: Vec<&str> = text.split(' ').collect();
        let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0).ok_or(());
        let size = |text: &str| {
            let (rows, cols) = text.split_once('x').ok_or(())?;
            Ok((number(rows)?, number(cols)?))
        };
        let format = |name: &str| Format::ALL.into_iter().find(|format| format.name() == name).ok_or(());
        match words[..] {
            ["decode", ref how @ .., name, job, shape] if how.is_empty() || how == ["packed"] => {
                let job = Job::ALL.into_iter().find(|known| format!("{known:?}") == job).ok_or(())?;
                let (rows, cols) = size(shape)?;
                let (format, packed) = (format(name)?, !how.is_empty());
                if packed && format.packing().is_none() {
                    Err(())
                } else {
                    Ok(Self::Decode { format, packed, job, rows, cols })
                }
            }
            [kind @ ("prefill" | "packed"), name, shape, vectors] => {
                let (rows, cols) = size(shape)?;
                let vectors = number(vectors.strip_prefix('x').ok_or(())?)?;
                let format = format(name)?;
                match kind {
                    "packed" if format.packing().is_some() => Ok(Self::Packed { format, rows, cols, vectors }),
                    "packed" => Err(()),
                    _ => Ok(Self::Prefill { format, rows, cols, vectors }),
                }
            }
            _ => Err(()),
        }
    }
}

impl fmt::Display for Choice {
    /// A variant, or a tile as `64x128`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variant(variant) => variant.fmt(f),
            Self::Tile(tile) => write!(f, "{}", tile_name(*tile)),
            Self::Packed(tile) => write!(f, "{tile}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn some() -> Tuning {
        let mut tuning = Tuning::default();
        let (format, rows, cols) = (Format::Q4_K, 8192, 2048);
        for job in Job::ALL {
            let variant = KernelVariant::candidates(job, 32)[2];
            for packed in [false, true] {
                let shape = Shape::Decode { format, packed, job, rows, cols };
                tuning.set(shape, Tuned { choice: Choice::Variant(variant), gain: 1.25 });
            }
        }
        for (vectors, tile) in [(64, Tile::V64R128), (512, Tile::V128R64)] {
            let shape = Shape::Prefill { format: Format::IQ2_XXS, rows, cols, vectors };
            tuning.set(shape, Tuned { choice: Choice::Tile(tile), gain: 1.0 });
        }
        let shape = Shape::Packed { format: Format::Q6_K, rows, cols, vectors: 512 };
        tuning.set(shape, Tuned { choice: Choice::Packed(PackedTile::V128R64), gain: 1.5 });
        tuning
    }

    #[test]
    fn what_was_measured_reads_back() {
        let tuning = some();
        let lines = tuning.lines();
        assert!(lines.contains(&"prefill IQ2_XXS 8192x2048 x64 64x128 1.000".to_owned()), "{lines:?}");
        assert_eq!(Tuning::read(lines.iter().map(String::as_str)).unwrap(), tuning);
    }

    #[test]
    fn whatever_is_broken_is_refused() {
        for line in some().lines() {
            // Try every truncation and every single-character replacement.
            for at in 0..line.len() - 1 {
                let cut = &line[..at];
                if let Ok(read) = Tuning::read([cut]) {
                    // Only truncating the digits of the gain can go unnoticed.
                    let (shape, tuned) = read.iter().next().unwrap();
                    assert!(line.starts_with(&format!("{shape} {} ", tuned.choice)), "{cut}");
                }
                let broken = format!("{}~{}", &line[..at], &line[at + 1..]);
                assert!(Tuning::read([broken.as_str()]).is_err(), "{broken}");
            }
        }
        for line in
            ["decode Q4_K Gated 8x8 4x4/1 1.0", "decode Q4_K Added 8x8 64x64 1.0", "prefill Q4_K 8x8 x64 2x4/1 1.0"]
        {
            assert!(Tuning::read([line]).is_err(), "{line}: a choice of another kind");
        }
        for line in ["packed F32 8x8 x64 64x64 1.0", "decode packed F32 Added 8x8 2x4/1 1.0"] {
            assert!(Tuning::read([line]).is_err(), "{line}: there is no packed product of floats");
        }
        assert!(Tuning::read(["prefill Q4_K 0x8 x64 64x64 1.0"]).is_err());
        assert!(Tuning::read(["prefill Q4_K 8x8 x64 64x64 NaN"]).is_err());
    }
}
