//! A file on the host's disk: what others take of it, and what they refuse.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use common::*;
use futures::future::LocalBoxFuture;
use potluck_gguf::synthetic::{Architecture, Synthetic};
use potluck_node::native::DiskFile;
use potluck_node::platform::LocalFile;
use potluck_panel::{HostChoice, ModelSource, Sharing, ToPage};
use potluck_plan::Bytes;
use potluck_terminal::Session;

const TEXT: &str = "It was a dark night";

/// A host's file that others get other bytes of than the host once hashed.
struct Altered {
    file: DiskFile,
    altered: Rc<Cell<bool>>,
}

impl LocalFile for Altered {
    fn name(&self) -> String {
        self.file.name()
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    fn read(&self, offset: u64, len: u64) -> LocalBoxFuture<'static, Result<Vec<u8>, String>> {
        let (bytes, altered) = (self.file.read(offset, len), self.altered.get());
        Box::pin(async move {
            let mut bytes = bytes.await?;
            if altered && let Some(byte) = bytes.last_mut() {
                *byte ^= 1;
            }
            Ok(bytes)
        })
    }
}

/// A host without a GPU of its own, and the link to its room.
async fn host_file(origin: &str, path: &Path, altered: Rc<Cell<bool>>) -> (Session, String) {
    let file: Rc<dyn LocalFile> = Rc::new(Altered { file: DiskFile::open(path).unwrap(), altered });
    let source = ModelSource::File { name: file.name(), bytes: Bytes(file.len()) };
    let mut session = peer("host", origin, folder("host"));
    let link = host_with(&mut session, origin, source, 0, vec![file]).await;
    (session, link)
}

/// The weights in a cache.
fn stored_units(cache: &Path) -> Vec<PathBuf> {
    let files = |folder: PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let models = files(cache.to_owned()).filter(|path| path.is_dir() && !path.ends_with("0".repeat(64)));
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let is_unit = |path: &PathBuf| {
        let name = name(path);
        ["embedding", "head", "mixer", "dense"].iter().any(|kind| name.starts_with(kind))
    };
    models.flat_map(files).filter(is_unit).collect()
}

#[test]
fn a_host_that_sends_other_bytes_is_refused_and_leaves_nothing_in_the_cache() {
    test(async {
        let (disk, cache) = (folder("disk"), folder("cache"));
        let model = Synthetic { architecture: Architecture::Llama, blocks: 2, ..Synthetic::default() };
        let path = write(&model, &disk, "model");
        let expected = alone(&path, TEXT, 8).await;
        let relay = relay(&folder("models"), 0).await;

        let altered = Rc::new(Cell::new(false));
        let (mut host, link) = host_file(&relay.origin, &path, altered.clone()).await;
        until(&mut host, "the open model", |status| status.model.is_some()).await;
        altered.set(true);
        let mut guest = peer("guest", &relay.origin, cache.clone());
        join_room(&guest, &link, Some(4_000_000_000));
        let refused = |message: &ToPage| match message {
            ToPage::Status(status) => serde_json::to_string(&status).unwrap().contains("does not match its hash"),
            ToPage::Notice(notice) => notice.sentence.contains("does not match its hash"),
            _ => false,
        };
        while !refused(&guest.next().await.unwrap()) {}
        assert_eq!(stored_units(&cache), Vec::<PathBuf>::new(), "nothing of it may be kept");
        drop((host, guest));

        let (host, link) = host_file(&relay.origin, &path, Rc::default()).await;
        let mut guest = peer("guest", &relay.origin, cache.clone());
        join_room(&guest, &link, Some(4_000_000_000));
        until(&mut guest, "an honest room", |status| is_up(status, 1)).await;
        assert_eq!(answer(&mut guest, question(1, TEXT, 8), |_| {}).await, expected);
        assert!(!stored_units(&cache).is_empty(), "the test looks where weights are kept");
        drop((host, guest));
        relay.stop().await;
    });
}

/// Everything of a model in a cache, by name.
fn stored(cache: &Path) -> Vec<(String, u64)> {
    let files = |folder: PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let models = files(cache.to_owned()).filter(|path| path.is_dir() && !path.ends_with("0".repeat(64)));
    let named = |path: PathBuf| {
        (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::metadata(&path).unwrap().len())
    };
    models.flat_map(files).map(named).collect()
}

#[test]
fn holders_of_a_protected_model_get_their_experts_and_the_answer_is_that_of_one_device() {
    test(async {
        let disk = folder("disk");
        // The vocabulary makes the header longer than a group, and what follows it is kept.
        let model = Synthetic { blocks: 3, experts: 16, vocabulary: 6_000, seed: 3, ..Synthetic::default() };
        let path = write(&model, &disk, "model");
        let expected = alone(&path, TEXT, 8).await;
        let relay = relay(&folder("models"), 0).await;
        let file: Rc<dyn LocalFile> = Rc::new(DiskFile::open(&path).unwrap());
        let source = ModelSource::File { name: file.name(), bytes: Bytes(file.len()) };
        let mut host = peer("host", &relay.origin, folder("host"));
        let choice = HostChoice { protect: true, sharing: Sharing::Experts, ..choice(source, 4_000_000_000) };
        let link = host_as(&mut host, &relay.origin, choice, vec![file]).await;
        let caches: Vec<PathBuf> = (0..3).map(|_| folder("cache")).collect();
        let joiners: Vec<Session> = caches.iter().map(|cache| peer("joiner", &relay.origin, cache.clone())).collect();
        joiners.iter().for_each(|joiner| join_room(joiner, &link, Some(4_000_000_000)));
        let have_experts = |status: &potluck_panel::Status| {
            let stage = status.plan.as_ref().and_then(|plan| plan.stages.first());
            is_up(status, 1) && stage.is_some_and(|stage| stage.expert_holders.len() == 3)
        };
        until(&mut host, "experts on all joiners", have_experts).await;
        assert_eq!(answer(&mut host, question(1, TEXT, 8), |_| {}).await, expected);
        let model_id = host.status.model.as_ref().unwrap().id.to_string();
        let stages = &host.status.plan.as_ref().unwrap().stages;
        let mut planned: Vec<usize> = stages[0].expert_holders.iter().map(|held| held.experts as usize).collect();
        let mut counts = Vec::new();
        for cache in &caches {
            let stored = stored(cache);
            // Locks are files, too: `potluck-unit-MODEL-expert-0-1`.
            let is_its = |name: &str| {
                let name = name.rsplit_once(&model_id).map_or(name, |(_, unit)| unit.trim_start_matches('-'));
                ["about", "header", "expert"].iter().any(|kind| name.starts_with(kind))
            };
            let other: Vec<_> = stored.iter().filter(|(name, _)| !is_its(name)).collect();
            assert!(other.is_empty(), "the host keeps {other:?}");
            let header = stored.iter().find(|(name, _)| name == "header-0").unwrap();
            assert!(header.1 > 2 << 16, "{header:?}");
            counts.push(stored.iter().filter(|(name, _)| name.starts_with("expert")).count());
        }
        planned.sort_unstable();
        counts.sort_unstable();
        // An earlier plan may have given a joiner others, which stay in its cache.
        let covered = planned.iter().zip(&counts).all(|(planned, stored)| (1..=*stored).contains(planned));
        assert!(covered, "the plan gives its holders {planned:?} of 48 experts, and they have {counts:?}");
        drop((host, joiners));
        relay.stop().await;
    });
}
