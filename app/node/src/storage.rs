//! What the cache has of which models.

use potluck_plan::ModelId;
use potluck_protocol::{ModelSource, server_of};
use serde::{Deserialize, Serialize};

use crate::blob::{BlobKey, BlobName};
use crate::loader::weight_bytes;
use crate::open::Model;
use crate::platform::{BlobStore, Platform, StoreError};

/// What is said of a model in its folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct About {
    name: String,
    /// Of its files.
    bytes: u64,
    /// Of its weights. Earlier versions did not store them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weights: Option<u64>,
    /// Its address, unless that may hold a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

/// A model of which the cache has something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its id.
    pub model: ModelId,
    /// Its name; the id if none is known.
    pub name: String,
    /// The address that it came from.
    pub link: Option<String>,
    /// Bytes of its weights that are stored.
    pub bytes: u64,
    /// Bytes of all its weights, if that is known.
    pub weights: Option<u64>,
    /// Length of its files; what is stored if that is not known.
    pub total: u64,
}

/// Stores what is said of a model in its folder. Best effort: without it the list shows the id.
pub(crate) async fn remember(platform: &Platform, model: &Model) {
    let (store, card) = (platform.store.as_ref(), &model.card);
    let link = match &card.source {
        ModelSource::Link { url } if !may_hold_a_secret(url) => Some(url.clone()),
        _ => None,
    };
    let weights = Some(weight_bytes(&model.units));
    let about = About { name: card.name.clone(), bytes: card.bytes.0, weights, link };
    let key = BlobKey { model: card.id, name: BlobName::About };
    if about_of(store, card.id).await.as_ref() == Some(&about) {
        return;
    }
    let Ok(json) = serde_json::to_vec(&about) else { return };
    let stored = async {
        store.delete(key).await?;
        store.append(key, 0, json).await
    };
    if let Err(error) = stored.await {
        log::info!("the model's name cannot be stored: {error}");
    }
}

/// A query may be a signature, and a name may come with a password.
fn may_hold_a_secret(url: &str) -> bool {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = after_scheme.split(['/', '?', '#']).next().unwrap_or_default();
    url.contains(['?', '#']) || authority != server_of(url)
}

/// The models of which the cache has something.
///
/// # Errors
/// The cache cannot be read.
pub async fn list(store: &dyn BlobStore) -> Result<Vec<Stored>, StoreError> {
    let mut models = Vec::new();
    for model in store.models().await?.into_iter().filter(|model| *model != BlobKey::DEVICE.model) {
        let blobs = store.list(model).await?;
        let bytes: u64 = blobs.iter().filter(|(name, _)| matches!(name, BlobName::Unit(_))).map(|(_, len)| len).sum();
        let unnamed = About { name: model.to_string(), bytes, ..About::default() };
        let About { name, bytes: total, weights, link } = about_of(store, model).await.unwrap_or(unnamed);
        models.push(Stored { model, name, link, bytes, weights, total });
    }
    Ok(models)
}

async fn about_of(store: &dyn BlobStore, model: ModelId) -> Option<About> {
    let key = BlobKey { model, name: BlobName::About };
    let len = store.len(key).await.ok().filter(|len| *len > 0)?;
    serde_json::from_slice(&store.read(key, 0, len).await.ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_may_hold_a_secret_is_told_from_one_that_does_not() {
        assert!(!may_hold_a_secret("https://example.org:8443/a/model.gguf"));
        for secret in [
            "https://me:word@example.org/a.gguf",
            "https://example.org/a.gguf?token=1",
            "https://example.org/a.gguf#token",
        ] {
            assert!(may_hold_a_secret(secret), "{secret}");
        }
    }

    #[test]
    fn what_earlier_versions_stored_is_read() {
        let about: About = serde_json::from_str(r#"{"name": "Tiny", "bytes": 7}"#).unwrap_or_default();
        assert_eq!(about, About { name: "Tiny".to_owned(), bytes: 7, weights: None, link: None });
    }
}
