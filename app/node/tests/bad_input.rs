//! Every failure gives one sentence that says what to do, and nothing hangs.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;
#[path = "common/eavesdropper.rs"]
mod eavesdropper;

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use common::*;
use eavesdropper::Eavesdropper;
use futures::future::LocalBoxFuture;
use potluck_gguf::synthetic::{Architecture, Synthetic};
use potluck_gguf::{GgufWriter, TensorType, Value};
use potluck_node::native::open_model_files;
use potluck_node::platform::LocalFile;
use potluck_panel::{
    Connection, Hedging, HostChoice, Leaving, ModelSource, NoticeLevel, Pooling, Sharing, ToNode, ToPage,
};
use potluck_terminal::Session;

fn small() -> Synthetic {
    Synthetic { architecture: Architecture::Llama, blocks: 2, seed: 5, ..Synthetic::default() }
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

async fn refused(name: &str, bytes: &[u8]) -> String {
    let path = folder("bad").join(name);
    std::fs::write(&path, bytes).unwrap();
    let mut session = open_alone(open_model_files(&path).unwrap(), 4_000_000_000);
    complaint(&mut session).await
}

#[test]
fn a_broken_file_is_refused_with_the_reason() {
    test(async {
        let whole = small().to_bytes().unwrap();
        let header = small().header().unwrap();
        let truncated = refused("half.gguf", &whole[..whole.len() / 2]).await;
        assert!(truncated.contains("truncated") && truncated.contains("weight"), "{truncated}");
        let short = refused("short.gguf", &whole[..1000]).await;
        assert!(short.contains("truncated"), "{short}");
        let foreign = refused("picture.gguf", b"\x89PNG, certainly no model at all").await;
        assert!(foreign.contains("not a GGUF file"), "{foreign}");

        // The type stands behind the name, the number of dimensions and two dimensions.
        let name = b"blk.1.ffn_down.weight";
        let at = whole.windows(name.len()).position(|window| window == name).unwrap() + name.len() + 4 + 16;
        assert!((at as u64) < header.data_offset);
        let mut unknown = whole.clone();
        unknown[at..at + 4].copy_from_slice(&9_999u32.to_le_bytes());
        let unknown = refused("unknown.gguf", &unknown).await;
        assert!(unknown.contains("blk.1.ffn_down.weight") && unknown.contains("9999"), "{unknown}");
        let mut unsupported = whole;
        // Q8_1, a type of activations, has no kernel; its tensor is shorter, so it stays inside the file.
        unsupported[at..at + 4].copy_from_slice(&9u32.to_le_bytes());
        let unsupported = refused("unsupported.gguf", &unsupported).await;
        assert!(unsupported.contains("blk.1.ffn_down.weight"), "{unsupported}");
    });
}

/// What people open instead of a model: each sentence says what it is and what to do.
#[test]
fn a_file_of_another_kind_is_named() {
    test(async {
        let page = refused("page.gguf", b"<!DOCTYPE html><title>Not found</title>").await;
        assert!(page.contains("a web page") && page.contains("link of the download"), "{page}");
        let pointer = refused("pointer.gguf", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n").await;
        assert!(pointer.contains("git lfs pull"), "{pointer}");
        let opened = open_model_files(&folder("bad")).err().unwrap();
        assert!(opened.ends_with("is a folder: choose the .gguf file in it."), "{opened}");
        let empty = refused("empty.gguf", b"").await;
        assert!(empty.contains("empty"), "{empty}");
        let with = |keys: &[(&str, Value)]| {
            let mut writer = GgufWriter::new();
            keys.iter().for_each(|(key, value)| {
                writer.set(*key, value.clone());
            });
            writer.tensor("blk.0.attn_q.weight.lora_a", TensorType::F32, &[8]).unwrap();
            writer.to_bytes(|tensor| vec![0; tensor.bytes as usize]).unwrap()
        };
        let adapter = with(&[("general.architecture", "llama".into()), ("general.type", "adapter".into())]);
        let adapter = refused("adapter.gguf", &adapter).await;
        assert!(adapter.contains("an adapter (LoRA)") && adapter.contains("choose"), "{adapter}");
        let part = with(&[("split.no", Value::U16(1)), ("split.count", Value::U16(3))]);
        let second = refused("part.gguf", &part).await;
        assert!(second.contains("number 2 was given") && second.contains("00001-of-00003"), "{second}");
        let part = with(&[("split.no", Value::U16(0)), ("split.count", Value::U16(3))]);
        let first = refused("first.gguf", &part).await;
        assert!(first.contains("file number 2 is missing") && first.contains("choose all"), "{first}");
        let prism = small().header().unwrap();
        let mut writer = GgufWriter::new();
        prism.metadata.iter().for_each(|(key, value)| {
            writer.set(key, value.clone());
        });
        writer.set("prism.hadamard.block_size", Value::U32(1024));
        for tensor in &prism.tensors {
            writer.tensor(tensor.name.clone(), tensor.kind, &tensor.dims).unwrap();
        }
        let rotated = writer.to_bytes(|tensor| vec![0; tensor.bytes as usize]).unwrap();
        let rotated = refused("rotated.gguf", &rotated).await;
        assert!(rotated.contains("\"prism.hadamard.block_size\""), "{rotated}");
    });
}

#[test]
fn a_model_too_large_for_the_room_says_how_much_is_missing() {
    test(async {
        let model = small();
        let path = write(&model, &folder("large"), "large");
        let (shape, overhead) = sizes(&model);
        let budget = overhead.0 + shape.blocks[0].weights().0;
        let mut session = open_alone(open_model_files(&path).unwrap(), budget);
        until(&mut session, "a shortfall", |status| {
            let waiting = status.plan.as_ref().and_then(|plan| plan.waiting.as_ref());
            waiting.is_some_and(|waiting| waiting.lent > 0)
        })
        .await;
        let waiting = session.status.plan.as_ref().unwrap().waiting.clone().unwrap();
        assert_eq!(waiting.lent, budget);
        assert!(waiting.needed > budget && waiting.sentence.contains("more"), "{waiting:?}");
    });
}

#[test]
fn joining_an_unknown_room_fails_with_a_sentence() {
    test(async {
        let relay = relay(&folder("models"), 0).await;
        let session = peer("lost", &relay.origin, folder("lost"));
        join_room(&session, &format!("{}/r/nosuchroom234567nosuchroom#CQkJCQkJCQkJCQkJCQkJCQ", relay.origin), None);
        let sentence = end_of(session).await;
        assert!(sentence.to_lowercase().contains("room"), "{sentence}");
        relay.stop().await;
    });
}

#[test]
fn a_missing_model_and_a_missing_relay_are_reported() {
    test(async {
        let relay = relay(&folder("models"), 0).await;
        let mut session = peer("host", &relay.origin, folder("host"));
        let choice = HostChoice {
            model: ModelSource::Relay { name: "gone".into() },
            budget: 0,
            context: CONTEXT,
            cache: None,
            arithmetic: Default::default(),
            sharing: Sharing::Fastest,
            ends: Default::default(),
            visible: false,
            resume: None,
            doors: Default::default(),
            protect: false,
            guesser: Default::default(),
            pooling: Default::default(),
            deputy: Default::default(),
            term: Default::default(),
        };
        session.page(ToNode::Host(choice.clone()));
        let sentence = complaint(&mut session).await;
        assert!(sentence.contains("\"gone\""), "{sentence}");
        relay.stop().await;
        let mut nowhere = peer("host", "http://127.0.0.1:9", folder("host"));
        nowhere.page(ToNode::Host(choice));
        let sentence = complaint(&mut nowhere).await;
        assert!(sentence.contains("127.0.0.1:9") && sentence.contains("cannot be reached"), "{sentence}");
    });
}

/// As a page may have kept it, before a reload or of another version.
#[test]
fn a_spreading_of_experts_that_no_room_can_have_gets_a_sentence_and_the_room_opens() {
    test(async {
        let models = folder("models");
        write(&small(), &models, "model");
        let relay = relay(&models, 0).await;
        for (pooling, reason) in [
            (Pooling { replicas: 0, ..Pooling::default() }, "each expert needs at least one device"),
            (Pooling { hedging: Hedging::Copies(9), ..Pooling::default() }, "only 1 to 4"),
        ] {
            let mut session = peer("host", &relay.origin, folder("host"));
            let source = ModelSource::Relay { name: "model".into() };
            session.page(ToNode::Host(HostChoice { pooling, ..choice(source, 1_000_000_000) }));
            let sentence = loop {
                match session.next().await.unwrap() {
                    ToPage::Notice(notice) if notice.sentence.starts_with("A stored choice") => break notice.sentence,
                    _ => {}
                }
            };
            assert!(sentence.contains(reason) && sentence.ends_with("The usual choice is used instead."), "{sentence}");
            until(&mut session, "the room is up", |status| is_up(status, 1)).await;
        }
        relay.stop().await;
    });
}

/// A file of a disk that does not answer for a while.
struct Late {
    file: Rc<dyn LocalFile>,
    answers: Rc<Cell<bool>>,
}

impl LocalFile for Late {
    fn name(&self) -> String {
        self.file.name()
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    fn read(&self, offset: u64, len: u64) -> LocalBoxFuture<'static, Result<Vec<u8>, String>> {
        let (bytes, answers) = (self.file.read(offset, len), self.answers.clone());
        Box::pin(async move {
            while !answers.get() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            bytes.await
        })
    }
}

#[test]
fn a_model_that_opens_after_its_room_was_left_does_not_come_into_the_next_room() {
    test(async {
        let models = folder("models");
        write(&small(), &models, "wanted");
        let relay = relay(&models, 0).await;
        let late = write(&Synthetic { seed: 6, ..small() }, &folder("late"), "late");
        let (file, answers) = (open_model_files(&late).unwrap().remove(0), Rc::new(Cell::new(false)));
        let source = ModelSource::File { name: file.name(), bytes: potluck_plan::Bytes(file.len()) };
        let files: Vec<Rc<dyn LocalFile>> = vec![Rc::new(Late { file, answers: answers.clone() })];
        let mut session = peer("host", &relay.origin, folder("host"));
        host_with(&mut session, &relay.origin, source, 4_000_000_000, files).await;
        session.page(ToNode::Leave(Leaving::ForGood));
        let wanted = ModelSource::Relay { name: "wanted".into() };
        host(&mut session, &relay.origin, wanted, 4_000_000_000).await;
        until(&mut session, "the wanted model", |status| is_up(status, 1)).await;
        let epoch = session.status.plan.as_ref().unwrap().epoch;
        answers.set(true);
        for request in 1..=3 {
            answer(&mut session, question(request, "Once", 20), |_| ()).await;
        }
        let status = &session.status;
        assert_eq!(status.plan.as_ref().unwrap().epoch, epoch, "nothing is planned anew: {:?}", status.plan);
        assert_eq!(status.model.as_ref().unwrap().source, ModelSource::Relay { name: "wanted".into() });
    });
}

#[test]
fn a_room_goes_on_when_a_later_relay_takes_the_place_of_its_own() {
    test(async {
        let (models, model) = (folder("models"), small());
        let path = write(&model, &models, "model");
        let text = "The quick brown fox";
        let expected = alone(&path, text, 12).await;
        let first_relay = relay(&models, 0).await;
        let (between, port) = (Rc::new(Eavesdropper::default()), first_relay.port());
        let origin = between.clone().listen(&first_relay.origin).await;
        let mut first = peer("host", &origin, folder("host"));
        let link = host(&mut first, &origin, ModelSource::Relay { name: "model".into() }, 4_000_000_000).await;
        let mut guest = peer("guest", &origin, folder("guest"));
        join_room(&guest, &link, None);
        until(&mut guest, "a plan", |status| is_up(status, 1)).await;
        assert_eq!(answer(&mut guest, question(1, text, 12), |_| {}).await, expected);

        first_relay.stop().await;
        let lost = |status: &potluck_panel::Status| matches!(status.connection, Connection::Reconnecting { .. });
        until(&mut guest, "the loss", lost).await;
        between.later.set(Some(potluck_relay_api::VERSION));
        let second_relay = restart(&models, port).await;
        let back = |status: &potluck_panel::Status| status.connection == Connection::Connected && is_up(status, 1);
        until(&mut first, "the host's return", back).await;
        until(&mut guest, "the guest's return", back).await;
        assert_eq!(answer(&mut guest, question(2, text, 12), |_| {}).await, expected);
        drop((first, guest));
        second_relay.stop().await;
    });
}

#[test]
fn a_peer_says_what_to_do_when_the_relay_speaks_another_version() {
    test(async {
        let relay = relay(&folder("models"), 0).await;
        for version in [potluck_relay_api::VERSION - 1, potluck_relay_api::VERSION + 1] {
            let between = Rc::new(Eavesdropper::default());
            between.later.set(Some(version));
            let origin = between.listen(&relay.origin).await;
            let session = peer("guest", &origin, folder("guest"));
            join_room(&session, &format!("{origin}/r/nosuchroom234567nosuchroom#CQkJCQkJCQkJCQkJCQkJCQ"), None);
            let sentence = end_of(session).await;
            assert!(
                sentence.contains("different versions of Potluck. Open Potluck again; if that is not enough, update"),
                "{version}: {sentence}"
            );
        }
        relay.stop().await;
    });
}

/// The sentence with which a session ends.
async fn end_of(mut session: Session) -> String {
    loop {
        if let Err(failure) = session.next().await {
            return failure.to_string();
        }
    }
}

/// Starts a relay on the same port again.
async fn restart(models: &Path, port: u16) -> RunningRelay {
    relay(models, port).await
}
