//! The dequantizer against libggml and PyPI `gguf`: `e2e/golden/vectors.py` writes the vectors.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_gguf::synthetic::Random;
use potluck_gguf::{GgufError, TensorType, dequantize, quantize};

/// Types whose values other software turned into floats.
const GOLDEN: &str = "F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ2_S \
                      IQ3_XXS IQ3_S IQ4_NL IQ4_XS TQ1_0 TQ2_0 MXFP4 NVFP4 Q1_0 Q2_0";

#[test]
fn every_type_equals_the_outside_reference_bit_for_bit() {
    for name in GOLDEN.split_whitespace() {
        let kind = TensorType::from_name(name).unwrap();
        let path = format!("{}/tests/data/dequantize/{name}.bin", env!("CARGO_MANIFEST_DIR"));
        let file = std::fs::read(&path).unwrap();
        let (elements, size) = (kind.block_elements() as usize, kind.block_bytes() as usize);
        let blocks = file.len() / (size + 4 * elements);
        assert_eq!(blocks * (size + 4 * elements), file.len(), "{name}: a file of whole blocks");
        let (bytes, floats) = file.split_at(blocks * size);
        let expected: Vec<f32> = floats.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        assert!(expected.iter().any(|&v| v != 0.0), "{name}: values worth comparing");
        let mut out = vec![f32::NAN; expected.len()];
        dequantize(kind, bytes, &mut out).unwrap();
        for (i, (ours, theirs)) in out.iter().zip(&expected).enumerate() {
            // Equal as numbers and in bits, but for the sign of zero, on which the two references differ.
            assert!(ours == theirs, "{name}: value {i} is {ours}, the reference has {theirs}");
        }
    }
}

#[test]
fn types_that_hold_no_weights_are_refused_by_name() {
    for kind in TensorType::ALL.into_iter().filter(|kind| !GOLDEN.split_whitespace().any(|name| name == kind.name())) {
        let mut out = vec![0.0; kind.block_elements() as usize];
        let error = dequantize(kind, &vec![0; kind.block_bytes() as usize], &mut out).unwrap_err();
        assert!(matches!(error, GgufError::UnsupportedType { .. }));
        assert!(error.to_string().contains(kind.name()), "{error}");
    }
}

#[test]
fn lengths_that_do_not_match_are_refused() {
    for (bytes, values) in [(18, 31), (17, 32), (36, 32), (0, 32), (18, 0)] {
        let error = dequantize(TensorType::Q4_0, &vec![0; bytes], &mut vec![0.0; values]).unwrap_err();
        assert!(matches!(error, GgufError::LengthMismatch { .. }), "{error}");
    }
    dequantize(TensorType::Q4_0, &[], &mut []).unwrap();
}

#[test]
fn quantized_values_come_back_within_half_a_step() {
    let mut random = Random::new(5, "quantize");
    let values: Vec<f32> = (0..4096).map(|_| random.normal()).collect();
    // The largest error over the deviation (1) that the width of a step allows: an outlier of 4 sets the step of its
    // block.
    for (kind, bound) in [
        (TensorType::F32, 0.0),
        (TensorType::F16, 0.002),
        (TensorType::Q8_0, 0.02),
        (TensorType::Q6_K, 0.09),
        (TensorType::Q4_K, 0.35),
        (TensorType::Q4_0, 0.6),
        (TensorType::Q2_K, 1.2),
    ] {
        let mut bytes = Vec::new();
        quantize(kind, &values, &mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, kind.row_bytes(values.len() as u64).unwrap());
        let mut out = vec![0.0; values.len()];
        dequantize(kind, &bytes, &mut out).unwrap();
        let worst = values.iter().zip(&out).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst <= bound, "{kind}: the largest error is {worst}");
        let rms = (values.iter().zip(&out).map(|(a, b)| (a - b).powi(2)).sum::<f32>() / values.len() as f32).sqrt();
        assert!(rms <= bound / 2.5, "{kind}: the mean error is {rms}");
    }
}

#[test]
fn constant_blocks_survive_quantization() {
    for kind in [TensorType::Q8_0, TensorType::Q4_0, TensorType::Q2_K, TensorType::Q4_K, TensorType::Q6_K] {
        for value in [0.0, 0.5, -0.5] {
            let values = vec![value; 256];
            let mut bytes = Vec::new();
            quantize(kind, &values, &mut bytes).unwrap();
            let mut out = vec![f32::NAN; 256];
            dequantize(kind, &bytes, &mut out).unwrap();
            assert!(out.iter().all(|v| (v - value).abs() < 0.01), "{kind} of {value}: {:?}", &out[..4]);
        }
    }
}

#[test]
fn quantizing_to_other_types_or_broken_blocks_is_refused() {
    let mut out = Vec::new();
    assert!(matches!(quantize(TensorType::IQ2_S, &[0.0; 256], &mut out), Err(GgufError::UnsupportedType { .. })));
    assert!(matches!(quantize(TensorType::Q4_K, &[0.0; 255], &mut out), Err(GgufError::LengthMismatch { .. })));
    assert!(out.is_empty());
}
