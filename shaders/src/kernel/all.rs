//! Lists every kernel that any device may use.

use std::collections::BTreeSet;

use potluck_plan::KvCacheType;

use super::{Addition, ConvKind, Dots, Extras, Glu, Job, Kernel, Operand, Pairs, ScanRule, Strategy, VectorStrategy};
use crate::{Format, KernelVariant, Lanes, MatrixTile, PackedTile, Tile};

/// Extras of attention: none, those that models have, and all.
const EXTRAS: [Extras; 7] = [
    Extras::NONE,
    Extras { window: true, cap: false, sinks: false },
    Extras { window: false, cap: true, sinks: false },
    Extras { window: false, cap: false, sinks: true },
    Extras { window: true, cap: true, sinks: false },
    Extras { window: true, cap: false, sinks: true },
    Extras { window: true, cap: true, sinks: true },
];

impl Kernel {
    /// Every variant that only native devices with matrix units use.
    pub fn all_native() -> Vec<Kernel> {
        let mut all = vec![Self::Halve];
        for format in Format::ALL.into_iter().filter(|format| *format != Format::F32) {
            for operand in [Operand::Plain, Operand::Bias, Operand::Expert] {
                // Tiles and formats are independent: one format covers every tile.
                let tiles = if format == Format::Q4_K { &MatrixTile::ALL[..] } else { &[MatrixTile::V64R64] };
                all.extend(tiles.iter().map(|&tile| Self::Matrix { format, operand, tile }));
            }
        }
        all
    }

