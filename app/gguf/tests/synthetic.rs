//! Synthetic models: valid, the same everywhere, and split files that join.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_gguf::synthetic::{Architecture, Fill, MIN_VOCABULARY, Mixture, Random, Shape, Synthetic};
use potluck_gguf::{Array, GgufError, Model, TensorType, Value, dequantize, join, parse};

fn small(architecture: Architecture) -> Synthetic {
    Synthetic { architecture, blocks: 2, experts: 3, ..Synthetic::default() }.with_type(TensorType::Q4_K)
}

fn values(model: &Model, files: &[Vec<u8>], name: &str) -> Vec<f32> {
    let tensor = model.tensor(name).unwrap();
    let bytes = &files[usize::from(tensor.file)][tensor.offset as usize..tensor.end() as usize];
    let mut out = vec![0.0; tensor.elements() as usize];
    dequantize(tensor.kind, bytes, &mut out).unwrap();
    out
}

#[test]
fn every_architecture_has_its_tensors() {
    for architecture in Architecture::ALL {
        let spec = small(architecture);
        let file = spec.to_bytes().unwrap();
        let header = parse(&file).unwrap();
        assert_eq!(header, spec.header().unwrap());
        header.check_length(file.len() as u64).unwrap();
        assert_eq!(header.metadata.str("general.architecture"), Ok(architecture.key()));
        let has = |name: &str| header.tensor(&format!("blk.1.{name}")).is_some();
        assert_eq!(has("attn_q.bias"), architecture == Architecture::Qwen2);
        assert_eq!(has("attn_q_norm.weight"), matches!(architecture, Architecture::Qwen3 | Architecture::Qwen3Moe));
        assert_eq!(has("ffn_gate_exps.weight"), architecture.has_experts());
        assert_eq!(has("ffn_gate.weight"), !architecture.has_experts());
        if architecture.has_experts() {
            let down = header.tensor("blk.0.ffn_down_exps.weight").unwrap();
            assert_eq!((down.cols(), down.rows(), down.matrices()), (256, 256, 3));
        }
    }
}

#[test]
fn a_description_gives_the_same_bytes_always() {
    // FNV-1a of the whole file: a change here changes every golden answer.
    let hash = |bytes: &[u8]| {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3))
    };
    let normal = small(Architecture::Qwen3Moe).to_bytes().unwrap();
    let blocks = Synthetic { fill: Fill::Blocks, ..small(Architecture::Qwen3Moe) }.to_bytes().unwrap();
    let other = Synthetic { seed: 2, ..small(Architecture::Qwen3Moe) }.to_bytes().unwrap();
    assert_eq!(normal.len(), other.len());
    assert_ne!(hash(&normal), hash(&other));
    assert_eq!([hash(&normal), hash(&blocks)], [15020981388004799308, 7422901973685161112]);
}

#[test]
fn values_have_the_deviation_they_were_made_for() {
    for fill in [Fill::Normal, Fill::Blocks] {
        for kind in ["F32", "F16", "Q8_0", "Q4_0", "Q4_K", "Q6_K"] {
            let kind = TensorType::from_name(kind).unwrap();
            let spec = Synthetic { fill, ..small(Architecture::Llama) }.with_type(kind);
            let file = spec.to_bytes().unwrap();
            let model = join([parse(&file).unwrap()]).unwrap();
            // The gain is 1.5 over the root of 256 columns.
            let values = values(&model, &[file], "blk.0.ffn_gate.weight");
            let mean = values.iter().sum::<f32>() / values.len() as f32;
            let deviation = (values.iter().map(|v| (v - mean).powi(2)).sum::<f32>() / values.len() as f32).sqrt();
            let expected = 1.5 / 16.0;
            assert!((deviation / expected - 1.0).abs() < 0.03, "{kind} {fill:?}: deviation {deviation}");
            assert!(mean.abs() < 0.03 * expected, "{kind} {fill:?}: mean {mean}");
        }
    }
}

#[test]
fn types_that_only_random_blocks_can_make() {
    let plain = ["F32", "F16", "Q8_0", "Q4_0", "Q4_K", "Q6_K", "Q2_K"];
    for kind in TensorType::ALL.into_iter().filter(|kind| kind.holds_weights() && !plain.contains(&kind.name())) {
        let spec = Synthetic { fill: Fill::Blocks, ..small(Architecture::Llama) }.with_type(kind);
        let file = spec.to_bytes().unwrap();
        let model = join([parse(&file).unwrap()]).unwrap();
        let values = values(&model, &[file], "blk.0.attn_q.weight");
        let deviation = (values.iter().map(|v| v.powi(2)).sum::<f32>() / values.len() as f32).sqrt();
        assert!((deviation / (1.5 / 16.0) - 1.0).abs() < 0.03, "{kind}: deviation {deviation}");
        let error = Synthetic { fill: Fill::Normal, ..spec }.to_bytes().unwrap_err().to_string();
        assert!(error.contains(kind.name()), "{error}");
    }
}

