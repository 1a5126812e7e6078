//! Kernel tuning is stored between visits, and used only if it is complete.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::{Path, PathBuf};

use common::*;
use potluck_engine::Tier;
use potluck_gguf::synthetic::{Architecture, Synthetic};
use potluck_node::native::open_model_files;
use potluck_node::node::Input;
use potluck_panel::{BenchChoice, BenchEvent, BenchWorkload, KvCacheType, ModelSource, ToNode, ToPage};
use potluck_terminal::{NO_RELAY, Session};

/// The shapes of a model and their kernels, as the bench shows them.
async fn shapes(model: &Path, cache: &Path, tuned: bool) -> Vec<(String, String)> {
    let mut setup = setup("alone", NO_RELAY, cache);
    setup.node.gpu.tier = Some(Tier::Full);
    let mut session = Session::start(setup);
    let files = open_model_files(model).unwrap();
    let choice = BenchChoice {
        model: ModelSource::File { name: files[0].name(), bytes: potluck_plan::Bytes(files[0].len()) },
        workloads: vec![BenchWorkload { prompt: 4, answer: 2 }],
        depths: vec![0],
        repeats: 1,
        cache: KvCacheType::F32,
        arithmetic: potluck_plan::Arithmetic::Exact,
        kernels: false,
        sampled: true,
        tuned,
    };
    session.send(Input::Page(ToNode::Bench(choice), files));
    loop {
        match session.next().await.unwrap() {
            ToPage::Bench(BenchEvent::Done(report)) => {
                let is_shape =
                    |(name, _): &(String, String)| name.starts_with("decode ") || name.starts_with("prefill ");
                return report.device.tuned.into_iter().filter(is_shape).collect();
            }
            ToPage::Bench(BenchEvent::Failed(sentence)) => panic!("{sentence}"),
            _ => {}
        }
    }
}

/// The shapes after a visit that begins with `stored`. On a busy machine time may run out before anything is measured, and after
/// two such visits tuning is given up: so each try begins anew.
async fn measured(model: &Path, cache: &Path, stored: impl Fn()) -> Vec<(String, String)> {
    for _ in 0..20 {
        stored();
        let shapes = shapes(model, cache, true).await;
        if !shapes.is_empty() {
            return shapes;
        }
    }
    panic!("no shape was measured in 20 visits");
}

/// The file with the stored tuning.
fn stored_tuning(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?;
    entries.flatten().find_map(|entry| {
        let path = entry.path();
        if path.is_dir() { stored_tuning(&path) } else { path.ends_with("tuning").then_some(path) }
    })
}

#[test]
fn a_second_visit_does_not_measure_again() {
    test(async {
        let (models, cache) = (folder("models"), folder("cache"));
        let model = Synthetic { architecture: Architecture::Llama, blocks: 2, seed: 3, ..Synthetic::default() };
        let path = write(&model, &models, "model");
        assert!(shapes(&path, &cache, false).await.is_empty(), "nobody asked for it");
        assert_eq!(stored_tuning(&cache), None);

        let nothing = || {
            if let Some(file) = stored_tuning(&cache) {
                std::fs::remove_file(file).unwrap();
            }
        };
        let first = measured(&path, &cache, nothing).await;
        let file = stored_tuning(&cache).expect("it is kept");
        // The second visit shows the stored gains to the last digit; a new measurement would differ.
        let text = std::fs::read_to_string(&file).unwrap();
        let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
        for line in json["shapes"].as_array_mut().unwrap() {
            let known = line.as_str().unwrap();
            *line = format!("{} 7.250", known.rsplit_once(' ').unwrap().0).into();
        }
        let marked = json.to_string();
        std::fs::write(&file, &marked).unwrap();
        let second = shapes(&path, &cache, true).await;
        let marks = second.iter().filter(|(_, how)| how.ends_with("7.25 times as fast")).count();
        assert!(marks >= first.len(), "{second:?}");

        // A truncated file, and files of another build or device, lead to a new measurement.
        for broken in [
            marked[..marked.len() / 2].to_owned(),
            marked.replace("7.250", "NaN"),
            marked.replace(potluck_panel::BUILD, "an older build"),
            marked.replace("\"device\":\"", "\"device\":\"another "),
        ] {
            assert_ne!(broken, marked);
            let anew = measured(&path, &cache, || std::fs::write(&file, &broken).unwrap()).await;
            assert!(anew.iter().all(|(_, how)| !how.ends_with("7.25 times as fast")), "{anew:?}");
        }
    });
}