    /// Every variant in use in browsers and natively, with head widths of `quads` for the attention kernels.
    pub fn all(quads: &[u16]) -> Vec<Kernel> {
        let strategies = [Strategy::PerThread, Strategy::Workgroup];
        let mut all = vec![
            Self::Quantize,
            Self::Route,
            Self::Combine,
            Self::Beside,
            Self::Sample,
            Self::Stream,
            Self::ExpertBias,
            Self::ScaleLogits,
            Self::BiasLogits,
            Self::MaskLogits,
        ];
        all.extend([Glu::Silu, Glu::Gelu, Glu::Clamped, Glu::Sigmoid].map(Self::Glu));
        all.extend([false, true].map(|expert| Self::ScaleBy { expert }));
        all.extend([Self::QueryGates, Self::GateInput]);
        for kind in [ConvKind::Gated, ConvKind::Silu, ConvKind::Biased] {
            all.extend([3, 4].map(|taps| Self::Conv { kind, taps }));
        }
        for strategy in strategies {
            // Widths that models have; the state of a delta net is as wide as its heads.
            let delta = [32, 128].map(|width| Self::Scan { strategy, rule: ScanRule::Delta, width, state: width });
            let space = [(32, 32), (64, 128), (80, 128)];
            let space = space.map(|(width, state)| Self::Scan { strategy, rule: ScanRule::Space, width, state });
            all.extend(delta.into_iter().chain(space));
        }
        for (first, second) in Self::JOINED {
            let packs = first.packing().is_some() && second.packing().is_some();
            for dots in [None, Some(Dots::Packed)].into_iter().filter(|dots| dots.is_none() || packs) {
                let variant = KernelVariant::portable(Job::Normed);
                let portable = Self::Joined { first, second, variant, dots };
                let variants: BTreeSet<Kernel> =
                    [1, 4, 8, 16, 32].into_iter().flat_map(|subgroup| portable.variants(subgroup)).collect();
                all.extend(variants);
            }
        }
        all.extend([false, true].map(|dots| Self::Peak { dots }));
        for format in Format::ALL {
            all.push(Self::Embed(format));
            // Biases and other activations are independent of the format, but for how many bindings it needs.
            let some = [Format::F32, Format::Q4_K, Format::Q6_K, Format::Q8_0, Format::MXFP4, Format::IQ2_XXS];
            let usual = |job: &Job| {
                some.contains(&format)
                    || !matches!(job.activation(), Some(Glu::Gelu | Glu::Clamped)) && !job.is_biased()
            };
            for job in Job::ALL.into_iter().filter(|job| usual(job) || *job == Job::NormedBias) {
                let rows: &[u8] = if job.of_experts() { &[1] } else { &[1, 4] };
                all.extend(rows.iter().map(|&rows| Self::fused(format, rows, job)));
                let packs = format.packing().is_some();
                let packed = rows.iter().map(|&rows| Self::fused_packed(format, rows, job, Dots::Packed));
                all.extend(packed.filter(|_| packs));
                // Variants depend on the format only through the unit that one read covers.
                if [Format::Q4_K, Format::Q6_K].contains(&format) {
                    for portable in [Self::fused(format, 1, job), Self::fused_packed(format, 1, job, Dots::Packed)] {
                        let variants: BTreeSet<Kernel> =
                            [1, 4, 8, 16, 32].into_iter().flat_map(|subgroup| portable.variants(subgroup)).collect();
                        all.extend(variants.into_iter().filter(|variant| *variant != portable));
                    }
                    all.push(Self::fused_packed(format, 1, job, Dots::Shifts));
                }
            }
            if format.packing().is_some() {
                let of = |operand, tile, dots| Self::Packed { format, operand, tile, dots };
                for operand in [Operand::Plain, Operand::Bias, Operand::Expert] {
                    all.push(of(operand, PackedTile::V64R64, Dots::Packed));
                }
                if [Format::Q4_K, Format::Q6_K].contains(&format) {
                    let others = PackedTile::ALL.into_iter().filter(|tile| *tile != PackedTile::V64R64);
                    all.extend(others.map(|tile| of(Operand::Plain, tile, Dots::Packed)));
                    all.push(of(Operand::Plain, PackedTile::V64R64, Dots::Shifts));
                }
            }
            for operand in [Operand::Plain, Operand::Bias, Operand::Expert] {
                // Tiles and formats are independent: one format covers every tile.
                let every = format == Format::Q4_K && operand != Operand::Expert;
                let tiles = if every { &Tile::CANDIDATES[..] } else { &[Tile::V64R64] };
                let grouped = operand == Operand::Expert;
                let broadcast = Lanes::ALL.map(|lanes| Tile::broadcast(format, lanes, grouped));
                let tiles = tiles.iter().copied().chain([Tile::per_thread(format)]).chain(broadcast);
                all.extend(tiles.map(|tile| Self::MatMul { format, operand, tile }));
                for strategy in [VectorStrategy::PerThread, VectorStrategy::Broadcast, VectorStrategy::Workgroup] {
                    let rows: &[u8] = match (operand, strategy) {
                        (Operand::Expert, _) => &[1],
                        (_, VectorStrategy::Workgroup | VectorStrategy::Broadcast) => &[1, 4],
                        (_, VectorStrategy::PerThread) => &[1, 4, 8],
                    };
                    all.extend(rows.iter().map(|&rows| Self::MatVec { format, strategy, rows, operand }));
                }
            }
        }
        for strategy in strategies {
            all.extend([
                Self::Norm(strategy),
                Self::Router(strategy),
                Self::Segments(strategy),
                Self::Top(strategy),
                Self::LogSumExp(strategy),
                Self::Groups(strategy),
            ]);
            all.push(Self::NormPart(strategy));
            let additions = [Addition::Scaled, Addition::Normed, Addition::Gated];
            all.extend(additions.map(|addition| Self::Residual { strategy, addition }));
            for (sigmoid, biased) in [(false, false), (false, true), (true, false), (true, true)] {
                all.push(Self::Choose { strategy, sigmoid, biased });
            }
        }
        let split: Vec<u16> = quads.iter().copied().filter(|&quads| quads <= Self::MAX_SPLIT_QUADS).collect();
        all.extend(split.iter().map(|&quads| Self::Merge { quads }));
        for kv_type in KvCacheType::ALL {
            let quads: Vec<u16> = quads.iter().copied().filter(|&quads| kv_type.takes(u32::from(quads) * 4)).collect();
            for pairs in [Pairs::Adjacent, Pairs::Halves] {
                for (qk_norm, factors) in [(false, false), (false, true), (true, false), (true, true)] {
                    all.push(Self::Rope { kv_type, pairs, qk_norm, factors });
                }
            }
            let shared = || quads.iter().filter(|&&quads| quads <= Self::MAX_SHARED_QUADS);
            let split = quads.iter().filter(|&&quads| quads <= Self::MAX_SPLIT_QUADS);
            let splits: BTreeSet<Kernel> =
                split.flat_map(|&quads| [1, 2, 4].map(|heads| Self::split(kv_type, quads, heads))).collect();
            let mut attention: Vec<Kernel> = splits.into_iter().collect();
            let extras = Extras::NONE;
            attention.extend(shared().map(|&quads| Self::FlashAttention { kv_type, quads, extras }));
            for strategy in strategies {
                attention.extend(quads.iter().map(|&quads| Self::Attention { kv_type, strategy, quads, extras }));
            }
            // Extras, cache types and head widths are independent: one type covers every combination of extras.
            let combinations: &[Extras] = if kv_type == KvCacheType::F32 { &EXTRAS } else { &EXTRAS[..1] };
            for &extras in combinations {
                all.extend(attention.iter().map(|kernel| kernel.with_extras(extras)));
            }
        }
        all
    }
}
