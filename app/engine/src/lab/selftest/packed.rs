//! Tests the packed product bit by bit against a loop that computes as the kernel should: integers for each block, then
//! `fma` in the order of the blocks. WGSL lets an adapter round inside `fma`, so either way is right, the same everywhere.
//! Tests that decode quantizes its vectors as the packed product's are.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use half::f16;
use potluck_shaders::{Dots, Format, Job, Kernel, Operand, PackedTile, params, reference};

use super::data::raw;
use super::outside::{engine, run};
use super::{Case, cases};
use crate::lab::microbench::Probe;

/// A block of 32 weights: their integers, their scale, and the scale of the second 16 or what every value is less.
type Block = ([i32; 32], f32, f32);

fn half(bytes: &[u8]) -> f32 {
    f16::from_le_bytes([bytes[0], bytes[1]]).to_f32()
}

/// The blocks of a row, as ggml's `dequantize_row_*` read them.
fn blocks(format: Format, row: &[u8]) -> Vec<Block> {
    row.chunks_exact(format.block_bytes() as usize)
        .flat_map(|block| match format {
            Format::Q8_0 => vec![(std::array::from_fn(|i| i32::from(block[2 + i] as i8)), half(block), 0.0)],
            Format::Q4_K => (0..8).map(|part| q4_k(block, part)).collect(),
            Format::Q6_K => (0..8).map(|part| q6_k(block, part)).collect(),
            other => panic!("there is no reference for {}", other.name()),
        })
        .collect()
}

fn q4_k(block: &[u8], part: usize) -> Block {
    let s = &block[4..16];
    let (scale, least) = match part {
        0..4 => (s[part] & 63, s[part + 4] & 63),
        _ => ((s[part + 4] & 15) | (s[part - 4] >> 6 << 4), (s[part + 4] >> 4) | (s[part] >> 6 << 4)),
    };
    let q = |i: usize| i32::from(block[16 + part / 2 * 32 + i] >> (part % 2 * 4) & 15);
    (std::array::from_fn(q), half(block) * f32::from(scale), half(&block[2..]) * f32::from(least))
}

fn q6_k(block: &[u8], part: usize) -> Block {
    let (half_block, group) = (part / 4, part % 4);
    let q = |i: usize| {
        let low = block[64 * half_block + 32 * (group % 2) + i] >> (group / 2 * 4) & 15;
        let high = block[128 + 32 * half_block + i] >> (2 * group) & 3;
        i32::from(low | high << 4) - 32
    };
    let scale = |i: usize| half(&block[208..]) * f32::from(block[192 + 2 * part + i] as i8);
    (std::array::from_fn(q), scale(0), scale(1))
}

/// How an adapter computes `fma`.
#[derive(Clone, Copy, Debug)]
enum Fma {
    Fused,
    Rounded,
}

impl Fma {
    fn of(self, a: f32, b: f32, c: f32) -> f32 {
        match self {
            Self::Fused => a.mul_add(b, c),
            Self::Rounded => a * b + c,
        }
    }
}

/// One element: a row times a quantized vector.
fn element(fma: Fma, format: Format, row: &[Block], vector: &[u32]) -> f32 {
    let byte = |i: usize| i32::from((vector[i / 4] >> (i % 4 * 8)) as u8 as i8);
    let mut sum = 0.0f32;
    for (at, (q, first, second)) in row.iter().enumerate() {
        let dot = |range: std::ops::Range<usize>| range.map(|i| q[i] * byte(32 * at + i)).sum::<i32>() as f32;
        let number = |i: usize| f32::from_bits(vector[8 * row.len() + 2 * at + i]);
        if format == Format::Q6_K {
            sum = fma.of(first * number(0), dot(0..16), sum);
            sum = fma.of(second * number(0), dot(16..32), sum);
        } else {
            sum = fma.of(first * number(0), dot(0..32), sum);
        }
        if format == Format::Q4_K {
            sum = fma.of(-second, number(1), sum);
        }
    }
    sum
}

/// What a case of a plain product should give, bit by bit.
fn expected(fma: Fma, format: Format, probe: &Probe) -> Vec<u8> {
    let params: params::MatVec = bytemuck::pod_read_unaligned(&probe.params);
    let rows: Vec<Vec<Block>> =
        probe.bindings[0].chunks_exact(params.row_bytes as usize).map(|row| blocks(format, row)).collect();
    let words: Vec<u32> = bytemuck::pod_collect_to_vec(&probe.bindings[1]);
    let mut y: Vec<f32> = bytemuck::pod_collect_to_vec(&probe.bindings[2]);
    for (y, x) in y.chunks_exact_mut(params.y_stride as usize).zip(words.chunks_exact(4 * params.x_stride as usize)) {
        for (y, row) in y[params.y_offset as usize..].iter_mut().zip(&rows) {
            *y += element(fma, format, row, x);
        }
    }
    raw(&y)
}

