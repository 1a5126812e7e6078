//! The parser against files the writer made, whole, in pieces and broken.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_gguf::{
    Array, GgufError, GgufWriter, Header, HeaderParser, Metadata, Progress, TensorType, Value, join, parse,
};
use proptest::prelude::*;

/// Parses a file that arrives in pieces of these sizes, over and over.
fn parse_in_pieces(file: &[u8], sizes: &[usize]) -> Result<Header, GgufError> {
    let mut parser = HeaderParser::with_length(file.len() as u64);
    let mut rest = file;
    for size in sizes.iter().cycle() {
        let (piece, after) = rest.split_at((*size).min(rest.len()));
        rest = after;
        match parser.push(piece)? {
            Progress::Done(header) => return Ok(*header),
            Progress::NeedMore { at_least } => {
                assert!(at_least > 0);
                assert!(!rest.is_empty(), "a whole file is enough, {at_least} more were asked for");
            }
        }
    }
    unreachable!("sizes are never empty")
}

fn value() -> impl Strategy<Value = Value> {
    let text = || ".{0,12}".prop_map(String::from);
    // Floats from integers: equal to themselves, which "not a number" is not.
    let leaf = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..20).prop_map(Array::U8),
        prop::collection::vec(any::<i8>(), 0..20).prop_map(Array::I8),
        prop::collection::vec(any::<u16>(), 0..20).prop_map(Array::U16),
        prop::collection::vec(any::<i16>(), 0..20).prop_map(Array::I16),
        prop::collection::vec(any::<u32>(), 0..20).prop_map(Array::U32),
        prop::collection::vec(any::<i32>(), 0..20).prop_map(Array::I32),
        prop::collection::vec(any::<i16>().prop_map(f32::from), 0..20).prop_map(Array::F32),
        prop::collection::vec(any::<bool>(), 0..20).prop_map(Array::Bool),
        prop::collection::vec(text(), 0..20).prop_map(Array::String),
        prop::collection::vec(any::<u64>(), 0..20).prop_map(Array::U64),
        prop::collection::vec(any::<i64>(), 0..20).prop_map(Array::I64),
        prop::collection::vec(any::<i32>().prop_map(f64::from), 0..20).prop_map(Array::F64),
    ];
    let array = leaf.prop_recursive(3, 16, 3, |inner| prop::collection::vec(inner, 0..4).prop_map(Array::Array));
    prop_oneof![
        any::<u8>().prop_map(Value::U8),
        any::<i8>().prop_map(Value::I8),
        any::<u16>().prop_map(Value::U16),
        any::<i16>().prop_map(Value::I16),
        any::<u32>().prop_map(Value::U32),
        any::<i32>().prop_map(Value::I32),
        any::<i16>().prop_map(|v| Value::F32(v.into())),
        any::<bool>().prop_map(Value::Bool),
        text().prop_map(Value::String),
        array.prop_map(Value::Array),
        any::<u64>().prop_map(Value::U64),
        any::<i64>().prop_map(Value::I64),
        any::<i32>().prop_map(|v| Value::F64(v.into())),
    ]
}

/// Any writable file: metadata, tensors of any type and an alignment.
fn writer() -> impl Strategy<Value = GgufWriter> {
    let pairs = prop::collection::btree_map("[a-z.]{0,10}", value(), 0..8);
    let tensor = (0..TensorType::ALL.len(), 1..3u64, prop::collection::vec(1..4u64, 0..4));
    (pairs, prop::collection::vec(tensor, 0..6), 0..8u32).prop_map(|(pairs, tensors, shift)| {
        let mut writer = GgufWriter::with_alignment(1 << shift).unwrap();
        for (key, value) in pairs {
            writer.set(key, value);
        }
        for (i, (kind, blocks, outer)) in tensors.into_iter().enumerate() {
            let kind = TensorType::ALL[kind];
            let mut dims = vec![blocks * kind.block_elements()];
            dims.extend(outer);
            writer.tensor(format!("tensor {i}"), kind, &dims[..dims.len().min(4)]).unwrap();
        }
        writer
    })
}

