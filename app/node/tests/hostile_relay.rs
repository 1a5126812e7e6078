//! A relay that reads, alters, drops, doubles, swaps and replays what it carries learns nothing and changes no answer.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;
#[path = "common/eavesdropper.rs"]
mod eavesdropper;

use std::rc::Rc;

use common::*;
use eavesdropper::{Eavesdropper, Misdeed};
use potluck_gguf::synthetic::{Architecture, Synthetic};
use potluck_panel::{Bytes, ModelSource};
use potluck_terminal::{RoomLink, Session};

const TEXT: &str = "Once upon a time there was a";
const NAMES: [&str; 4] = ["Zanzibar laptop", "Quokka tablet", "Fjord desktop", "Umlaut phone"];

fn layered() -> Synthetic {
    Synthetic { architecture: Architecture::Llama, blocks: 6, seed: 3, ..Synthetic::default() }
}

/// A budget for two of six blocks and a table.
fn two_blocks(model: &Synthetic) -> u64 {
    let (shape, overhead) = sizes(model);
    let block = &shape.blocks[0];
    let with_kv_cache = block.weights().0 + block.kv_cache_per_position.0 * u64::from(CONTEXT);
    overhead.0 + 2 * with_kv_cache + shape.embedding.0.max(shape.lm_head.0) + with_kv_cache / 2
}

/// A room of a host with a model on its disk and three joiners, all behind the eavesdropper.
async fn room(origin: &str, model: &Synthetic, path: &std::path::Path) -> (Session, Vec<Session>, String) {
    let files = potluck_node::native::open_model_files(path).unwrap();
    let source = ModelSource::File { name: files[0].name(), bytes: Bytes(files[0].len()) };
    let budget = two_blocks(model);
    let mut first = peer(NAMES[0], origin, folder("host"));
    let link = host_with(&mut first, origin, source, budget, files).await;
    let joiners: Vec<Session> = NAMES[1..].iter().map(|name| peer(name, origin, folder("joiner"))).collect();
    joiners.iter().for_each(|joiner| join_room(joiner, &link, Some(budget)));
    until(&mut first, "three stages", |status| is_up(status, 3)).await;
    (first, joiners, link)
}

#[test]
fn a_recording_relay_learns_no_key_no_text_no_name_and_no_byte_of_the_hosts_file() {
    test(async {
        let (disk, model) = (folder("disk"), layered());
        let path = write(&model, &disk, "mine");
        let expected = alone(&path, TEXT, 64).await;
        let relay = relay(&folder("models"), 0).await;
        let eavesdropper = Rc::new(Eavesdropper::default());
        let origin = eavesdropper.clone().listen(&relay.origin).await;
        let (mut first, joiners, link) = room(&origin, &model, &path).await;
        // A device is lost in the middle, so the record holds a recovery, too.
        let own = first.status.peer;
        let stages: Vec<_> = first.status.plan.iter().flat_map(|plan| plan.stages.iter()).collect();
        let lost = stages.iter().find(|stage| Some(stage.peer) != own).unwrap().peer;
        let name = first.status.peers.iter().find(|member| member.peer == lost).unwrap().name.clone();
        let victim = &joiners[NAMES[1..].iter().position(|known| **known == name).unwrap()];
        let mut killed = false;
        let tokens = answer(&mut first, question(1, TEXT, 64), |count| {
            if count >= 4 && !std::mem::replace(&mut killed, true) {
                victim.kill();
            }
        })
        .await;
        assert!(killed);
        assert_eq!(tokens, expected);

        assert!(eavesdropper.seen.borrow().len() > 1_000, "the record holds the room");
        let secret = link.parse::<RoomLink>().unwrap().key.unwrap();
        let raw = potluck_relay_api::Binary::<16>::decode(&secret).unwrap();
        assert!(!eavesdropper.saw(secret.as_bytes()) && !eavesdropper.saw(&raw.0), "the room's secret");
        for word in ["Once upon", "upon a time", "mine.gguf", "llama"].into_iter().chain(NAMES) {
            assert!(!eavesdropper.saw(word.as_bytes()), "{word:?} went over the wire");
        }
        let owned = first.room_keys.as_ref().unwrap().owner.0;
        assert!(!eavesdropper.saw(&owned), "the owner's key");
        // Eight tokens in a row, as fixed-size numbers and as the frames' varints.
        let varints = |tokens: &[u32]| tokens.iter().flat_map(|token| potluck_varint(*token)).collect::<Vec<u8>>();
        for tokens in tokens.windows(8).filter(|tokens| tokens.iter().any(|token| *token != tokens[0])) {
            let fixed: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
            assert!(!eavesdropper.saw(&fixed) && !eavesdropper.saw(&varints(tokens)), "token ids {tokens:?}");
        }
        let file = std::fs::read(&path).unwrap();
        for start in (0..file.len() - 32).step_by(file.len() / 40) {
            let bytes = &file[start..start + 32];
            let says_something = bytes.iter().any(|byte| *byte != bytes[0]);
            assert!(!says_something || !eavesdropper.saw(bytes), "bytes {start} of the host's file");
        }
        drop((first, joiners));
        relay.stop().await;
    });
}

/// A number as frames write it.
fn potluck_varint(mut value: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

#[test]
fn a_relay_that_tampers_changes_no_answer() {
    test(async {
        let (disk, model) = (folder("disk"), layered());
        let path = write(&model, &disk, "mine");
        let expected = alone(&path, TEXT, 48).await;
        let relay = relay(&folder("models"), 0).await;
        let eavesdropper = Rc::new(Eavesdropper::default());
        let origin = eavesdropper.clone().listen(&relay.origin).await;
        let (mut first, joiners, _) = room(&origin, &model, &path).await;
        let misdeeds = [Misdeed::Flip, Misdeed::Drop, Misdeed::Double, Misdeed::Swap, Misdeed::Replay];
        *eavesdropper.misdeed.borrow_mut() =
            Some(Box::new(move |count| (count % 97 == 0).then(|| misdeeds[(count / 97 % 5) as usize])));
        let mut request = 0;
        // Until every kind has happened during an answer.
        while misdeeds.iter().any(|misdeed| !eavesdropper.done.borrow().contains(misdeed)) {
            request += 1;
            assert_eq!(answer(&mut first, question(request, TEXT, 48), |_| {}).await, expected, "answer {request}");
        }
        *eavesdropper.misdeed.borrow_mut() = None;
        until(&mut first, "three stages once the relay is honest", |status| is_up(status, 3)).await;
        assert_eq!(answer(&mut first, question(request + 1, TEXT, 48), |_| {}).await, expected);
        drop((first, joiners));
        relay.stop().await;
    });
}
