//! Attaches text files to the question in the composer.

use leptos::prelude::*;
use potluck_text::texts;
use thiserror::Error;

use crate::{
    browser,
    state::{AttachedFile, QuestionParts, Store, encoding_of},
};

/// Most bytes of all files of a question: a room takes no longer conversation.
const LARGEST: u64 = 1 << 20;
/// Most files of a question.
const MOST: usize = 16;

/// Why a file is not attached.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
enum AttachError {
    /// It is larger than what questions may have, or not the first one.
    #[error("{}", texts().attach.too_large(.0, LARGEST))]
    TooLarge(String),
    /// It is no text.
    #[error("{}", texts().attach.no_text(.0))]
    NoText(String),
    /// The question has [`MOST`] files.
    #[error("{}", texts().attach.too_many(MOST))]
    TooMany,
    /// The browser cannot read it: it was moved or deleted, or it is a folder.
    #[error("{}", texts().attach.unreadable(.0))]
    Unreadable(String),
}

impl Store {
    /// Reads files and attaches those that are text. What is wrong with another one is said below the composer.
    pub fn attach(self, files: Vec<web_sys::File>) {
        self.chats.refused.set(None);
        leptos::task::spawn_local(async move {
            for file in files {
                let name = file.name();
                let taken = self.check_size(&name, file.size());
                let read = match taken {
                    Ok(()) => read(&file).await,
                    Err(error) => Err(error),
                };
                let Err(error) = read.and_then(|text| self.add_file(&name, &text)) else { continue };
                self.chats.refused.set(Some(error.to_string()));
            }
            self.keep_files();
            browser::focus_composer();
        });
    }

    /// Takes a file out of the question again.
    pub fn detach(self, at: usize) {
        self.chats.refused.set(None);
        self.chats.files.update(|files| {
            if at < files.len() {
                files.remove(at);
            }
        });
        self.keep_files();
    }

    fn check_size(self, name: &str, bytes: f64) -> Result<(), AttachError> {
        let (count, taken) = self
            .chats
            .files
            .with_untracked(|files| (files.len(), files.iter().map(|file| file.text.len() as u64).sum::<u64>()));
        match count {
            MOST.. => Err(AttachError::TooMany),
            _ if bytes > LARGEST.saturating_sub(taken) as f64 => Err(AttachError::TooLarge(name.to_owned())),
            _ => Ok(()),
        }
    }

    /// A file may be longer as text than it was.
    fn add_file(self, name: &str, text: &str) -> Result<(), AttachError> {
        self.check_size(name, text.len() as f64)?;
        self.chats.files.update(|files| files.push(AttachedFile::new(name, text)));
        Ok(())
    }

    /// Keeps the draft with its files, which the field does not know of.
    fn keep_files(self) {
        let text = self.chats.typing.with_value(|field| field.as_ref().map(web_sys::HtmlTextAreaElement::value));
        let text = text.unwrap_or_else(|| self.chats.draft.with_untracked(|draft| QuestionParts::of(draft).text));
        self.keep_draft(self.chats.with_files(text));
    }
}

async fn read(file: &web_sys::File) -> Result<String, AttachError> {
    let bytes = browser::file_bytes(file).await.ok_or_else(|| AttachError::Unreadable(file.name()))?;
    let encoding = encoding_of(&bytes).ok_or_else(|| AttachError::NoText(file.name()))?;
    browser::decode_text(&bytes, encoding).ok_or_else(|| AttachError::NoText(file.name()))
}
