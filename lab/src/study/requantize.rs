//! `cargo lab requantize`: a model's file in another type.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use potluck_gguf::{Requantized, TensorType, WriteError, requantize_rows};
use potluck_model::FileRange;
use potluck_node::native::ModelFile;

use super::StudyError;

/// Bytes that are read at a time, rounded to whole rows.
const READ_BYTES: u64 = 4 << 20;

/// Writes the model at `input` to `output` with its matrices as `kind`. The file appears when it is whole. `progress` gets
/// the bytes read so far and in all.
///
/// # Errors
/// [`StudyError`]: the input is no model, a type cannot be converted, or the output exists or cannot be written.
pub fn requantize(
    input: &Path,
    output: &Path,
    kind: TensorType,
    mut progress: impl FnMut(u64, u64),
) -> Result<(), StudyError> {
    let file = ModelFile::open(input)?;
    if output.exists() {
        return Err(StudyError::File(format!("{} exists already. Choose another name.", output.display())));
    }
    let plan = Requantized::new(&file.model, kind)?;
    let mut partial = output.as_os_str().to_owned();
    partial.push(".part");
    let partial = Path::new(&partial);
    let failed = |error: std::io::Error| StudyError::File(format!("{} cannot be written: {error}.", output.display()));
    let written = File::create(partial).map_err(failed).and_then(|out| write(&file, &plan, out, &mut progress));
    let done = written.and_then(|()| std::fs::rename(partial, output).map_err(failed));
    if done.is_err() {
        // What is left of it is of no use; that it cannot be removed changes nothing.
        let _ = std::fs::remove_file(partial);
    }
    done
}

fn write(
    file: &ModelFile,
    plan: &Requantized,
    out: File,
    progress: &mut impl FnMut(u64, u64),
) -> Result<(), StudyError> {
    let total = file.model.tensor_bytes();
    let mut read = 0;
    let mut tensors = file.model.tensors.iter().zip(&plan.kinds);
    // The writer knows only its own errors; ours waits here.
    let mut failure = None;
    let mut out = BufWriter::new(out);
    let written = plan.writer.write_to(&mut out, |_, out| {
        let Some((tensor, kind)) = tensors.next() else { return Ok(()) };
        let row = tensor.kind.row_bytes(tensor.cols()).unwrap_or(tensor.bytes).max(1);
        let step = (READ_BYTES / row).max(1) * row;
        let mut offset = tensor.offset;
        while offset < tensor.end() {
            let len = step.min(tensor.end() - offset);
            let bytes = file.read(FileRange { file: tensor.file, offset, len }).map_err(|error| {
                failure = Some(error.into());
                std::io::Error::other("the model cannot be read")
            })?;
            let mut rows = Vec::new();
            requantize_rows((tensor.kind, *kind), tensor.cols(), &bytes, &mut rows)?;
            out.write_all(&rows)?;
            offset += len;
            read += len;
            progress(read, total);
        }
        Ok(())
    });
    match (failure, written) {
        (Some(error), _) => Err(error),
        (None, written) => {
            written?;
            let file = out.into_inner().map_err(|error| WriteError::Io(error.into_error()))?;
            file.sync_all().map_err(WriteError::Io)?;
            Ok(())
        }
    }
}
