//! `cargo lab trace` and `cargo lab requantize`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use potluck_engine::{Gpu, GpuOptions};
use potluck_gguf::TensorType;
use potluck_terminal::parse_type;

use super::StudyError;
use super::requantize::requantize;
use super::trace::{ShadowChoice, TraceChoice, read_prompts, trace};
use crate::routing::{Trace, TraceError};

/// Options of `trace`.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
pub struct TraceArguments {
    /// The model's file
    model: PathBuf,
    /// Prompts, one a line
    #[arg(long, value_name = "FILE")]
    prompts: PathBuf,
    /// The routing trace to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Shadow models and when they are aligned: small.gguf, small.gguf@T1, small.gguf@T2KV4
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    shadows: Vec<ShadowChoice>,
    /// Compute in single precision on the CPU; needed for KV alignment and the next blocks' routers
    #[arg(long)]
    cpu: bool,
    /// Maximum tokens of an answer
    #[arg(long, value_name = "N", default_value_t = 256)]
    max_tokens: u32,
    /// Continue the prompts as they are, without the chat template
    #[arg(long)]
    raw: bool,
    /// Part of the adapter's name, if there are several
    #[arg(long, value_name = "NAME")]
    gpu: Option<String>,
    /// Which of the adapters with that name, from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    gpu_index: usize,
}

/// Options of `requantize`.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
pub struct RequantizeArguments {
    /// The model's file
    input: PathBuf,
    /// The new file
    output: PathBuf,
    /// F32, F16, Q8_0, Q6_K, Q4_K, Q4_0 or Q2_K; norms and routers keep theirs
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_type)]
    kind: TensorType,
}

impl TraceArguments {
    /// Writes a routing trace, again after each prompt, so that what was traced stays when time runs out.
    ///
    /// # Errors
    /// A file cannot be used, or the GPU fails.
    pub fn run(self) -> Result<()> {
        let choice = TraceChoice {
            model: self.model,
            shadows: self.shadows,
            prompts: read_prompts(&self.prompts)?,
            raw: self.raw,
            max_tokens: self.max_tokens,
        };
        let options = GpuOptions { adapter_name: self.gpu, adapter_index: self.gpu_index, ..GpuOptions::default() };
        let gpu = match self.cpu {
            true => None,
            false => Some(futures::executor::block_on(Gpu::open(options))?),
        };
        let keep = |trace: &Trace| write(trace, &self.out).map(|_| ());
        let recorded = trace(&choice, gpu.as_ref(), |sentence| eprintln!("{sentence}"), keep)?;
        let (bytes, left_out) = write(&recorded, &self.out)?;
        if left_out > 0 {
            eprintln!("The last {left_out} prompts do not fit a trace and are left out.");
        }
        eprintln!("{}: {bytes} bytes", self.out.display());
        Ok(())
    }
}

impl RequantizeArguments {
    /// Writes a model in another type and prints each whole percent.
    ///
    /// # Errors
    /// The input is no model, a type cannot be converted, or the output exists or cannot be written.
    pub fn run(self) -> Result<()> {
        let mut shown = None;
        let progress = |read: u64, total: u64| {
            let percent = read * 100 / total.max(1);
            if shown.replace(percent) != Some(percent) {
                eprint!("\r{percent}%, {:.0} of {:.0} MB", read as f64 / 1e6, total as f64 / 1e6);
            }
        };
        let done = requantize(&self.input, &self.output, self.kind, progress);
        eprintln!();
        Ok(done?)
    }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_plan::ExpertId;
    use potluck_predict::TraceShape;

    use super::*;
    use crate::routing::{MAX_TRACE_BYTES, Sequence};

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