#[test]
fn normal_numbers_are_normal() {
    let mut random = Random::new(9, "normal");
    let n = 200_000;
    let values: Vec<f32> = (0..n).map(|_| random.normal()).collect();
    let moment = |power: i32| values.iter().map(|v| f64::from(*v).powi(power)).sum::<f64>() / f64::from(n);
    assert!(moment(1).abs() < 0.01 && (moment(2) - 1.0).abs() < 0.01 && moment(3).abs() < 0.03);
    // A sum of eight uniform numbers has a fourth moment of 2.85, a normal number 3.
    assert!((moment(4) - 2.85).abs() < 0.06, "{}", moment(4));
}

#[test]
fn split_files_join_to_the_whole() {
    let spec = small(Architecture::Mixtral);
    let whole = vec![spec.to_bytes().unwrap()];
    let one = join([parse(&whole[0]).unwrap()]).unwrap();
    let files = spec.to_split(3).unwrap();
    let headers: Vec<_> = files.iter().map(|file| parse(file).unwrap()).collect();
    let model = join(headers.clone()).unwrap();
    assert_eq!(model.tensors.len(), one.tensors.len());
    assert_eq!(model.tensor_bytes(), one.tensor_bytes());
    assert_eq!(model.tensors.last().unwrap().file, 2);
    for name in ["token_embd.weight", "blk.1.attn_v.weight", "output.weight"] {
        assert_eq!(values(&model, &files, name), values(&one, &whole, name), "{name}");
    }

    let [a, b, c] = <[_; 3]>::try_from(headers).unwrap();
    let why = |headers: Vec<_>| join(headers).unwrap_err().to_string();
    assert!(why(vec![a.clone(), b.clone()]).contains("file number 3"), "{}", why(vec![a.clone(), b.clone()]));
    assert!(why(vec![b.clone(), a.clone(), c.clone()]).contains("number 2 was given"));
    assert!(why(vec![a.clone(), c.clone(), b.clone()]).contains("file number 2"));
    assert!(why(vec![a.clone(), b.clone(), c.clone(), c.clone()]).contains("one file too many"));
    let other = parse(&spec.to_split(2).unwrap()[1]).unwrap();
    assert!(why(vec![a.clone(), other, c.clone()]).contains("a split into 2"));
    let mut fewer = c.clone();
    fewer.tensors.pop();
    assert!(matches!(join([a.clone(), b.clone(), fewer]), Err(GgufError::SplitTensorCount { .. })));
    let mut doubled = c;
    doubled.tensors[0].name = "token_embd.weight".to_string();
    assert!(matches!(join([a, b, doubled]), Err(GgufError::DuplicateTensor { .. })));
}

#[test]
fn the_tokenizer_is_a_whole_byte_level_vocabulary() {
    for vocabulary in [MIN_VOCABULARY, 512, 40_000] {
        let spec = Synthetic { vocabulary, blocks: 0, tied: true, ..small(Architecture::Llama) };
        let metadata = spec.header().unwrap().metadata;
        let tokens = metadata.strings("tokenizer.ggml.tokens").unwrap();
        assert_eq!(tokens.len(), vocabulary as usize);
        let known: std::collections::HashSet<_> = tokens.iter().collect();
        assert_eq!(known.len(), tokens.len(), "no token twice");
        for (letter, byte) in [("!", 33), ("Ā", 0), ("Ġ", 32), ("Ń", 173), ("ÿ", 255)] {
            assert_eq!(tokens[byte], letter);
        }
        let merges = metadata.strings("tokenizer.ggml.merges").unwrap();
        assert_eq!(merges.len(), tokens.len() - MIN_VOCABULARY as usize);
        for (merge, token) in merges.iter().zip(&tokens[256..]) {
            let (left, right) = merge.split_once(' ').unwrap();
            assert_eq!(format!("{left}{right}"), *token);
            assert!(known.contains(&left.to_string()) && known.contains(&right.to_string()), "{merge}");
        }
        let end = metadata.u32("tokenizer.ggml.eos_token_id").unwrap();
        assert_eq!(tokens[end as usize], "<|im_end|>");
        let Some(Value::Array(Array::I32(types))) = metadata.get("tokenizer.ggml.token_type") else {
            panic!("token types are int32");
        };
        assert_eq!(types.iter().filter(|&&kind| kind == 3).count(), 3);
    }
    assert!(Synthetic { vocabulary: 258, ..small(Architecture::Llama) }.header().is_err());
}

