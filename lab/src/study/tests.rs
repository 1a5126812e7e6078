//! Routing traces and requantized models, through real files and the real engine.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use super::StudyError;
use super::requantize::requantize;
use super::trace::{ShadowChoice, TraceChoice, trace};
use crate::routing::{Recorded, Trace, recall};
use potluck_engine::{Gpu, GpuOptions};
use potluck_gguf::TensorType;
use potluck_gguf::synthetic::Synthetic;
use potluck_node::native::ModelFile;

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("potluck-study-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn model(&self, name: &str, model: &Synthetic) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, model.to_bytes().unwrap()).unwrap();
        path
    }

    fn requantized(&self, from: &Path, kind: TensorType) -> PathBuf {
        let path = self.0.join(format!("{kind}.gguf"));
        requantize(from, &path, kind, |_, _| {}).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that stays behind in the system's temporary folder does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn mixture() -> Synthetic {
    Synthetic { blocks: 3, experts: 16, seed: 3, ..Synthetic::default() }.with_type(TensorType::F32)
}

fn choice(model: &Path, shadows: &[(&Path, &str)]) -> TraceChoice {
    let shadow = |(file, alignment): &(&Path, &str)| ShadowChoice {
        file: file.to_path_buf(),
        alignment: alignment.parse().unwrap(),
    };
    TraceChoice {
        model: model.to_owned(),
        shadows: shadows.iter().map(shadow).collect(),
        prompts: vec!["Name a fruit".to_owned(), "And a river".to_owned()],
        raw: true,
        max_tokens: 12,
    }
}

fn on_cpu(choice: &TraceChoice) -> Result<Trace, StudyError> {
    trace(choice, None, |_| {}, |_| Ok(()))
}

fn on_gpu(choice: &TraceChoice) -> Result<Trace, StudyError> {
    let gpu = futures::executor::block_on(Gpu::open(GpuOptions::default())).unwrap();
    trace(choice, Some(&gpu), |_| {}, |_| Ok(()))
}

fn recall_of(trace: &Trace, channel: &str) -> f64 {
    recall(trace, &mut Recorded::new(trace, channel).unwrap()).overall()
}

#[test]
fn the_engine_chooses_the_experts_that_the_reference_chooses() {
    let folder = Folder::new("agree");
    let model = folder.model("base.gguf", &mixture());
    let choice = choice(&model, &[]);
    let (gpu, cpu) = (on_gpu(&choice).unwrap(), on_cpu(&choice).unwrap());
    assert_eq!((gpu.shape, gpu.channels[0].as_str()), (cpu.shape, cpu.channels[0].as_str()));
    assert_eq!(gpu.sequences.len(), 2);
    for (gpu, cpu) in gpu.sequences.iter().zip(&cpu.sequences) {
        assert!(!gpu.experts[0].is_empty());
        assert_eq!(gpu.experts[0], cpu.experts[0]);
    }
    assert_eq!(Trace::from_bytes(&gpu.to_bytes().unwrap()).unwrap(), gpu, "it can be written and read");
}

#[test]
fn alignment_brings_a_shadow_closer_to_its_base() {
    let folder = Folder::new("align");
    let model = folder.model("base.gguf", &mixture());
    let shadow = folder.requantized(&model, TensorType::Q4_0);
    let shadows = ["unaligned", "T1", "T1KV1"].map(|alignment| (shadow.as_path(), alignment));
    let trace = on_cpu(&choice(&model, &shadows)).unwrap();
    let [alone, token, both] = ["unaligned", "T1", "T1 KV1"].map(|name| recall_of(&trace, &format!("Q4_0 {name}")));
    assert!(alone <= token && token <= both && both < 1.0, "{alone}, {token}, {both}");
    let base = [(model.as_path(), "unaligned"), (model.as_path(), "T1KV1")];
    let itself = on_cpu(&choice(&model, &base)).unwrap();
    assert_eq!([recall_of(&itself, "F32 unaligned"), recall_of(&itself, "F32 T1 KV1")], [1.0, 1.0]);
    let near = recall_of(&trace, "router, 1 ahead");
    assert!(near > recall_of(&trace, "router, 4 ahead"), "a nearer router knows more: {near}");
}

