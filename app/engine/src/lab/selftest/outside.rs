//! Tests every format in every kind of kernel against an independent dequantizer: the blocks and values are those that
//! libggml and PyPI `gguf` agree on (`e2e/golden/vectors.py`).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use futures::executor::block_on;
use potluck_model::{Architecture, ModelSpec, Scales, UnitMap};
use potluck_plan::KvCacheType;
use potluck_shaders::{
    Dots, Format, Job, Kernel, KernelVariant, Lanes, Operand, PackedTile, Strategy, Tile, VectorStrategy, params,
};

use super::data::{Matrices, Random, raw};
use super::{Case, Expected, cases, other_bits};
use crate::lab::microbench::Probe;
use crate::{Engine, Gpu, GpuOptions, Settings};

/// The largest normalized mean squared error of 32-bit sums.
const MAX: f64 = 1e-7;

type Blocks = Vec<(Vec<u8>, Vec<f32>)>;

/// Blocks and their values, from the golden data of `potluck-gguf`.
fn golden(format: Format) -> Blocks {
    let path = format!("{}/../gguf/tests/data/dequantize/{}.bin", env!("CARGO_MANIFEST_DIR"), format.name());
    let file = std::fs::read(&path).unwrap();
    let (size, values) = (format.block_bytes() as usize, format.block_values() as usize);
    let (bytes, floats) = file.split_at(file.len() / (size + 4 * values) * size);
    let floats: Vec<f32> = floats.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    let blocks: Blocks =
        bytes.chunks_exact(size).map(<[u8]>::to_vec).zip(floats.chunks_exact(values).map(<[f32]>::to_vec)).collect();
    // A value of 65504 among small ones would hide any error in them.
    blocks.into_iter().filter(|(_, values)| values.iter().all(|value| value.abs() < 1e4)).collect()
}

pub fn engine() -> Engine {
    let gpu = block_on(Gpu::open(GpuOptions::default())).expect("these tests need a Vulkan adapter");
    let spec = ModelSpec {
        architecture: Architecture::Llama,
        name: "none".into(),
        hidden: 4,
        vocabulary: 1,
        context: 1,
        norm_epsilon: 1e-5,
        tied_lm_head: true,
        block_inputs: None,
        scales: Scales::default(),
        blocks: Vec::new(),
    };
    Engine::new(&gpu, spec, UnitMap::default(), Settings::default(), Box::new(|_| {})).unwrap()
}

pub fn run(engine: &Engine, probes: &[Probe]) -> Vec<Vec<u8>> {
    let launched = engine.inner.core.borrow_mut().launch_probes(probes);
    block_on(launched.outputs()).unwrap()
}

fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()))
}

/// Sum of squared errors divided by the sum of squared values.
fn error(output: &[u8], expected: &Expected) -> f64 {
    let Expected::Floats(expected, _) = expected else { panic!("matrix kernels give floats") };
    let square = |v: f64| v * v;
    let wrong: f64 = floats(output).zip(expected).map(|(a, &b)| square(f64::from(a) - f64::from(b))).sum();
    wrong / expected.iter().map(|&v| square(f64::from(v))).sum::<f64>()
}

/// One lookup, vector, matrix and expert kernel each: the others differ only in what surrounds the same fetch.
fn kernels(format: Format, lanes: Option<Lanes>) -> Vec<Kernel> {
    let broadcast = lanes.into_iter().flat_map(|lanes| {
        [(Operand::Plain, false), (Operand::Expert, true)].map(|(operand, grouped)| {
            let tile = Tile::broadcast(format, lanes, grouped);
            Kernel::MatMul { format, operand, tile }
        })
    });
    let mut all = vec![
        Kernel::Embed(format),
        Kernel::MatVec { format, strategy: VectorStrategy::PerThread, rows: 1, operand: Operand::Plain },
        Kernel::fused(format, 1, Job::GatedExpert),
        Kernel::MatMul { format, operand: Operand::Plain, tile: Tile::V64R64 },
        Kernel::MatMul { format, operand: Operand::Plain, tile: Tile::per_thread(format) },
        Kernel::MatMul { format, operand: Operand::Expert, tile: Tile::per_thread(format) },
        Kernel::MatMul { format, operand: Operand::Expert, tile: Tile::V64R64 },
    ];
    all.extend(broadcast);
    if format.packing().is_some() {
        let (tile, dots) = (PackedTile::V32R32, Dots::Packed);
        all.extend([Operand::Plain, Operand::Expert].map(|operand| Kernel::Packed { format, operand, tile, dots }));
        all.extend(
            [(1, Job::GatedExpert), (4, Job::Normed)].map(|(n, job)| Kernel::fused_packed(format, n, job, dots)),
        );
    }
    all.extend(lanes.map(|_| {
        let (strategy, operand) = (VectorStrategy::Broadcast, Operand::Plain);
        Kernel::MatVec { format, strategy, rows: 1, operand }
    }));
    all
}

