//! Files put together to models, and their entries in `GET /models`.

use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use potluck_relay_api::http::{FileEntry, ModelEntry, ModelState};
use potluck_relay_api::path::{GROUPS_SUFFIX, MODELS};

use super::file::{FileHashes, HashProgress, ModelFile};
use super::groups::model_root;

/// What is escaped in a file name: everything but the unreserved characters of RFC 3986.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A model: one file, or the parts of a split one in their order.
#[derive(Debug)]
pub struct Model {
    /// The file name without its extension and part number.
    pub name: String,
    /// The parts that were found.
    pub files: Vec<Arc<ModelFile>>,
    /// How many parts it should have.
    parts: u32,
}

impl Model {
    /// Its entry in `GET /models`.
    pub fn entry(&self) -> ModelEntry {
        self.entry_at(self.files.iter().map(|file| file.progress()).collect())
    }

    /// The entry, given the progress of each file: if state and root were read one after the other, a model could be ready without
    /// a root.
    fn entry_at(&self, progress: Vec<HashProgress>) -> ModelEntry {
        let state = self.state(&progress);
        let hashes: Vec<Option<Arc<FileHashes>>> = progress.into_iter().map(HashProgress::hashes).collect();
        let roots: Option<Vec<blake3::Hash>> = hashes.iter().map(|hashes| hashes.as_ref().map(|h| h.root)).collect();
        let roots = roots.filter(|_| self.missing_part().is_none());
        let facts = self.files.iter().filter_map(|file| file.facts.as_deref().ok());
        let facts = facts.cloned().reduce(|first, part| first.add(&part)).unwrap_or_default();
        ModelEntry {
            name: self.name.clone(),
            bytes: self.files.iter().map(|file| file.version.bytes).sum(),
            root: roots.and_then(|roots| model_root(&roots)).map(|root| root.to_string()),
            state,
            title: facts.title,
            architecture: facts.architecture,
            quantization: facts.quantization,
            blocks: facts.blocks,
            experts: facts.experts,
            experts_used: facts.experts_used,
            context: facts.context,
            licence: facts.licence,
            parameters: facts.parameters,
            kv_cache_bytes_per_position: facts.kv_cache_bytes_per_position,
            files: self.files.iter().zip(&hashes).map(|(file, hashes)| file_entry(file, hashes.as_deref())).collect(),
        }
    }

    fn state(&self, progress: &[HashProgress]) -> ModelState {
        if let Some(part) = self.missing_part() {
            return ModelState::Broken { message: format!("Part {part} of {} is missing.", self.parts) };
        }
        let (mut done, mut total, mut hashing) = (0, 0, false);
        for (file, progress) in self.files.iter().zip(progress) {
            if let Err(message) = &file.facts {
                return ModelState::Broken { message: format!("{}: {message}", file.name) };
            }
            total += file.version.bytes;
            match progress {
                HashProgress::Ready(_) => done += file.version.bytes,
                HashProgress::Hashing(bytes) => (done, hashing) = (done + bytes, true),
                HashProgress::Failed(message) => return ModelState::Broken { message: message.clone() },
            }
        }
        if hashing { ModelState::Hashing { done, total } } else { ModelState::Ready }
    }

    fn missing_part(&self) -> Option<u32> {
        let found = |part: u32| self.files.iter().any(|file| split_name(&file.name).is_some_and(|(_, p, _)| p == part));
        (1..=self.parts).find(|part| self.parts > 1 && !found(*part))
    }
}

fn file_entry(file: &ModelFile, hashes: Option<&FileHashes>) -> FileEntry {
    let url = format!("{MODELS}/{}", utf8_percent_encode(&file.name, ESCAPED));
    FileEntry {
        name: file.name.clone(),
        bytes: file.version.bytes,
        root: hashes.map(|hashes| hashes.root.to_string()),
        groups: format!("{url}{GROUPS_SUFFIX}"),
        url,
    }
}

/// Puts the parts of split models together; keeps the order of first parts.
pub fn group_files(files: &[Arc<ModelFile>]) -> Vec<Model> {
    let mut models: Vec<Model> = Vec::new();
    for file in files {
        let Some((name, _, count)) = split_name(&file.name) else {
            let name = file.name.trim_end_matches(".gguf").to_owned();
            models.push(Model { name, files: vec![file.clone()], parts: 1 });
            continue;
        };
        match models.iter_mut().find(|model| model.parts > 1 && model.name == name) {
            Some(model) => model.files.push(file.clone()),
            None => models.push(Model { name: name.to_owned(), files: vec![file.clone()], parts: count }),
        }
    }
    for model in &mut models {
        // Part numbers have five digits, so names sort as their parts do.
        model.files.sort_by(|a, b| a.name.cmp(&b.name));
    }
    models
}

/// Splits `name-00002-of-00005.gguf` into the name, the part and the number of parts.
fn split_name(file: &str) -> Option<(&str, u32, u32)> {
    let (rest, count) = file.strip_suffix(".gguf")?.rsplit_once("-of-")?;
    let (name, part) = rest.rsplit_once('-')?;
    let number = |digits: &str| (digits.len() == 5).then(|| digits.parse().ok()).flatten();
    let (part, count) = (number(part)?, number(count)?);
    (count > 1 && (1..=count).contains(&part)).then_some((name, part, count))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::path::PathBuf;

    use super::*;
    use crate::models::describe::ModelFacts;
    use crate::models::file::{FileVersion, Record};

    #[test]
    fn a_model_is_ready_only_with_its_root() {
        let mut file = ModelFile::open(
            "a.gguf".into(),
            PathBuf::new(),
            FileVersion { bytes: 1, modified: 0, record: Record::default() },
        );
        file.facts = Ok(Arc::new(ModelFacts::default()));
        let file = Arc::new(file);
        let model = group_files(std::slice::from_ref(&file)).remove(0);

        let before = file.progress();
        file.set_hashes(FileHashes::from_groups(&[[7; 32]]).unwrap());
        let entry = model.entry_at(vec![before]);
        assert!(matches!(entry.state, ModelState::Hashing { .. }), "hashing ended after the reading: {entry:?}");
        assert_eq!((&entry.root, &entry.files[0].root), (&None, &None));

        let entry = model.entry();
        assert!(matches!(entry.state, ModelState::Ready), "{entry:?}");
        assert!(entry.root.is_some() && entry.files[0].root == entry.root);
    }

    #[test]
    fn split_names_are_recognized() {
        assert_eq!(split_name("a-b-00002-of-00005.gguf"), Some(("a-b", 2, 5)));
        for other in [
            "a.gguf",
            "a-00006-of-00005.gguf",
            "a-00000-of-00005.gguf",
            "a-00001-of-00001.gguf",
            "a-2-of-5.gguf",
            "a-00001-of-00002.bin",
        ] {
            assert_eq!(split_name(other), None, "{other}");
        }
    }

    #[test]
    fn file_names_are_percent_encoded() {
        assert_eq!(utf8_percent_encode("a b/ü~.gguf", ESCAPED).to_string(), "a%20b%2F%C3%BC~.gguf");
    }
}
