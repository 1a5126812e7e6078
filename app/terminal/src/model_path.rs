//! The path of a model on the command line.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use potluck_node::native::open_model_files;
use potluck_node::open::split_names;
use potluck_node::platform::LocalFile;
use potluck_text::texts;

use crate::failure::Failure;

/// At most so many files of a folder are named.
const NAMED: usize = 5;

/// True if a text means a file: no model of a relay is called so, or a file is. A folder may well be called as a model is.
pub(crate) fn is_path(text: &str) -> bool {
    let path = Path::new(text);
    let is_dots = matches!(text, "." | "..");
    let is_gguf = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"));
    !text.contains("://") && (is_gguf || text.contains(['/', '\\']) || is_dots || path.is_file())
}

/// Opens a model's file, and the others of its split.
///
/// # Errors
/// What is wrong with the path.
pub(crate) fn open(path: &Path) -> Result<Vec<Rc<dyn LocalFile>>, Failure> {
    for name in split_names(&path.to_string_lossy()) {
        // A path that is no text has no other parts.
        let part = PathBuf::from(name);
        check(if part.exists() || path.to_str().is_some() { &part } else { path })?;
    }
    open_model_files(path).map_err(Failure::Failed)
}

/// A file that is not there, or is none, is a mistake on the command line.
fn check(path: &Path) -> Result<(), Failure> {
    let texts = &texts().model_path;
    let shown = path.display().to_string();
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(Failure::Usage(match near(path) {
                Some(near) => texts.missing_near(shown, near.display().to_string()),
                None => texts.missing(shown),
            }));
        }
        Err(error) => return Err(Failure::Failed(texts.unreadable(shown, reason(&error)))),
    };
    if metadata.is_dir() {
        let names: Vec<String> = models(path).iter().take(NAMED).map(|path| path.display().to_string()).collect();
        return Err(Failure::Usage(match names.is_empty() {
            true => texts.folder(shown),
            false => texts.folder_with(shown, names.join(", ")),
        }));
    }
    if !metadata.is_file() {
        return Err(Failure::Usage(texts.special(shown)));
    }
    if let Err(error) = fs::File::open(path) {
        return Err(Failure::Failed(texts.unreadable(shown, reason(&error))));
    }
    if metadata.len() == 0 {
        return Err(Failure::Failed(texts.empty(shown)));
    }
    Ok(())
}

/// "Permission denied" of "Permission denied (os error 13)".
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.clone(), |(reason, _)| reason.to_owned())
}

/// The models in a folder, by name.
fn models(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_model = |path: &PathBuf| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"));
    let mut models: Vec<PathBuf> = entries.filter(is_model).collect();
    models.sort();
    models
}

/// The file that was probably meant: of nearly this name, in the same folder, with or without its extension.
pub(crate) fn near(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?.to_lowercase();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let models = models(folder.unwrap_or(Path::new(".")));
    let distance = |model: &PathBuf| {
        let other = model.file_name()?.to_str()?.to_lowercase();
        let stem = other.strip_suffix(".gguf").unwrap_or(&other);
        Some(edits(&name, &other).min(edits(&name, stem)))
    };
    let near = models.into_iter().filter_map(|model| Some((distance(&model)?, model)));
    let (_, model) = near.filter(|(distance, _)| *distance <= name.chars().count() / 4).min()?;
    Some(if folder.is_none() { model.strip_prefix(".").map(Path::to_path_buf).unwrap_or(model) } else { model })
}

/// How many letters must be put in, left out or replaced to make one text of the other (Levenshtein 1966).
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (at, with) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *with);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(row[at] + 1).min(row[at + 1] + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (one, other, count) in [("", "abc", 3), ("tiny", "tiny", 0), ("tniy", "tiny", 2), ("tin", "tiny", 1)] {
            assert_eq!((edits(one, other), edits(other, one)), (count, count), "{one} {other}");
        }
    }

    #[test]
    fn a_path_is_told_from_a_name_on_the_relay_and_from_a_link() {
        for path in ["a.gguf", "a.GGUF", "./a", "models/a", "/a", "C:\\a", ".", "..", "Cargo.toml"] {
            assert!(is_path(path), "{path}");
        }
        // The last one is a folder where this test runs.
        for other in ["tiny", "Qwen2.5-0.5B-Q4_K_M", "https://host/a.gguf", "", "src"] {
            assert!(!is_path(other), "{other}");
        }
    }
}