fn file_of(writer: &GgufWriter) -> Vec<u8> {
    writer.to_bytes(|tensor| vec![0x5a; tensor.bytes as usize]).unwrap()
}

proptest! {
    #[test]
    fn what_was_written_is_read_back(writer in writer()) {
        prop_assert_eq!(parse(&file_of(&writer)).unwrap(), writer.layout().unwrap());
    }

    #[test]
    fn pieces_of_any_size_give_the_same_header(writer in writer(), sizes in prop::collection::vec(1..60usize, 1..9)) {
        prop_assert_eq!(parse_in_pieces(&file_of(&writer), &sizes).unwrap(), writer.layout().unwrap());
    }

    #[test]
    fn a_truncated_file_is_an_error_wherever_it_ends(writer in writer(), cut in any::<prop::sample::Index>()) {
        let file = file_of(&writer);
        let header = writer.layout().unwrap();
        prop_assume!(header.required_length() > 0);
        let length = cut.index(header.required_length() as usize);
        let result = HeaderParser::with_length(length as u64).push(&file[..length]);
        // A count that the rest of the file cannot hold is noticed before the end is.
        let named = matches!(result, Err(GgufError::Truncated { .. } | GgufError::TooLarge { .. } | GgufError::Empty));
        prop_assert!(named, "{length} of {} bytes: {result:?}", file.len());
    }

    #[test]
    fn corrupt_bytes_never_panic_and_pieces_agree_on_them(
        writer in writer(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        size in 1..40usize,
    ) {
        let mut file = file_of(&writer);
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        let whole = HeaderParser::with_length(file.len() as u64).push(&file);
        match (whole, parse_in_pieces(&file, &[size])) {
            (Ok(Progress::Done(whole)), Ok(pieces)) => prop_assert_eq!(format!("{whole:?}"), format!("{pieces:?}")),
            (Err(whole), Err(pieces)) => prop_assert_eq!(whole, pieces),
            (whole, pieces) => prop_assert!(false, "whole {:?}, in pieces {:?}", whole, pieces),
        }
    }

    #[test]
    fn random_bytes_after_the_magic_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut file = b"GGUF\x03\0\0\0\x02\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0".to_vec();
        file.extend(bytes);
        let _ = parse(&file);
    }
}