fn lanes(engine: &Engine) -> Option<Lanes> {
    engine.inner.core.borrow().model.gpu.capabilities().lanes
}

#[test]
fn every_format_equals_the_outside_dequantizer_in_every_kind_of_kernel() {
    let engine = engine();
    let mut random = Random(12);
    for format in Format::ALL {
        let known = golden(format);
        assert!(known.len() >= 3, "{}", format.name());
        let odd = |random: &mut Random, max: u64| 2 * (random.next() % max) as u32 + 1;
        let matrices = Matrices {
            rows: 8 + odd(&mut random, 20),
            expert_rows: odd(&mut random, 20),
            blocks: odd(&mut random, 3),
            known: Some(&known),
        };
        let of = |kernel| cases::with(kernel, &matrices);
        let cases: Vec<Case> = kernels(format, lanes(&engine)).into_iter().flat_map(of).collect();
        let probes: Vec<Probe> = cases.iter().map(|case| case.probe.clone()).collect();
        for (case, output) in cases.iter().zip(run(&engine, &probes)) {
            let error = error(&output, &case.expected);
            let name = case.probe.kernel.name();
            assert!(error <= MAX, "{name}: {error:e} with {} rows, {} blocks", matrices.rows, matrices.blocks);
        }
    }
}

/// Blocks that are read as words, blocks that begin at any byte, and rows that end inside 16 values; the packed ones have units of
/// their own, or any, of whose blocks a row may end with the first.
const FORMS: [(Format, Option<Dots>); 8] = [
    (Format::Q4_K, None),
    (Format::Q6_K, None),
    (Format::MXFP4, None),
    (Format::F32, None),
    (Format::Q4_K, Some(Dots::Packed)),
    (Format::Q6_K, Some(Dots::Packed)),
    (Format::Q8_0, Some(Dots::Packed)),
    (Format::Q5_K, Some(Dots::Packed)),
];

fn fused(format: Format, job: Job, dots: Option<Dots>) -> Kernel {
    dots.map_or(Kernel::fused(format, 1, job), |dots| Kernel::fused_packed(format, 1, job, dots))
}

#[test]
fn all_forms_of_a_fused_kernel_give_the_same_bits() {
    let engine = engine();
    let subgroup = engine.inner.core.borrow().model.gpu.capabilities().subgroup;
    for (format, dots) in FORMS {
        // Jobs and units are independent: two formats cover every job.
        let every = dots.is_none() || [Format::Q4_K, Format::Q6_K].contains(&format);
        let some = |job: &Job| every || matches!(job, Job::Normed | Job::Added | Job::GatedExpert | Job::ExpertDown);
        for job in Job::ALL.into_iter().filter(some) {
            let mut candidates = fused(format, job, dots).variants(subgroup).split_off(1);
            // Whose case with one expert is the same product.
            let sums = [Job::ExpertSum, Job::BiasedSum].into_iter().filter(|sum| sum.alone() == job && *sum != job);
            candidates.extend(sums.map(|sum| fused(format, sum, dots)));
            candidates.extend(dots.filter(|_| job == Job::Added).map(|_| fused(format, job, Some(Dots::Shifts))));
            block_on(engine.try_candidates(fused(format, job, dots), &candidates, f64::INFINITY)).unwrap();
            let core = engine.inner.core.borrow();
            for kernel in candidates {
                assert_eq!(core.model.tried.get(&kernel), Some(&true), "{}", kernel.name());
            }
        }
    }
    println!("subgroups of {subgroup} at least");
}

