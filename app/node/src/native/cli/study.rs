//! `potluck-node trace` and `potluck-node requantize`.

use std::path::Path;

use potluck_engine::{Gpu, GpuOptions};
use potluck_gguf::TensorType;

use super::Options;
use crate::native::study::{self, TraceChoice, TraceOptions, read_prompts};

/// Writes a routing trace.
///
/// # Errors
/// A sentence on what failed.
pub async fn trace(
    model: &Path,
    prompts: &Path,
    out: &Path,
    trace: &TraceOptions,
    options: &Options,
) -> Result<(), String> {
    let choice = TraceChoice {
        model: model.to_owned(),
        shadows: trace.shadows.clone(),
        prompts: read_prompts(prompts).map_err(|error| error.to_string())?,
        raw: options.raw,
        max_tokens: options.max_tokens,
    };
    let gpu = GpuOptions {
        adapter_name: options.gpu.clone(),
        adapter_index: options.gpu_index,
        tier: options.tier,
        ..GpuOptions::default()
    };
    let gpu = match trace.cpu {
        true => None,
        false => Some(Gpu::open(gpu).await.map_err(|error| error.to_string())?),
    };
    let recorded =
        study::trace(&choice, gpu.as_ref(), |sentence| eprintln!("{sentence}")).map_err(|error| error.to_string())?;
    let bytes = recorded.to_bytes().map_err(|error| error.to_string())?;
    std::fs::write(out, &bytes).map_err(|error| format!("{} cannot be written: {error}.", out.display()))?;
    eprintln!("{}: {} bytes", out.display(), bytes.len());
    Ok(())
}

/// Writes a model in another type and prints each whole percent.
///
/// # Errors
/// A sentence on what failed.
pub fn requantize(input: &Path, output: &Path, kind: TensorType) -> Result<(), String> {
    let mut shown = None;
    let progress = |read: u64, total: u64| {
        let percent = read * 100 / total.max(1);
        if shown.replace(percent) != Some(percent) {
            eprint!("\r{percent}%, {:.0} of {:.0} MB", read as f64 / 1e6, total as f64 / 1e6);
        }
    };
    let done = study::requantize(input, output, kind, progress).map_err(|error| error.to_string());
    eprintln!();
    done
}