/// Bytes of all tensors, and how many matrices have each type.
fn types(shape: &Synthetic) -> (u64, Vec<(TensorType, usize)>) {
    let header = shape.header().unwrap();
    let mut types = std::collections::BTreeMap::new();
    for tensor in header.tensors.iter().filter(|tensor| tensor.dims.len() > 1) {
        *types.entry(tensor.kind).or_default() += 1;
    }
    (header.tensors.iter().map(|tensor| tensor.bytes).sum(), types.into_iter().collect())
}

#[test]
fn published_shapes_have_the_sizes_and_types_of_published_files() {
    const MIB: u64 = 1 << 20;
    let [f32, q4_k, q6_k] = [TensorType::F32, TensorType::Q4_K, TensorType::Q6_K];
    // Llama-3.2-1B-Instruct-Q4_K_M.gguf: 112 matrices, llama.cpp loads 762.8 MiB of tensors.
    let (bytes, kinds) = types(&Shape::Llama3_2_1B.synthetic());
    assert_eq!((bytes / MIB, kinds), (762, vec![(q4_k, 96), (q6_k, 17)]));
    // Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf: llama.cpp says 4.58 GiB.
    let (bytes, kinds) = types(&Shape::Llama3_1_8B.synthetic());
    assert_eq!(((bytes * 100 + (1 << 29)) >> 30, kinds), (458, vec![(q4_k, 193), (q6_k, 33)]));
    // Qwen3-30B-A3B-Q4_K_M.gguf: 18.6 GB; 48 routers in F32.
    let (bytes, kinds) = types(&Shape::Qwen3_30B_A3B.synthetic());
    assert_eq!((bytes / 100_000_000, kinds), (185, vec![(f32, 48), (q4_k, 289), (q6_k, 49)]));
    // Four of its blocks: llama.cpp puts 1,684 MiB on the GPU, and the embedding's 167 MiB beside it.
    let (bytes, _) = types(&Synthetic { blocks: 4, ..Shape::Qwen3_30B_A3B.synthetic() });
    assert_eq!(bytes / MIB, 1684 + 166);
    let (bytes, _) = types(&Shape::Llama160M.synthetic());
    assert_eq!(bytes / MIB, 97);
    for shape in Shape::ALL {
        assert_eq!(Shape::from_name(shape.name()), Some(shape));
    }
}

#[test]
fn a_mixture_keeps_more_bits_where_llama_cpp_does() {
    let kinds = |spec: &Synthetic, name: &str| -> Vec<&'static str> {
        let header = spec.header().unwrap();
        (0..spec.blocks).map(|block| header.tensor(&format!("blk.{block}.{name}")).unwrap().kind.name()).collect()
    };
    let dense = Synthetic { mixture: Mixture::Q4_K_M, blocks: 8, ..small(Architecture::Qwen3) };
    let mixed = ["Q6_K", "Q4_K", "Q4_K", "Q6_K", "Q4_K", "Q4_K", "Q6_K", "Q6_K"];
    assert_eq!(kinds(&dense, "attn_v.weight"), mixed);
    assert_eq!(kinds(&dense, "ffn_down.weight"), mixed);
    assert_eq!(kinds(&dense, "attn_k.weight"), ["Q4_K"; 8]);
    // Rows that are not whole super-blocks fall back, as those of a model of width 576 do.
    let narrow = Synthetic { hidden: 576, fill: Fill::Blocks, ..dense };
    let fallen = ["Q8_0", "Q5_0", "Q5_0", "Q8_0", "Q5_0", "Q5_0", "Q8_0", "Q8_0"];
    assert_eq!(kinds(&narrow, "attn_v.weight"), fallen);
    assert_eq!(kinds(&narrow, "ffn_down.weight"), mixed);
    narrow.to_bytes().unwrap();
    let eight = Synthetic { mixture: Mixture::Q4_K_M, experts: 8, ..small(Architecture::Mixtral) };
    assert_eq!(kinds(&eight, "attn_k.weight"), ["Q8_0"; 2]);
    assert_eq!(kinds(&eight, "attn_output.weight"), ["Q5_K"; 2]);
    assert_eq!(kinds(&eight, "ffn_down_exps.weight"), ["Q4_K", "Q6_K"]);
}