#[test]
fn several_vectors_of_a_fused_kernel_have_the_bits_of_one() {
    let engine = engine();
    for (format, dots) in FORMS {
        for job in Job::ALL.into_iter().filter(|job| !job.of_experts()) {
            let outputs = [1, 4].map(|rows| {
                let portable = KernelVariant::portable(job);
                let case = cases::of(Kernel::Fused { format, rows, job, variant: portable, dots }).remove(0);
                let output = run(&engine, std::slice::from_ref(&case.probe)).remove(0);
                let (error, tolerance) = case.expected.judge(&output);
                assert!(error <= tolerance, "{}: {error:e}", case.probe.kernel.name());
                output
            });
            assert!(outputs[0] == outputs[1], "{} {job:?} {dots:?}", format.name());
        }
    }
}

#[test]
fn two_products_in_one_dispatch_have_the_bits_of_two() {
    let engine = engine();
    let subgroup = engine.inner.core.borrow().model.gpu.capabilities().subgroup;
    let packs = |(first, second): &(Format, Format)| first.packing().is_some() && second.packing().is_some();
    let packed = Kernel::JOINED.into_iter().filter(packs).map(|pair| (pair, Some(Dots::Packed)));
    for ((first, second), dots) in Kernel::JOINED.into_iter().map(|pair| (pair, None)).chain(packed) {
        let separate = [first, second].map(|format| fused(format, Job::Normed, dots));
        let variant = KernelVariant::portable(Job::Normed);
        let joined = Kernel::Joined { first, second, variant, dots }.variants(subgroup);
        let cases: Vec<Case> = separate.into_iter().chain(joined).flat_map(cases::of).collect();
        let probes: Vec<Probe> = cases.iter().map(|case| case.probe.clone()).collect();
        let outputs = run(&engine, &probes);
        for (case, output) in cases.iter().zip(&outputs) {
            let (error, tolerance) = case.expected.judge(output);
            assert!(error <= tolerance, "{}: {error:e}", case.probe.kernel.name());
        }
        let wrong: Vec<String> = other_bits(&cases, &outputs).into_iter().map(Kernel::name).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}

#[test]
fn tiles_with_and_without_barriers_give_the_same_bits() {
    // Tiles and formats are independent: one format with blocks, and one whose rows end inside 16 values, cover every
    // tile.
    let variants = [
        (Format::Q4_K, Operand::Plain),
        (Format::Q4_K, Operand::Bias),
        (Format::Q4_K, Operand::Expert),
        (Format::F32, Operand::Plain),
    ];
    let engine = engine();
    for (format, operand) in variants {
        let mut tiles = vec![Tile::V32R32, Tile::V64R128, Tile::V16R32, Tile::PerThreadV8R2, Tile::PerThreadV8R4];
        if let Some(lanes) = lanes(&engine) {
            tiles.extend([Tile::BroadcastV8R2(lanes), Tile::BroadcastV8R4(lanes)]);
            tiles.extend([Tile::BroadcastV16R2(lanes), Tile::BroadcastV16R4(lanes)]);
        }
        let of = |&tile| cases::of(Kernel::MatMul { format, operand, tile });
        let cases: Vec<Vec<Case>> = tiles.iter().map(of).collect();
        for number in 0..cases[0].len() {
            let probes: Vec<Probe> = cases.iter().map(|of_tile| of_tile[number].probe.clone()).collect();
            let outputs = run(&engine, &probes);
            for (tile, output) in tiles.iter().zip(&outputs) {
                // A larger tile covers more vectors.
                let both = output.len().min(outputs[0].len());
                assert!(output[..both] == outputs[0][..both], "{} {operand:?} {tile:?} case {number}", format.name());
            }
        }
    }
}

#[test]
fn vectors_read_by_subgroups_give_the_bits_of_vectors_read_by_each_thread() {
    let engine = engine();
    if lanes(&engine).is_none() {
        return println!("skipped: this adapter has no subgroups of four or eight threads");
    }
    let kinds = [(Operand::Plain, 1), (Operand::Plain, 4), (Operand::Bias, 4), (Operand::Expert, 1)];
    for format in [Format::Q4_0, Format::Q6_K, Format::F32] {
        for (operand, rows) in kinds {
            let of = |strategy| cases::of(Kernel::MatVec { format, strategy, rows, operand });
            let [alone, together] = [VectorStrategy::PerThread, VectorStrategy::Broadcast].map(|strategy| {
                let probes: Vec<Probe> = of(strategy).into_iter().map(|case| case.probe).collect();
                run(&engine, &probes)
            });
            assert!(alone == together, "{} {operand:?} ×{rows}", format.name());
        }
    }
}

/// Makes the scales of a block non-finite. `IQ1_M` spreads the bits of its scale over four places.
fn spoil(format: Format, block: &mut [u8], bits: u16) {
    use Format::*;
    let halves: &[usize] = match format {
        F32 => return block.copy_from_slice(&(u32::from(bits | 0x7f80) << 16).to_le_bytes()),
        BF16 => return block.copy_from_slice(&(bits | 0x7f80).to_le_bytes()),
        MXFP4 => return block[0] = 255,
        NVFP4 => return block[..4].fill(0x7f),
        IQ1_M => {
            let nibbles = block[48..].iter_mut().skip(1).step_by(2).enumerate();
            return nibbles.for_each(|(i, byte)| *byte = *byte & 15 | ((bits >> (4 * i)) as u8 & 15) << 4);
        }
        Q4_1 | Q5_1 | Q4_K | Q5_K => &[0, 2],
        Q2_K => &[80, 82],
        Q3_K => &[108],
        Q6_K => &[208],
        TQ1_0 => &[52],
        TQ2_0 => &[64],
        _ => &[0],
    };
    halves.iter().for_each(|&at| block[at..at + 2].copy_from_slice(&bits.to_le_bytes()));
}

#[test]
fn a_scale_that_is_no_number_counts_as_zero_and_spoils_nothing_else() {
    let engine = engine();
    for format in Format::ALL {
        let known = golden(format);
        let (size, values) = (format.block_bytes() as usize, format.block_values() as usize);
        let cols = if values == 1 { 8 } else { 4 * values };
        let (mut bytes, mut expected) = (Vec::new(), Vec::new());
        // NaN, infinity and their negatives in every second block of four rows.
        for bits in [0x7e00u16, 0x7c00, 0xfd55, 0xfc00] {
            for at in 0..cols / values {
                let (mut block, mut means) = known[at % known.len()].clone();
                if at % 2 == 1 {
                    spoil(format, &mut block, bits);
                    means.fill(0.0);
                }
                bytes.extend(block);
                expected.extend(means);
            }
        }
        let chunks = (cols as u32).div_ceil(16);
        let row_bytes = (cols / values * size) as u32;
        let kernel = Kernel::Embed(format);
        let params = params::Embed { n: 4, first: 0, rows: 4, row_bytes, cols: cols as u32, chunks, scale: 1.0 };
        let probe = Probe {
            kernel,
            bindings: vec![bytes, raw(&[0u32, 1, 2, 3]), raw(&vec![f32::NAN; 4 * cols])],
            params: bytemuck::bytes_of(&params).to_vec(),
            x: (4 * chunks).div_ceil(kernel.threads()),
            y: 1,
            z: 1,
            output: 2,
        };
        let output = run(&engine, &[probe]).remove(0);
        let largest = expected.iter().fold(0.0, |max: f32, value| max.max(value.abs()));
        for (at, (value, &expected)) in floats(&output).zip(&expected).enumerate() {
            let close = (value - expected).abs() <= 1e-6 * largest;
            assert!(close, "{}: value {at} is {value}, {expected} was expected", format.name());
        }
    }
}

/// Rows of floats, and the blocks that libggml and PyPI `gguf` store for them: ordinary, tiny, large and zero values.
fn stored_outside(format: Format) -> (Vec<f32>, Vec<u8>) {
    let path = format!("{}/../gguf/tests/data/quantize/{}.bin", env!("CARGO_MANIFEST_DIR"), format.name());
    let file = std::fs::read(&path).unwrap();
    let (size, values) = (format.block_bytes() as usize, format.block_values() as usize);
    let (values, blocks) = file.split_at(file.len() / (size + 4 * values) * 4 * values);
    (floats(values).collect(), blocks.to_vec())
}

#[test]
fn keys_and_values_are_stored_as_outside_software_would() {
    let engine = engine();
    // Heads of one block, of two blocks that share a word of scales, and of three.
    for (kv_type, format) in [(KvCacheType::Q8_0, Format::Q8_0), (KvCacheType::Q4_0, Format::Q4_0)] {
        let (given, blocks) = stored_outside(format);
        let expected = potluck_shaders::reference::dequantize(format, &blocks);
        for dim in [32usize, 64, 96] {
            // Position 0 rotates nothing, so keys and values are the input.
            let n = given.len() / dim;
            let qkv: Vec<f32> = given.chunks_exact(dim).flat_map(|head| [head, head, head].concat()).collect();
            let rows: Vec<[u32; 4]> = (0..n as u32).map(|row| [0, row, 0, 0]).collect();
            let kernel =
                Kernel::Rope { kv_type, pairs: potluck_shaders::Pairs::Halves, qk_norm: false, factors: false };
            let dim_u32 = dim as u32;
            let params = params::Rope {
                n: n as u32,
                heads: 1,
                kv_heads: 1,
                value_heads: 1,
                head_dim: dim_u32,
                dims: dim_u32,
                epsilon: 1e-5,
                magnitude: 1.0,
                ..Default::default()
            };
            let bytes = 4 * kv_type.head_words(dim_u32) as usize;
            let threads = (3 * n) as u32 * Kernel::rope_threads(kv_type, dim_u32);
            let probe = |output| Probe {
                kernel,
                bindings: vec![
                    raw(&rows),
                    raw(&qkv),
                    raw(&vec![0u32; dim / 2]),
                    vec![0; n * dim * 4],
                    vec![0xff; n * bytes],
                    vec![0xff; n * bytes],
                ],
                params: bytemuck::bytes_of(&params).to_vec(),
                x: threads.div_ceil(kernel.threads()),
                y: 1,
                z: 1,
                output,
            };
            let outputs = run(&engine, &[probe(3), probe(4), probe(5)]);
            assert!(floats(&outputs[0]).eq(given.iter().copied()), "{kv_type} {dim}: queries stay exact");
            for stored in &outputs[1..] {
                let heads = stored.chunks_exact(bytes);
                let got: Vec<f32> =
                    heads.flat_map(|head| potluck_shaders::reference::load(kv_type, head, dim)).collect();
                for (block, (got, expected)) in got.chunks_exact(32).zip(expected.chunks_exact(32)).enumerate() {
                    let square =
                        |values: &mut dyn Iterator<Item = f32>| values.map(|v| f64::from(v) * f64::from(v)).sum();
                    let all: f64 = square(&mut expected.iter().copied());
                    let wrong: f64 = square(&mut got.iter().zip(expected).map(|(a, b)| a - b));
                    // A value between two steps may round to either: devices divide with an error in the last bits.
                    assert!(wrong <= 2e-3 * all, "{kv_type} {dim} block {block}: {got:?}, expected {expected:?}");
                }
                let alike = got.iter().zip(&expected).filter(|(a, b)| (*a - **b).abs() <= 1e-6 * b.abs()).count();
                assert!(alike * 1000 >= 995 * got.len(), "{kv_type} {dim}: {alike} of {} alike", got.len());
            }
        }
    }
}

#[test]
fn operations_of_some_architectures_equal_the_reference() {
    let engine = engine();
    let rare = |kernel: &Kernel| match *kernel {
        Kernel::Attention { kv_type, quads, .. } => kv_type == KvCacheType::F16 && quads == Kernel::MAX_QUADS,
        Kernel::Router(_) | Kernel::Route | Kernel::Choose { .. } | Kernel::ScaleBy { .. } => true,
        Kernel::Combine | Kernel::Norm(_) => true,
        Kernel::NormPart(_) | Kernel::Residual { .. } | Kernel::Glu(_) | Kernel::ExpertBias => true,
        Kernel::Conv { .. } | Kernel::QueryGates | Kernel::Beside => true,
        // llvmpipe ends all loops of an invocation after 65,535 iterations in total: too few for one thread a head.
        Kernel::Scan { strategy, state, .. } => strategy == Strategy::Workgroup || state == 32,
        _ => false,
    };
    let kernels = Kernel::all(&[Kernel::MAX_QUADS]).into_iter().filter(rare);
    let cases: Vec<Case> = kernels.flat_map(cases::of).collect();
    let probes: Vec<Probe> = cases.iter().map(|case| case.probe.clone()).collect();
    for (case, output) in cases.iter().zip(run(&engine, &probes)) {
        let (error, tolerance) = case.expected.judge(&output);
        assert!(error <= tolerance, "{}: {error:e}", case.probe.kernel.name());
    }
}