/// A header by hand: the preamble with these counts, then raw bytes.
fn raw(tensors: u64, pairs: u64, rest: &[&[u8]]) -> Vec<u8> {
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    file.extend(tensors.to_le_bytes());
    file.extend(pairs.to_le_bytes());
    rest.iter().for_each(|part| file.extend(*part));
    file
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

fn entry(name: &str, dims: &[u64], kind: u32, offset: u64) -> Vec<u8> {
    let mut out = text(name);
    out.extend((dims.len() as u32).to_le_bytes());
    dims.iter().for_each(|dim| out.extend(dim.to_le_bytes()));
    out.extend(kind.to_le_bytes());
    out.extend(offset.to_le_bytes());
    out
}

/// The error of a file and the words its message must have.
fn refused(file: &[u8], words: &[&str]) -> GgufError {
    let error = HeaderParser::with_length(file.len() as u64).push(file).unwrap_err();
    for word in words {
        assert!(error.to_string().contains(word), "\"{error}\" should name {word}");
    }
    error
}

#[test]
fn other_files_and_versions_are_refused() {
    assert!(matches!(refused(b"PK\x03\x04 a zip", &["not a GGUF file"]), GgufError::NotGguf { .. }));
    assert!(matches!(refused(b"GGML....", &["a text"]), GgufError::NotGguf { .. }));
    assert!(matches!(refused(b"GGML\0\xff\0\0", &["\"GGML\""]), GgufError::NotGguf { .. }));
    assert!(matches!(refused(b"GGUF\0\0\0\x03", &["big-endian"]), GgufError::BigEndian));
    assert_eq!(refused(b"GGUF\x01\0\0\0", &["version 1"]), GgufError::UnsupportedVersion { version: 1 });
    assert_eq!(refused(b"GGUF\x04\0\0\0", &["version 4"]), GgufError::UnsupportedVersion { version: 4 });
    assert!(matches!(refused(b"", &["empty"]), GgufError::Empty));
    assert!(matches!(refused(b"GG", &["truncated", "download"]), GgufError::Truncated { .. }));
}

#[test]
fn version_2_is_read_like_version_3() {
    let mut file = raw(0, 1, &[&text("a"), &[4, 0, 0, 0], &[7, 0, 0, 0]]);
    file[4] = 2;
    let header = parse(&file).unwrap();
    assert_eq!((header.version, header.metadata.u32("a")), (2, Ok(7)));
}

#[test]
fn claims_larger_than_the_file_allocate_nothing() {
    let huge = u64::MAX.to_le_bytes();
    refused(&raw(u64::MAX, 0, &[]), &["number of tensors"]);
    refused(&raw(0, 1 << 60, &[]), &["number of metadata pairs"]);
    refused(&raw(0, 1, &[&huge, &[0; 32]]), &["metadata key"]);
    // A string and an array of more than what is left of the file, and of more than 64 MiB when its length is unknown.
    refused(&raw(0, 1, &[&text("k"), &[8, 0, 0, 0], &huge, &[0; 32]]), &["\"k\""]);
    refused(&raw(0, 1, &[&text("k"), &[9, 0, 0, 0], &[4, 0, 0, 0], &huge, &[0; 32]]), &["\"k\""]);
    for kind in [0u8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] {
        let count = ((64u64 << 20) + 1).to_le_bytes();
        let file = raw(0, 1, &[&text("k"), &[9, 0, 0, 0], &[kind, 0, 0, 0], &count]);
        assert!(matches!(HeaderParser::new().push(&file), Err(GgufError::TooLarge { .. })), "type {kind}");
    }
}

#[test]
fn deep_nesting_is_refused() {
    let level = [&[9, 0, 0, 0][..], &1u64.to_le_bytes()].concat();
    let file = raw(0, 1, &[&text("deep"), &[9, 0, 0, 0], &level.repeat(20), &[0; 64]]);
    refused(&file, &["nesting", "deep"]);
}

#[test]
fn broken_metadata_is_refused_with_its_key() {
    refused(&raw(0, 1, &[&text("odd"), &[13, 0, 0, 0], &[0; 16]]), &["odd", "13"]);
    refused(&raw(0, 1, &[&text("odd"), &[9, 0, 0, 0], &[99, 0, 0, 0], &[0; 16]]), &["odd", "99"]);
    let pair = [&text("twice")[..], &[0, 0, 0, 0, 1]].concat();
    refused(&raw(0, 2, &[&pair, &pair]), &["twice"]);
    let broken = [&2u64.to_le_bytes()[..], &[0xff, 0xfe, 0, 0, 0, 0, 1], &[0; 16]].concat();
    assert!(matches!(refused(&raw(0, 1, &[&broken]), &["UTF-8"]), GgufError::NotText { .. }));
}

#[test]
fn broken_utf_8_in_a_value_is_replaced() {
    let file = raw(0, 1, &[&text("k"), &[8, 0, 0, 0], &2u64.to_le_bytes(), &[b'a', 0xff]]);
    assert_eq!(parse(&file).unwrap().metadata.str("k"), Ok("a\u{fffd}"));
}

#[test]
fn bad_alignments_are_refused() {
    for alignment in [0u32, 3, 48, 1 << 21, u32::MAX] {
        let pair = [&text("general.alignment")[..], &[4, 0, 0, 0], &alignment.to_le_bytes()].concat();
        let error = refused(&raw(0, 1, &[&pair]), &["general.alignment"]);
        assert_eq!(error, GgufError::BadAlignment { alignment: alignment.into() });
    }
    assert!(GgufWriter::with_alignment(24).is_err());
}

#[test]
fn impossible_tensors_are_refused_by_name() {
    let one = |dims: &[u64], kind: u32, offset: u64| raw(1, 0, &[&entry("w", dims, kind, offset), &[0; 64]]);
    refused(&one(&[], 0, 0), &["\"w\"", "no dimensions"]);
    refused(&one(&[1, 1, 1, 1, 1], 0, 0), &["\"w\"", "dimensions"]);
    refused(&one(&[0], 0, 0), &["\"w\"", "zero"]);
    refused(&one(&[32, 0], 2, 0), &["\"w\"", "zero", "Q4_0"]);
    refused(&one(&[33], 2, 0), &["\"w\"", "whole number of blocks", "Q4_0"]);
    refused(&one(&[1 << 40, 1 << 40], 0, 0), &["\"w\"", "larger than any file"]);
    refused(&one(&[1 << 63], 0, 0), &["\"w\"", "larger than any file"]);
    refused(&one(&[4], 4, 0), &["\"w\"", "Q4_2", "MXFP4", "(number 4)"]);
    refused(&one(&[4], 0, 7), &["\"w\"", "alignment 32"]);
    refused(&one(&[4], 0, u64::MAX - 31), &["\"w\"", "beyond any file"]);
    // The data starts at byte 64 of a file of 121.
    let outside = refused(&one(&[1024], 0, 0), &["\"w\"", "F32", "truncated"]);
    assert!(matches!(outside, GgufError::Truncated { needed: 4160, length: 121, .. }), "{outside}");
    let [a, b] = ["a", "b"].map(|name| entry(name, &[9], 0, 0));
    refused(&raw(2, 0, &[&a, &a, &[0; 200]]), &["\"a\"", "twice"]);
    // Overlapping, out of order, with a gap before the first and with one between two.
    refused(&raw(2, 0, &[&a, &b, &[0; 200]]), &["\"b\" lies at byte 0", "\"a\" (F32) before it ends at 64"]);
    let b = entry("b", &[9], 0, 64);
    refused(&raw(2, 0, &[&b, &a, &[0; 200]]), &["\"b\" lies at byte 64", "the header ends at 0"]);
    let c = entry("c", &[9], 0, 96);
    refused(&raw(2, 0, &[&a, &c, &[0; 300]]), &["\"c\" lies at byte 96", "\"a\" (F32) before it ends at 64"]);
    assert!(parse(&raw(2, 0, &[&a, &b, &[0; 200]])).is_ok());
}

/// Another program may know a number as a type of another size: bitnet.cpp's TL2 is 39, our MXFP4.
#[test]
fn a_mislabelled_type_leaves_a_gap() {
    // 256 values of Q4_K are 144 bytes, of Q3_K 110.
    let file = |kind: u32| raw(2, 0, &[&entry("a", &[256], kind, 0), &entry("b", &[8], 0, 160), &[0; 300]]);
    assert!(parse(&file(TensorType::Q4_K.id())).is_ok());
    let error = refused(&file(TensorType::Q3_K.id()), &["\"b\" lies at byte 160", "\"a\" (Q3_K)", "ends at 128"]);
    assert!(matches!(error, GgufError::Misplaced { expected: 128, .. }), "{error:?}");
}

#[test]
fn types_of_other_programs_are_named() {
    let one = |kind: u32| raw(1, 0, &[&entry("w", &[256], kind, 0), &[0; 512]]);
    refused(&one(36), &["I2_S (number 36)", "bitnet.cpp", "choose another quantization"]);
    refused(&one(142), &["PQ2_0 (number 142)", "PrismML"]);
    refused(&one(156), &["IQ3_KS (number 156)", "ik_llama.cpp"]);
    refused(&one(31), &["Q4_0_4_4 (number 31)", "old versions of llama.cpp"]);
    refused(&one(77), &["number 77, which is unknown here", "choose another quantization"]);
}

/// What people really open instead of a model. Each sentence says what it is and what to do.
#[test]
fn other_files_are_named_by_how_they_begin() {
    let tar = [&[b'a'; 257][..], b"ustar\0"].concat();
    let files: &[(&[u8], &[&str])] = &[
        (b"", &["empty", "download it again"]),
        (b"<!DOCTYPE html><html>", &["web page", "link of the download"]),
        (b"\n\n  <html lang=\"en\">", &["web page"]),
        (b"<?xml version=\"1.0\"?><Error><Code>AccessDenied", &["web page"]),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4\n", &["Git", "git lfs pull"]),
        (b"lmgg\x01\0\0\0", &["before GGUF", "whisper.cpp", "newer file"]),
        (b"tjgg\x03\0\0\0", &["before GGUF"]),
        (b"algg\x01\0\0\0", &["adapter (LoRA)", "whole model"]),
        (b"\x40\x01\0\0\0\0\0\0{\"model.embed\":{", &["safetensors", "GGUF file of this model"]),
        (b"PK\x03\x04\0\0\x08\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\x12\0archive/data.pkl", &["PyTorch"]),
        (b"\x80\x02}q\0(X", &["PyTorch"]),
        (b"PK\x03\x04\x14\0model.gguf", &[".zip", "unpack it"]),
        (b"\x1f\x8b\x08\0", &[".gz", "unpack it"]),
        (b"\x28\xb5\x2f\xfd\0", &[".zst", "unpack it"]),
        (b"7z\xbc\xaf\x27\x1c", &[".7z", "unpack it"]),
        (b"\xfd7zXZ\0", &[".xz"]),
        (&tar, &[".tar", "unpack it"]),
        (b"\x08\x07\x12\x07pytorch", &["ONNX"]),
        (b"\x1c\0\0\0TFL3", &["TensorFlow Lite"]),
        (b"\x89HDF\r\n", &["HDF5"]),
        (b"{\"schemaVersion\":2}", &["JSON"]),
        (b"MZqFpD='\n", &["llamafile"]),
        (b"%PDF-1.7", &["PDF"]),
        (&[0; 4096], &["zeros", "download it again"]),
        ("Запись не найдена".as_bytes(), &["a text", "\".gguf\""]),
        (b"\x07\xf3\x99\x12\x80", &["it starts with the bytes [07, f3, 99, 12]", "\".gguf\""]),
    ];
    for (file, words) in files {
        let error = refused(file, words).to_string();
        assert!(error.ends_with('.') && !error.contains(".."), "a whole sentence: {error}");
        let pieces = parse_in_pieces(&[file, &[0; 0][..]].concat(), &[3]);
        if !file.is_empty() {
            assert_eq!(pieces.unwrap_err().to_string(), error);
        }
    }
}

#[test]
fn nothing_is_taken_after_the_end() {
    let mut parser = HeaderParser::new();
    assert!(matches!(parser.push(&raw(0, 0, &[b"data"])), Ok(Progress::Done(_))));
    assert_eq!(parser.push(b"more"), Err(GgufError::AlreadyDone));
}

#[test]
fn getters_name_the_key_and_what_was_found() {
    let mut metadata = Metadata::new();
    metadata.insert("count", Value::I32(-3));
    metadata.insert("wide", Value::U64(1 << 40));
    metadata.insert("heads", Value::Array(Array::I32(vec![4, 8, 4])));
    metadata.insert("base", Value::F64(1e6));
    metadata.insert("ids", Value::Array(Array::U16(vec![1, 2])));
    let message = |error: GgufError| error.to_string();
    assert_eq!(metadata.u32("none"), Err(GgufError::MissingKey { key: "none".into() }));
    assert!(message(metadata.u32("count").unwrap_err()).contains("\"count\""));
    assert!(message(metadata.u32("count").unwrap_err()).contains("-3"));
    assert!(message(metadata.u32("wide").unwrap_err()).contains("1099511627776"));
    assert_eq!(metadata.u64("wide"), Ok(1 << 40));
    assert_eq!(metadata.f32("base"), Ok(1e6));
    assert_eq!(metadata.u32s("ids"), Ok(vec![1, 2]));
    assert!(message(metadata.str("heads").unwrap_err()).contains("an array of 3 int32"));
    assert!(metadata.bool("count").is_err() && metadata.strings("ids").is_err() && metadata.f32s("base").is_err());
    assert_eq!(metadata.u32_per_block("heads", 2), Ok(vec![4, 8]));
    assert!(metadata.u32_per_block("heads", 4).is_err());
    metadata.insert("kv", Value::U32(2));
    assert_eq!(metadata.u32_per_block("kv", 3), Ok(vec![2; 3]));
    assert_eq!(metadata.optional("none", Metadata::u32), Ok(None));
    assert_eq!(metadata.optional("kv", Metadata::u32), Ok(Some(2)));
    assert!(metadata.optional("count", Metadata::u32).is_err());
}

/// Converters do not agree on the type of a number.
#[test]
fn numbers_are_read_from_any_type_that_holds_them() {
    let of = |value: Value| -> Metadata { [("k".to_string(), value)].into_iter().collect() };
    for eight in [
        Value::U8(8),
        Value::I8(8),
        Value::U16(8),
        Value::I16(8),
        Value::U32(8),
        Value::I32(8),
        Value::U64(8),
        Value::I64(8),
        Value::F32(8.0),
        Value::F64(8.0),
        Value::Array(Array::I32(vec![8, 8, 8])),
    ] {
        let metadata = of(eight);
        assert_eq!(metadata.u32("k"), Ok(8), "{metadata:?}");
        assert_eq!(metadata.u32_per_block("k", 3), Ok(vec![8; 3]), "{metadata:?}");
    }
    for half in [Value::F32(0.5), Value::F64(0.5), Value::Array(Array::F32(vec![0.5; 2]))] {
        assert_eq!(of(half.clone()).f32("k"), Ok(0.5));
        assert!(of(half).u32("k").is_err());
    }
    assert_eq!(of(Value::U32(10_000)).f32("k"), Ok(10_000.0));
    for yes in [Value::Bool(true), Value::U8(1), Value::I32(1), Value::U64(1)] {
        assert_eq!(of(yes).bool("k"), Ok(true));
    }
    assert!(of(Value::U32(2)).bool("k").is_err() && of(Value::from("true")).bool("k").is_err());
    assert!(of(Value::Array(Array::U32(vec![8, 4]))).u32("k").is_err(), "not the same for all");
    assert!(of(Value::Array(Array::U32(Vec::new()))).u32("k").is_err());
    assert_eq!(of(Value::Array(Array::F64(vec![1.0, 2.0]))).f32s("k").unwrap().to_vec(), [1.0, 2.0]);
    assert_eq!(of(Value::Array(Array::I32(vec![-1, 2]))).f32s("k").unwrap().to_vec(), [-1.0, 2.0]);
}

#[test]
fn a_wrong_length_from_the_source_of_data_is_an_error() {
    let mut writer = GgufWriter::new();
    writer.tensor("w", TensorType::F32, &[4]).unwrap();
    for bytes in [0, 15, 17] {
        let error = writer.to_bytes(|_| vec![0; bytes]).unwrap_err();
        assert!(error.to_string().contains("\"w\""), "{error}");
    }
}

#[test]
fn a_model_without_files_is_an_error() {
    assert!(matches!(join([]), Err(GgufError::BadSplit { .. })));
}