fn kernel(format: Format, operand: Operand, tile: PackedTile) -> Kernel {
    Kernel::Packed { format, operand, tile, dots: Dots::Packed }
}

fn case(kernel: Kernel) -> Case {
    cases::of(kernel).swap_remove(0)
}

#[test]
fn every_tile_and_both_ways_to_sum_give_the_bits_of_the_reference() {
    let engine = engine();
    let mut fits = [Fma::Fused, Fma::Rounded].to_vec();
    // Tiles and formats are independent: one format covers every tile.
    let tiles = PackedTile::ALL.map(|tile| kernel(Format::Q4_K, Operand::Plain, tile));
    let by_shifts = tiles[2].fallback().unwrap();
    let others = [Format::Q8_0, Format::Q6_K].map(|format| kernel(format, Operand::Plain, PackedTile::V32R32));
    for kernel in tiles.into_iter().chain([by_shifts]).chain(others) {
        let format = kernel.format().unwrap();
        let probe = case(kernel).probe;
        let got = &run(&engine, std::slice::from_ref(&probe))[0];
        fits.retain(|&fma| expected(fma, format, &probe) == *got);
        assert!(!fits.is_empty(), "{}", kernel.name());
    }
}

#[test]
fn a_vector_has_the_same_bits_whatever_is_computed_with_it() {
    let engine = engine();
    let probe = case(kernel(Format::Q4_K, Operand::Plain, PackedTile::V64R64)).probe;
    let all = run(&engine, std::slice::from_ref(&probe));
    let params: params::MatVec = bytemuck::pod_read_unaligned(&probe.params);
    for first in [0, 5, params.n - 1] {
        let one = params::MatVec { n: 1, ..params };
        let (x, y) = ((first * params.x_stride * 16) as usize, (first * params.y_stride * 4) as usize);
        let mut alone = Probe { params: raw(&[one]), z: 1, ..probe.clone() };
        alone.bindings[1].drain(..x);
        alone.bindings[2].drain(..y);
        let got = run(&engine, &[alone]);
        let row = (params.y_stride * 4) as usize;
        assert!(got[0][..row] == all[0][y..y + row], "vector {first}");
    }
}

#[test]
fn what_is_no_number_makes_its_vector_no_number_and_no_other() {
    let engine = engine();
    for format in [Format::Q8_0, Format::Q4_K, Format::Q6_K] {
        let mut probe = case(kernel(format, Operand::Plain, PackedTile::V32R32)).probe;
        let params: params::MatVec = bytemuck::pod_read_unaligned(&probe.params);
        let cols = params.cols as usize;
        let mut x = vec![0.5f32; params.n as usize * cols];
        (x[3 * cols + 40], x[7 * cols]) = (f32::NAN, f32::INFINITY);
        x[5 * cols..6 * cols].fill(0.0);
        let before: Vec<f32> = bytemuck::pod_collect_to_vec(&probe.bindings[2]);
        probe.bindings[1] = raw(&x.chunks_exact(cols).flat_map(reference::quantize).collect::<Vec<u32>>());
        let y: Vec<f32> = bytemuck::pod_collect_to_vec(&run(&engine, &[probe])[0]);
        let stride = params.y_stride as usize;
        for vector in 0..params.n as usize {
            let at = vector * stride + params.y_offset as usize;
            let (got, before) = (&y[at..at + params.rows as usize], &before[at..at + params.rows as usize]);
            let lost = got.iter().filter(|v| !v.is_finite()).count();
            let wanted = if [3, 7].contains(&vector) { params.rows as usize } else { 0 };
            assert_eq!(lost, wanted, "{} vector {vector}", format.name());
            assert!(vector != 5 || got == before, "{}: zeros add nothing", format.name());
        }
    }
}