#[test]
fn what_is_traced_so_far_is_kept_in_the_order_of_the_prompts() {
    let folder = Folder::new("keep");
    let model = folder.model("base.gguf", &mixture());
    let mut choice = choice(&model, &[(&model, "T1")]);
    choice.prompts.extend(["Say hello to everybody who is here, please".to_owned(), "Hi".to_owned()]);
    let mut kept = Vec::new();
    let whole = trace(
        &choice,
        None,
        |_| {},
        |trace| {
            kept.push(trace.clone());
            Ok(())
        },
    );
    let whole = whole.unwrap();
    assert_eq!(kept.iter().map(|trace| trace.sequences.len()).collect::<Vec<_>>(), [1, 2, 3, 4]);
    for trace in &kept {
        let mut rest = whole.sequences.iter();
        assert!(trace.sequences.iter().all(|sequence| rest.any(|other| other == sequence)), "in order");
    }
    assert_eq!(kept.last(), Some(&whole));
    let full = || Err(StudyError::File("The disk is full.".to_owned()));
    let stopped = trace(&choice, None, |_| {}, |_| full()).unwrap_err().to_string();
    assert_eq!(stopped, "The disk is full.");
}

#[test]
fn what_cannot_be_traced_is_explained() {
    let folder = Folder::new("refuse");
    let model = folder.model("base.gguf", &mixture());
    let other = folder.model("other.gguf", &Synthetic { experts: 8, ..mixture() });
    let dense = folder
        .model("dense.gguf", &Synthetic { architecture: potluck_gguf::synthetic::Architecture::Llama, ..mixture() });
    let said = |choice: &TraceChoice| on_cpu(choice).unwrap_err().to_string();
    assert!(said(&choice(&model, &[(&other, "T1")])).contains("is no shadow of base.gguf: its blocks"));
    assert!(said(&choice(&dense, &[])).contains("has no experts"));
    let unaligned = on_gpu(&choice(&model, &[(&model, "KV1")])).unwrap_err().to_string();
    assert!(unaligned.contains("--cpu"), "{unaligned}");
    let long = TraceChoice { max_tokens: u32::MAX, ..choice(&model, &[]) };
    assert!(said(&long).contains("at most"), "{}", said(&long));
    assert!(said(&choice(&folder.0.join("none.gguf"), &[])).contains("cannot be read"));
}

#[test]
fn a_requantized_file_appears_whole_or_not_at_all() {
    let folder = Folder::new("whole");
    let model = folder.model("base.gguf", &mixture());
    let mut reports = Vec::new();
    let output = folder.0.join("small.gguf");
    requantize(&model, &output, TensorType::Q8_0, |read, total| reports.push((read, total))).unwrap();
    let (before, after) = (ModelFile::open(&model).unwrap(), ModelFile::open(&output).unwrap());
    assert_eq!(
        reports.last().map(|(read, total)| (*read, *total)),
        Some((before.model.tensor_bytes(), before.model.tensor_bytes()))
    );
    assert!(reports.is_sorted(), "the bytes read so far");
    assert_eq!(before.spec().unwrap().0.blocks, after.spec().unwrap().0.blocks, "it runs here");
    let again = requantize(&model, &output, TensorType::Q8_0, |_, _| {}).unwrap_err().to_string();
    assert!(again.contains("exists already"), "{again}");

    let nowhere = folder.0.join("missing").join("small.gguf");
    let failed = requantize(&model, &nowhere, TensorType::Q8_0, |_, _| {}).unwrap_err().to_string();
    assert!(failed.contains("cannot be written"), "{failed}");
    let bytes = std::fs::read(&model).unwrap();
    let short = folder.0.join("short.gguf");
    std::fs::write(&short, &bytes[..bytes.len() - 1]).unwrap();
    let cut = requantize(&short, &folder.0.join("cut.gguf"), TensorType::Q8_0, |_, _| {}).unwrap_err().to_string();
    assert!(cut.contains("truncated"), "{cut}");
    let left: Vec<_> = std::fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".part")), "{left:?}");
    assert!(!folder.0.join("cut.gguf").exists());
}
