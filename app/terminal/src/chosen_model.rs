//! A model on the command line: a file, a link, or the name of one that is stored.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use potluck_node::platform::{LocalFile, Platform};
use potluck_panel::ModelSource;
use potluck_text::texts;

use crate::failure::Failure;
use crate::run::source_of;
use crate::stored_models::{Chosen, find};
use crate::{model_link, model_path};

/// What a model's text on the command line means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChosenModel {
    /// A file on this disk.
    File(PathBuf),
    /// The address of a file.
    Link(String),
}

impl ChosenModel {
    /// What a text means. A file that is there comes first, then a link, then what is stored. Anything that looks like a path is a
    /// file that is not there.
    ///
    /// # Errors
    /// It is a repository of which one file is to be chosen, or a name that no stored model has, or several.
    pub async fn of_path(path: &Path, platform: &Platform) -> Result<Self, Failure> {
        let file = || Self::File(path.to_owned());
        let Some(text) = path.to_str().filter(|_| !path.exists()) else { return Ok(file()) };
        match model_link::address(text, platform).await? {
            Some(address) => return Ok(Self::Link(address)),
            None if text.contains("://") => return Ok(Self::Link(text.to_owned())),
            None if model_path::is_path(text) => return Ok(file()),
            None => {}
        }
        match find(platform.store.as_ref(), text).await? {
            Chosen::One(stored) => stored.address().map(Self::Link),
            Chosen::None if model_path::near(path).is_some() => Ok(file()),
            Chosen::None => Err(Failure::Usage(texts().stored.no_model(text))),
        }
    }

    /// Where a node finds it: its source, and its files if they are on this disk.
    ///
    /// # Errors
    /// What is wrong with the path.
    pub fn open(self) -> Result<(ModelSource, Vec<Rc<dyn LocalFile>>), Failure> {
        match self {
            Self::File(path) => {
                let files = model_path::open(&path)?;
                Ok((source_of(&files), files))
            }
            Self::Link(url) => Ok((ModelSource::Link { url }, Vec::new())),
        }
    }
}