/// A case of packed decode with other vectors, and what it should give: the values of a matrix times what quantization leaves.
fn with_vectors(kernel: Kernel, x: impl Fn(usize) -> f32) -> (Case, Vec<f32>) {
    let mut case = cases::of(kernel).swap_remove(0);
    let params: params::Fused = bytemuck::pod_read_unaligned(&case.probe.params);
    let cols = params.cols as usize;
    let n = case.probe.bindings[1].len() / 4 / cols;
    let x: Vec<f32> = (0..n * cols).map(x).collect();
    case.probe.bindings[1] = raw(&x);
    let gain: Option<Vec<f32>> = case.probe.bindings.get(3).map(|gain| bytemuck::pod_collect_to_vec(gain));
    let format = kernel.format().unwrap();
    let values = reference::dequantize(format, &case.probe.bindings[0]);
    let mut expected = Vec::new();
    for x in x.chunks_exact(cols).skip(params.x_first as usize) {
        let multiplied: Vec<f32> = match &gain {
            Some(gain) => x.iter().zip(gain).map(|(x, gain)| x * gain).collect(),
            None => x.to_vec(),
        };
        let square: f64 = x.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>() / cols as f64;
        let scale = match gain {
            Some(_) => f64::from(params.scale) / (square + f64::from(params.epsilon)).sqrt(),
            None => 1.0,
        };
        let sums = reference::matvec(&values, &reference::quantized(&multiplied));
        let results = (20..37).chain(12..20).chain(0..12).map(|row: usize| (scale * f64::from(sums[row])) as f32);
        expected.extend(results);
    }
    (case, expected)
}

#[test]
fn decode_quantizes_vectors_as_prompts_do() {
    let engine = engine();
    for format in [Format::Q4_K, Format::Q6_K, Format::Q8_0, Format::Q4_0] {
        for (rows, job) in [(1, Job::Added), (4, Job::Added), (1, Job::Normed), (4, Job::Normed)] {
            let kernel = Kernel::fused_packed(format, rows, job, Dots::Packed);
            // By threads alone, and together.
            let subgroup = engine.inner.core.borrow().model.gpu.capabilities().subgroup;
            let kernels = kernel.variants(subgroup).into_iter().take(if rows == 1 { 2 } else { 1 });
            for kernel in kernels {
                // Of many sizes, in no pattern that a block repeats.
                let (case, expected) =
                    with_vectors(kernel, |i| ((i * 7919) as f32 * 0.37).sin() * [1.0, 0.01, 30.0][i / 32 % 3]);
                let params: params::Fused = bytemuck::pod_read_unaligned(&case.probe.params);
                let before: Vec<f32> = bytemuck::pod_collect_to_vec(&case.probe.bindings[2]);
                let y: Vec<f32> = bytemuck::pod_collect_to_vec(&run(&engine, std::slice::from_ref(&case.probe))[0]);
                let largest = expected.iter().fold(0.0f32, |most, v| most.max(v.abs()));
                for (vector, expected) in expected.chunks_exact(37).enumerate() {
                    let at = vector * params.y_stride as usize + 2;
                    for (row, expected) in expected.iter().enumerate() {
                        let sum = y[at + row] - if params.add == 1 { before[at + row] } else { 0.0 };
                        let name = kernel.name();
                        assert!(
                            (sum - expected).abs() <= 2e-5 * largest,
                            "{name} {vector} {row}: {sum}, not {expected}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_no_number_stays_none_in_decode() {
    let engine = engine();
    for (format, rows) in [(Format::Q4_K, 1), (Format::Q6_K, 1), (Format::Q8_0, 1), (Format::Q4_K, 4)] {
        let kernel = Kernel::fused_packed(format, rows, Job::Added, Dots::Packed);
        let cols = {
            let params: params::Fused = bytemuck::pod_read_unaligned(&case(kernel).probe.params);
            params.cols as usize
        };
        // The first vector is not read: the case begins with the second.
        let (case, _) = with_vectors(kernel, |i| match (i / cols, i % cols) {
            (4, 40) => f32::NAN,
            (8, 1000) => f32::NEG_INFINITY,
            (6, _) => 0.0,
            _ => 0.5,
        });
        let params: params::Fused = bytemuck::pod_read_unaligned(&case.probe.params);
        let before: Vec<f32> = bytemuck::pod_collect_to_vec(&case.probe.bindings[2]);
        let y: Vec<f32> = bytemuck::pod_collect_to_vec(&run(&engine, std::slice::from_ref(&case.probe))[0]);
        for vector in 0..params.n as usize {
            let at = vector * params.y_stride as usize + 2;
            let lost = y[at..at + 37].iter().filter(|v| !v.is_finite()).count();
            assert_eq!(lost, if [3, 7].contains(&vector) { 37 } else { 0 }, "{} vector {vector}", kernel.name());
            assert!(vector != 5 || y[at..at + 37] == before[at..at + 37], "{}: zeros add nothing", kernel.name());
        }
    }
}
