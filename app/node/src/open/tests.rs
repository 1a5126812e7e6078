#![allow(clippy::unwrap_used, reason = "a test may panic")]
use super::*;
use potluck_engine::largest_kv_cache_buffer;
use potluck_gguf::join;
use potluck_gguf::synthetic::Synthetic;
use potluck_plan::WireType;
use potluck_planner::Layers;

use std::cell::Cell;
use std::path::PathBuf;

use futures::future::LocalBoxFuture;

use crate::native::{Network, platform};

/// A model of two blocks whose weights follow from the seed; the header is the same for all seeds.
fn model(seed: u64) -> Vec<u8> {
    Synthetic { blocks: 2, seed, ..Synthetic::default() }.to_bytes().unwrap()
}

/// A file in memory that counts the bytes read.
struct MemoryFile {
    bytes: Vec<u8>,
    modified: Option<u64>,
    read: Rc<Cell<u64>>,
}

impl LocalFile for MemoryFile {
    fn name(&self) -> String {
        "model.gguf".to_owned()
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn modified(&self) -> Option<u64> {
        self.modified
    }

    fn read(&self, offset: u64, len: u64) -> LocalBoxFuture<'static, Result<Vec<u8>, String>> {
        self.read.set(self.read.get() + len);
        let bytes = self.bytes[offset as usize..(offset + len) as usize].to_vec();
        Box::pin(std::future::ready(Ok(bytes)))
    }
}

/// Opens a file as a host does; its id, and the bytes that were read of it.
fn share(opener: &Opener, bytes: Vec<u8>, modified: Option<u64>) -> (ModelId, u64) {
    let source = ModelSource::File { name: "model.gguf".to_owned(), bytes: Bytes(bytes.len() as u64) };
    let read = Rc::new(Cell::new(0));
    let file: Rc<dyn LocalFile> = Rc::new(MemoryFile { bytes, modified, read: read.clone() });
    let (model, _) = run(opener.open_shared(&source, &[file], |_, _| {})).unwrap();
    assert!(model.source.group_list().is_some(), "others can ask for its hashes");
    (model.card.id, read.get())
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, work)
}

fn opener(cache: PathBuf) -> Opener {
    let platform = platform(cache, &Network::default());
    let requests = PendingRequests::new(crate::events::channel::<potluck_protocol::PieceRequest>().0.sink());
    Opener { relay: Relay::new(platform.clone(), "http://localhost"), platform, traffic: Traffic::default(), requests }
}

fn folder(test: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("potluck-{test}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

/// Otherwise a host's wrong weights would lie in the cache where a later, honest room looks for its own.
#[test]
fn files_with_other_weights_have_other_ids() {
    let opener = opener(folder("ids"));
    let (honest, other) = (model(1), model(2));
    assert_eq!(honest.len(), other.len(), "the test needs files that differ in their weights only");
    let root = *blake3::hash(&honest).as_bytes();
    let id = share(&opener, honest, None).0;
    assert_eq!(id, ModelId(root), "the id is the file's BLAKE3 hash, as for a file of the relay");
    assert_ne!(share(&opener, other, None).0, id);
}

/// Which is why nothing is stored under it. Shared files had such an id as well.
#[test]
fn the_id_of_a_file_that_nobody_else_reads_covers_its_header_only() {
    let opener = opener(folder("headers"));
    let [first, second] = [model(1), model(2)].map(|bytes| {
        let source = ModelSource::File { name: "model.gguf".to_owned(), bytes: Bytes(bytes.len() as u64) };
        let file: Rc<dyn LocalFile> = Rc::new(MemoryFile { bytes, modified: None, read: Rc::default() });
        run(opener.open(&source, &[file], |_, _| {})).unwrap().0
    });
    assert_eq!(first.card.id, second.card.id);
    assert!(!first.source.fetch_policy().cache && first.source.group_list().is_none());
}

#[test]
fn a_file_is_hashed_once_until_it_changes() {
    let cache = folder("once");
    let opener = opener(cache.clone());
    let bytes = model(1);
    let len = bytes.len() as u64;
    let (id, first) = share(&opener, bytes.clone(), Some(1));
    assert!(first >= len, "all of it is read");
    let (again, second) = share(&opener, bytes.clone(), Some(1));
    assert_eq!(again, id);
    assert!(second < len, "the second time only the header is: {second} of {len} bytes");
    let (changed, third) = share(&opener, model(2), Some(2));
    assert!(changed != id && third >= len, "a changed file is read again");

    // Another file of the same name, length and time.
    let root = ModelId(*blake3::hash(&model(3)).as_bytes());
    assert_eq!(share(&opener, model(3), Some(2)).0, root, "a few groups are compared with a kept list");

    // A kept list that was damaged on disk is not believed.
    share(&opener, bytes.clone(), Some(1));
    for kept in std::fs::read_dir(cache.join("0".repeat(64))).unwrap() {
        let path = kept.unwrap().path();
        let mut list = std::fs::read(&path).unwrap();
        *list.last_mut().unwrap() ^= 1;
        std::fs::write(&path, list).unwrap();
    }
    assert_eq!(share(&opener, bytes, Some(1)).0, id);
    let _ = std::fs::remove_dir_all(cache);
}

/// The planner respects a device's binding limit without asking the engine.
#[test]
fn planner_and_engine_agree_on_the_size_of_kv_cache_buffers() {
    let header = join([Synthetic::default().header().unwrap()]).unwrap();
    let (spec, units) = ModelSpec::from_gguf(&header).unwrap();
    for kv_cache in KvCacheType::ALL.into_iter().filter(|kv_cache| spec.takes(*kv_cache)) {
        for context in [64, 100, 4096] {
            let layers = Layers::from_shape(&spec.shape(&units, ModelId([0; 32]), kv_cache), context, WireType::F32);
            let largest = layers.iter().map(|layer| layer.buffer).max().unwrap();
            assert_eq!(largest, largest_kv_cache_buffer(&spec, context, kv_cache), "{kv_cache:?}, {context} positions");
        }
    }
}
