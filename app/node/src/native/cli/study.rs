//! `potluck-node trace` and `potluck-node requantize`.

use std::path::Path;

use potluck_engine::{Gpu, GpuOptions};
use potluck_gguf::TensorType;
use potluck_predict::{Trace, TraceError};

use super::Options;
use crate::native::study::{self, StudyError, TraceChoice, TraceOptions, read_prompts};

/// Writes a routing trace, again after each prompt, so that what was traced stays when time runs out.
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
    let keep = |trace: &Trace| write(trace, out).map(|_| ());
    let recorded = study::trace(&choice, gpu.as_ref(), |sentence| eprintln!("{sentence}"), keep);
    let recorded = recorded.map_err(|error| error.to_string())?;
    let (bytes, left_out) = write(&recorded, out).map_err(|error| error.to_string())?;
    if left_out > 0 {
        eprintln!("The last {left_out} prompts do not fit a trace and are left out.");
    }
    eprintln!("{}: {bytes} bytes", out.display());
    Ok(())
}

/// Writes as many conversations as fit a trace. The file is whole at any time. Returns its bytes and how many are left out.
fn write(trace: &Trace, out: &Path) -> Result<(usize, usize), StudyError> {
    let mut shortened = trace.clone();
    let bytes = loop {
        match shortened.to_bytes() {
            Err(TraceError::TooLarge) if shortened.sequences.pop().is_some() => {}
            bytes => break bytes?,
        }
    };
    let failed = |error: std::io::Error| StudyError::File(format!("{} cannot be written: {error}.", out.display()));
    let partial = out.with_extension("part");
    std::fs::write(&partial, &bytes).and_then(|()| std::fs::rename(&partial, out)).map_err(failed)?;
    Ok((bytes.len(), trace.sequences.len() - shortened.sequences.len()))
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_plan::ExpertId;
    use potluck_predict::{MAX_TRACE_BYTES, Sequence, TraceShape};

    use super::*;

    #[test]
    fn a_trace_that_is_too_large_loses_its_last_conversations() {
        let shape = TraceShape { blocks: 1, experts: 256, used: 1 };
        let of = |tokens| Sequence { prompt: 1, experts: vec![vec![ExpertId(0); tokens]] };
        let sequences = vec![of(MAX_TRACE_BYTES / 2), of(10), of(MAX_TRACE_BYTES / 2)];
        let trace = Trace { shape, channels: vec!["base".to_owned()], sequences };
        let out = std::env::temp_dir().join(format!("potluck-large-{}.plrt", std::process::id()));
        let (bytes, left_out) = write(&trace, &out).unwrap();
        let written = Trace::from_bytes(&std::fs::read(&out).unwrap()).unwrap();
        std::fs::remove_file(&out).unwrap();
        assert_eq!((left_out, written.sequences.len()), (1, 2), "{bytes} bytes");
        assert_eq!(written.sequences[..], trace.sequences[..2]);
    }
}
