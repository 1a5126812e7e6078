//! Lists and deletes cached models, for the page's settings.

use potluck_panel::{StoredModel, ToPage};
use potluck_plan::ModelId;
use potluck_protocol::ModelCard;
use serde::{Deserialize, Serialize};

use super::{Input, Node};
use crate::blob::{BlobKey, BlobName};
use crate::platform::{Platform, StoreError};

/// The name and size of a model, kept in its folder.
#[derive(Serialize, Deserialize)]
struct About {
    name: String,
    bytes: u64,
}

/// Stores the name of a model in its folder. Best effort: without it the list shows the id.
pub(super) async fn remember(platform: &Platform, card: &ModelCard) {
    let key = BlobKey { model: card.id, name: BlobName::About };
    let about = About { name: card.name.clone(), bytes: card.bytes.0 };
    let Ok(json) = serde_json::to_vec(&about) else { return };
    if platform.store.len(key).await == Ok(0)
        && let Err(error) = platform.store.append(key, 0, json).await
    {
        log::info!("the model's name cannot be stored: {error}");
    }
}

impl Node {
    pub(super) fn list_storage(&self) {
        let (platform, page, inputs) = (self.platform.clone(), self.page.sender(), self.inputs.clone());
        self.platform.spawn.spawn(Box::pin(async move {
            match list(&platform).await {
                Ok(message) => page(message),
                Err(error) => inputs.send(Input::Notice(error.to_string())),
            }
        }));
    }

    pub(super) fn delete_stored(&self, model: ModelId) {
        let (platform, page, inputs) = (self.platform.clone(), self.page.sender(), self.inputs.clone());
        self.platform.spawn.spawn(Box::pin(async move {
            let deleted = platform.store.delete_model(model).await;
            let listed = match deleted {
                Ok(()) => list(&platform).await,
                Err(error) => Err(error),
            };
            match listed {
                Ok(message) => page(message),
                Err(error) => inputs.send(Input::Notice(error.to_string())),
            }
        }));
    }
}

async fn list(platform: &Platform) -> Result<ToPage, StoreError> {
    let mut models = Vec::new();
    for model in platform.store.models().await?.into_iter().filter(|model| *model != BlobKey::DEVICE.model) {
        let blobs = platform.store.list(model).await?;
        let bytes: u64 = blobs.iter().filter(|(name, _)| matches!(name, BlobName::Unit(_))).map(|(_, len)| len).sum();
        let about = match blobs.get(&BlobName::About) {
            Some(&len) => platform.store.read(BlobKey { model, name: BlobName::About }, 0, len).await.ok(),
            None => None,
        };
        let about: Option<About> = about.and_then(|json| serde_json::from_slice(&json).ok());
        let (name, total) = about.map_or_else(|| (model.to_string(), bytes), |about| (about.name, about.bytes));
        models.push(StoredModel { model, name, bytes, total });
    }
    let usage = platform.store.usage().await?;
    Ok(ToPage::Storage { models, used: usage.used, quota: usage.quota, persistent: usage.persistent })
}
