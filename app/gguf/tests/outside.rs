//! Files by and for other software: one that PyPI `gguf` wrote, and the models that llama.cpp answered for.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_gguf::synthetic::Synthetic;
use potluck_gguf::{Array, TensorType, Value, dequantize, parse};
use potluck_testkit::gunzip;

#[test]
fn a_file_by_the_python_package_is_read() {
    let file = std::fs::read(format!("{}/tests/data/gguf-py.gguf", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let header = parse(&file).unwrap();
    header.check_length(file.len() as u64).unwrap();
    assert_eq!((header.version, header.alignment), (3, 64));
    let metadata = &header.metadata;
    assert_eq!(metadata.str("general.architecture"), Ok("llama"));
    let one = |name: &str| metadata.get(&format!("one.{name}")).cloned().unwrap();
    let many = |name: &str| metadata.get(&format!("many.{name}")).cloned().unwrap();
    assert_eq!((one("uint8"), many("uint8")), (Value::U8(200), Value::Array(Array::U8(vec![200; 3]))));
    assert_eq!((one("int8"), many("int8")), (Value::I8(-100), Value::Array(Array::I8(vec![-100; 3]))));
    assert_eq!((one("uint16"), many("uint16")), (Value::U16(60000), Value::Array(Array::U16(vec![60000; 3]))));
    assert_eq!((one("int16"), many("int16")), (Value::I16(-30000), Value::Array(Array::I16(vec![-30000; 3]))));
    let (u32, i32) = (4_000_000_000, -2_000_000_000);
    assert_eq!((one("uint32"), many("uint32")), (Value::U32(u32), Value::Array(Array::U32(vec![u32; 3]))));
    assert_eq!((one("int32"), many("int32")), (Value::I32(i32), Value::Array(Array::I32(vec![i32; 3]))));
    assert_eq!((one("float32"), many("float32")), (Value::F32(0.5), Value::Array(Array::F32(vec![0.5; 3]))));
    assert_eq!((one("float64"), many("float64")), (Value::F64(0.1), Value::Array(Array::F64(vec![0.1; 3]))));
    let (u64, i64) = (1 << 63, -(1 << 62));
    assert_eq!((one("uint64"), many("uint64")), (Value::U64(u64), Value::Array(Array::U64(vec![u64; 3]))));
    assert_eq!((one("int64"), many("int64")), (Value::I64(i64), Value::Array(Array::I64(vec![i64; 3]))));
    assert_eq!((one("bool"), many("bool")), (Value::Bool(true), Value::Array(Array::Bool(vec![true; 3]))));
    let text = || "grüße".to_string();
    assert_eq!((one("string"), many("string")), (Value::String(text()), Value::from(vec![text(), text(), text()])));

    let shapes: Vec<_> = header.tensors.iter().map(|t| (t.name.as_str(), t.kind, t.dims.as_slice())).collect();
    assert_eq!(
        shapes,
        [
            ("first", TensorType::F32, &[3, 2][..]),
            ("second", TensorType::F16, &[5][..]),
            ("third", TensorType::Q8_0, &[32, 2][..])
        ]
    );
    for tensor in &header.tensors {
        let mut values = vec![0.0; tensor.elements() as usize];
        dequantize(tensor.kind, &file[tensor.offset as usize..tensor.end() as usize], &mut values).unwrap();
        for (i, value) in values.iter().enumerate() {
            assert!((value - i as f32).abs() < 0.25, "{} has {value} at {i}", tensor.name);
        }
    }
}

/// CRC-32 as zlib computes it.
fn crc32(bytes: &[u8]) -> u32 {
    let table: Vec<u32> = (0..256)
        .map(|i| (0..8).fold(i, |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 }))
        .collect();
    !bytes.iter().fold(!0, |crc, &byte| crc >> 8 ^ table[usize::from(crc as u8 ^ byte)])
}

#[test]
fn the_models_of_the_golden_answers_are_made_here_byte_for_byte() {
    let folder = format!("{}/../../e2e/golden/data", env!("CARGO_MANIFEST_DIR"));
    let mut models = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = gunzip(&std::fs::read(entry.unwrap().path()).unwrap());
        let golden: serde_json::Value = serde_json::from_str(&text).unwrap();
        let model: Synthetic = serde_json::from_value(golden["model"].clone()).unwrap();
        let file = model.to_bytes().unwrap();
        assert_eq!(golden["file"]["bytes"], file.len(), "{}", golden["name"]);
        assert_eq!(golden["file"]["crc32"], crc32(&file), "{}", golden["name"]);
        models += 1;
    }
    assert_eq!(models, 11);
}
