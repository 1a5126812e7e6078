//! Rotary position embedding and its scalings.

use serde::{Deserialize, Serialize};

/// Rotary position embedding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RopeSpec {
    /// Rotated dimensions per head.
    pub dims: u32,
    /// Base of the frequencies.
    pub base: f32,
    /// Which dimensions form a pair.
    pub pairs: RopePairs,
    /// Divisor of the positions (linear scaling), 1 for none.
    pub linear_scale: f32,
    /// YaRN, which scales low frequencies by `linear_scale` and keeps high ones.
    pub yarn: Option<Yarn>,
    /// Tensors of frequency divisors.
    pub factors: RopeFactors,
    /// Factor of the rotated values (YaRN, LongRoPE).
    pub magnitude: f32,
    /// Growth of the queries with the position.
    pub temperature: Option<Temperature>,
}

impl RopeSpec {
    /// Unscaled rotation of the first `dims` values of a head.
    pub fn new(dims: u32, base: f32, pairs: RopePairs) -> Self {
        Self {
            dims,
            base,
            pairs,
            linear_scale: 1.0,
            yarn: None,
            factors: RopeFactors::None,
            magnitude: 1.0,
            temperature: None,
        }
    }

    /// No rotation.
    pub fn none(&self) -> Self {
        Self { dims: 0, yarn: None, factors: RopeFactors::None, magnitude: 1.0, ..self.clone() }
    }

    /// The rotation of each pair per position in radians, before any factors.
    pub fn frequencies(&self) -> Vec<f64> {
        let (base, dims) = (f64::from(self.base), f64::from(self.dims));
        let pairs = (0..self.dims / 2).map(f64::from);
        pairs
            .map(|pair| {
                let frequency = base.powf(-2.0 * pair / dims);
                let scaled = frequency / f64::from(self.linear_scale);
                match self.yarn {
                    None => scaled,
                    Some(yarn) => {
                        let kept = yarn.kept(pair, dims, base);
                        scaled * (1.0 - kept) + frequency * kept
                    }
                }
            })
            .collect()
    }
}

/// YaRN (Peng et al. 2023): which frequencies keep their training speed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Yarn {
    /// Context the model was first trained for.
    pub original: u32,
    /// Pairs that turn more often than this over the original context keep their speed.
    pub fast: f32,
    /// Pairs that turn less often than this are scaled fully.
    pub slow: f32,
}

impl Yarn {
    /// How much of a pair's unscaled frequency remains, from 0 to 1 (section 3.2 of the paper, rounded as llama.cpp
    /// does).
    fn kept(self, pair: f64, dims: f64, base: f64) -> f64 {
        let pair_of = |turns: f32| {
            dims * (f64::from(self.original) / (f64::from(turns) * std::f64::consts::TAU)).ln() / (2.0 * base.ln())
        };
        let low = pair_of(self.fast).floor().max(0.0);
        let high = pair_of(self.slow).ceil().min(dims - 1.0);
        1.0 - ((pair - low) / (high - low).max(0.001)).clamp(0.0, 1.0)
    }
}

/// Where divisors of the rotary frequencies come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RopeFactors {
    /// There are none.
    None,
    /// One tensor (`rope_freqs.weight`, Llama 3).
    Fixed,
    /// Two tensors (LongRoPE): `rope_factors_long.weight` if the context is longer than the original one, otherwise
    /// `rope_factors_short.weight`.
    ByContext {
        /// The context the model was first trained for.
        original: u32,
    },
}

/// Growth of the queries with the position: `1 + scale · ln(1 + floor((position + shift) / step))`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Temperature {
    /// The factor of the logarithm.
    pub scale: f32,
    /// Positions from one value to the next.
    pub step: u32,
    /// Added to the position: 1 if positions count from 1.
    pub shift: u32,
}

/// Which dimensions of a head rotate together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RopePairs {
    /// `(2i, 2i + 1)`: GGUF files of `llama`.
    Adjacent,
    /// `(i, i + dims / 2)`: `qwen2`, `qwen3`, `qwen3moe`.
    Halves,
}
