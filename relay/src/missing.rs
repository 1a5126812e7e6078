//! What a relay lacks when it starts. It runs all the same: a folder may appear later.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::in_one_line;

/// Something that a relay was told to serve and that is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// The page is not built.
    #[error("The page is missing: there is no {0}. `cargo xtask run` builds it; --page names its folder.")]
    Page(String),
    /// A folder of models does not exist or cannot be read.
    #[error("There are no models from {path}: {reason}. --models names a folder with GGUF files.")]
    Models {
        /// The folder.
        path: String,
        /// Why.
        reason: String,
    },
}

impl Missing {
    /// Looks for the page and the folders of models.
    pub fn find(page: Option<&Path>, models: &[PathBuf]) -> Vec<Self> {
        let index = page.map(|folder| folder.join("index.html")).filter(|index| !index.is_file());
        let page = index.map(|index| Self::Page(in_one_line(&index.display().to_string())));
        let models = models.iter().filter_map(|folder| {
            let reason = match fs::read_dir(folder) {
                Ok(_) => return None,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => "the folder does not exist".to_owned(),
                Err(error) => error.to_string(),
            };
            Some(Self::Models { path: in_one_line(&folder.display().to_string()), reason })
        });
        page.into_iter().chain(models).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_missing_page_and_missing_folders_are_named() {
        let folder = std::env::temp_dir().join(format!("potluck-missing-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let models = [folder.clone(), folder.join("none"), folder.join("index.html")];
        let missing = Missing::find(Some(&folder), &models);
        let sentences: Vec<String> = missing.iter().map(Missing::to_string).collect();
        assert_eq!(missing.len(), 2 + 1, "{sentences:?}");
        assert!(sentences[0].contains("index.html") && sentences[0].contains("cargo xtask run"), "{sentences:?}");
        assert!(sentences[1].contains("none: the folder does not exist"), "{sentences:?}");
        fs::write(folder.join("index.html"), "").unwrap();
        let missing = Missing::find(Some(&folder), &models);
        assert!(
            matches!(&missing[..], [Missing::Models { .. }, Missing::Models { .. }]),
            "a file is no folder: {missing:?}"
        );
        assert_eq!(Missing::find(None, &[]), []);
        let forged = Missing::find(None, &["a\nWARN all is well\u{1b}[2J".into()])[0].to_string();
        assert!(!forged.contains(char::is_control), "a name cannot forge a line: {forged:?}");
        fs::remove_dir_all(folder).unwrap();
    }
}
