//! The models in the cache: `potluck-node list` and `potluck-node rm`.

use std::iter::once;

use potluck_node::native::{Network, platform};
use potluck_node::platform::{BlobStore, StoreError};
use potluck_node::storage::{Stored, list as stored_in};
use potluck_text::{bytes, texts};
use serde_json::json;

use crate::failure::Failure;
use crate::options::CacheOptions;
use crate::output::{print, say};
use crate::printable::Printable;

/// Digits of an id that are shown, and the least that name a model.
const SHOWN_DIGITS: usize = 12;
const FEWEST_DIGITS: usize = 4;

/// Options of `list`.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct ListOptions {
    /// Print a line of JSON for each model
    #[arg(long)]
    pub json: bool,
    /// Where models are stored.
    #[command(flatten)]
    pub cache: CacheOptions,
}

/// Options of `rm`.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct RemoveOptions {
    /// The stored models: their names, the beginnings of their ids, or their links, as list shows them
    #[arg(required = true, value_name = "MODEL")]
    pub models: Vec<String>,
    /// Where models are stored.
    #[command(flatten)]
    pub cache: CacheOptions,
}

/// Which stored model is meant.
pub(crate) enum Chosen {
    /// Exactly one.
    One(StoredModel),
    /// None is called so.
    None,
}

/// A model in the cache.
#[derive(Clone, Debug)]
pub(crate) struct StoredModel(pub Stored);

impl StoredModel {
    /// Where it came from.
    ///
    /// # Errors
    /// Its link was not kept.
    pub fn address(&self) -> Result<String, Failure> {
        let Self(Stored { name, link, .. }) = self;
        link.clone().ok_or_else(|| Failure::Usage(texts().stored.link_not_kept(name)))
    }

    fn short_id(&self) -> String {
        self.0.model.to_string().chars().take(SHOWN_DIGITS).collect()
    }

    /// True if a person may call it so.
    fn is_called(&self, text: &str) -> bool {
        let Self(Stored { model, name, link, .. }) = self;
        let id = model.to_string();
        let is_id = text.len() >= FEWEST_DIGITS && id.starts_with(&text.to_ascii_lowercase());
        let same = |other: &str| letters(other) == letters(text);
        is_id || same(name) || link.as_deref().is_some_and(|link| link == text || same(stem(link)))
    }

    fn columns(&self) -> [String; 5] {
        let texts = &texts().stored;
        let Self(Stored { name, link, bytes: stored, weights, total, .. }) = self;
        let all = weights.unwrap_or(*total).max(1);
        let part = if *stored >= all { texts.complete().to_owned() } else { texts.part((100 * stored / all).min(99)) };
        let link = link.as_deref().unwrap_or("-");
        [name.clone(), self.short_id(), bytes(*stored), part, link.to_owned()]
    }
}

/// Small letters, and a hyphen for a blank, which a shell would need quotation marks for.
fn letters(name: &str) -> String {
    name.trim().to_lowercase().replace(' ', "-")
}

/// `model-Q4_K_M` of `https://example.org/model-Q4_K_M.gguf`.
fn stem(link: &str) -> &str {
    let name = link.rsplit('/').next().unwrap_or(link);
    name.strip_suffix(".gguf").unwrap_or(name)
}

/// The stored model that a text means.
///
/// # Errors
/// Several are called so, or the cache cannot be read.
pub(crate) async fn find(store: &dyn BlobStore, text: &str) -> Result<Chosen, Failure> {
    let mut called = all(store).await?;
    called.retain(|stored| stored.is_called(text));
    match called.len() {
        0 => Ok(Chosen::None),
        1 => Ok(called.pop().map_or(Chosen::None, Chosen::One)),
        _ => {
            let ids: Vec<String> = called.iter().map(StoredModel::short_id).collect();
            Err(Failure::Usage(texts().stored.several(text, ids.join(", "))))
        }
    }
}

async fn all(store: &dyn BlobStore) -> Result<Vec<StoredModel>, Failure> {
    let mut models: Vec<StoredModel> =
        stored_in(store).await.map_err(|error| failed(&error))?.into_iter().map(StoredModel).collect();
    models.sort_by_key(|StoredModel(stored)| (letters(&stored.name), stored.model));
    Ok(models)
}

fn failed(error: &StoreError) -> Failure {
    Failure::Failed(error.to_string())
}

/// Prints what is stored.
///
/// # Errors
/// The cache cannot be read.
pub(crate) async fn list(options: &ListOptions) -> Result<(), Failure> {
    let platform = platform(options.cache.made_folder()?, &Network::default());
    let models = all(platform.store.as_ref()).await?;
    if options.json {
        for StoredModel(Stored { model, name, link, bytes: stored, weights, .. }) in &models {
            let id = model.to_string();
            let json = json!({ "id": id, "name": name, "stored": stored, "weights": weights, "link": link });
            print(&Printable::json(&format!("{json}\n")))?;
        }
        return Ok(());
    }
    if models.is_empty() {
        say(texts().stored.nothing());
        return Ok(());
    }
    print(&Printable::lines(&table(&models)))
}

fn table(models: &[StoredModel]) -> String {
    let texts = &texts().stored;
    let heads =
        [texts.column_name(), texts.column_id(), texts.column_size(), texts.column_stored(), texts.column_link()];
    let rows: Vec<[String; 5]> =
        once(heads.map(str::to_owned)).chain(models.iter().map(StoredModel::columns)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let line = |row: &[String; 5]| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// Deletes stored models. If one of them is not there, nothing is deleted.
///
/// # Errors
/// None is called so, or it cannot be deleted.
pub(crate) async fn remove(options: &RemoveOptions) -> Result<(), Failure> {
    let platform = platform(options.cache.made_folder()?, &Network::default());
    let store = platform.store.as_ref();
    let mut chosen = Vec::new();
    for text in &options.models {
        match find(store, text).await? {
            Chosen::One(stored) => chosen.push(stored),
            Chosen::None => return Err(Failure::Usage(texts().stored.unknown(text))),
        }
    }
    for StoredModel(Stored { model, name, bytes, .. }) in chosen {
        store.delete_model(model).await.map_err(|error| failed(&error))?;
        say(texts().stored.deleted(name, bytes));
    }
    Ok(())
}
