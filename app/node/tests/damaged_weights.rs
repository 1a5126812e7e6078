//! A file with numbers that are not finite is refused with the tensor's name, however its bytes come to the GPU.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::*;
use potluck_gguf::synthetic::{Architecture, Synthetic};
use potluck_gguf::{TensorType, parse};
use potluck_node::native::open_model_files;
use potluck_node::node::Input;
use potluck_panel::{ModelSource, NoticeLevel, ToNode, ToPage};
use potluck_terminal::Session;

const TEXT: &str = "It was a dark night";
const BUDGET: u64 = 4_000_000_000;

/// Half-precision floats.
const NAN: u16 = 0x7e00;
const INFINITY: u16 = 0x7c00;
const NEG_INFINITY: u16 = 0xfc00;
const SMALLEST: u16 = 1;

fn model(kind: TensorType) -> Synthetic {
    Synthetic { architecture: Architecture::Llama, blocks: 2, seed: 5, ..Synthetic::default() }.with_type(kind)
}

/// A model whose tensor has these bytes somewhere: `at` is given the tensor's length.
fn with(kind: TensorType, tensor: &str, at: impl Fn(usize) -> usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = model(kind).to_bytes().unwrap();
    let header = parse(&file).unwrap();
    let info = header.tensors.iter().find(|info| info.name == tensor).unwrap();
    let at = info.offset as usize + at(info.bytes as usize);
    file[at..at + bytes.len()].copy_from_slice(bytes);
    file
}

/// The first notice about a failure.
async fn complaint(session: &mut Session) -> String {
    loop {
        match session.next().await.unwrap() {
            ToPage::Notice(notice) if notice.level == NoticeLevel::Error => return notice.sentence,
            _ => {}
        }
    }
}

async fn refused(bytes: &[u8]) -> String {
    let path = folder("damaged").join("model.gguf");
    std::fs::write(&path, bytes).unwrap();
    let mut session = open_alone(open_model_files(&path).unwrap(), BUDGET);
    complaint(&mut session).await
}

/// Broken files, and the tensor at fault.
fn broken() -> Vec<(&'static str, Vec<u8>)> {
    let block = TensorType::Q4_0.block_bytes() as usize;
    let last_block = |len: usize| len - block;
    vec![
        ("blk.1.ffn_down.weight", with(TensorType::Q4_0, "blk.1.ffn_down.weight", last_block, &NAN.to_le_bytes())),
        ("token_embd.weight", with(TensorType::Q4_0, "token_embd.weight", |_| 0, &INFINITY.to_le_bytes())),
        ("token_embd.weight", with(TensorType::F16, "token_embd.weight", |len| len / 2, &NEG_INFINITY.to_le_bytes())),
        (
            "blk.0.attn_norm.weight",
            with(TensorType::Q4_0, "blk.0.attn_norm.weight", |len| len - 4, &f32::NAN.to_le_bytes()),
        ),
    ]
}

#[test]
fn a_file_with_a_number_that_is_not_finite_is_refused_with_the_tensors_name() {
    test(async {
        for (tensor, file) in broken() {
            let sentence = refused(&file).await;
            assert!(sentence.contains(tensor) && sentence.contains("not finite"), "{tensor}: {sentence}");
        }
    });
}

#[test]
fn the_smallest_numbers_are_no_damage() {
    test(async {
        let small = SMALLEST.to_le_bytes();
        let file = with(TensorType::Q4_0, "blk.1.ffn_down.weight", |_| 0, &small);
        let path = folder("subnormal").join("model.gguf");
        std::fs::write(&path, &file).unwrap();
        assert!(!alone(&path, TEXT, 4).await.is_empty());
    });
}

#[test]
fn a_download_with_such_a_number_is_refused_now_and_at_the_next_visit() {
    test(async {
        let (tensor, file) = broken().remove(0);
        let models = folder("models");
        std::fs::write(models.join("model.gguf"), &file).unwrap();
        let relay = relay(&models, 0).await;
        let cache = folder("cache");
        for _ in 0..2 {
            let mut session = peer("host", &relay.origin, cache.clone());
            let source = ModelSource::Relay { name: "model".to_owned() };
            session.send(Input::Page(ToNode::Host(choice(source, BUDGET)), Vec::new()));
            let sentence = complaint(&mut session).await;
            assert!(sentence.contains(tensor) && sentence.contains("not finite"), "{sentence}");
        }
        relay.stop().await;
    });
}
