//! Lists and deletes cached models, for the page's settings.

use potluck_panel::{StoredModel, ToPage};
use potluck_plan::ModelId;

use super::{Input, Node};
use crate::platform::{Platform, StoreError};
use crate::storage::{self, Stored};

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
    let stored = storage::list(platform.store.as_ref()).await?;
    let of = |Stored { model, name, bytes, total, .. }| StoredModel { model, name, bytes, total };
    let usage = platform.store.usage().await?;
    let models = stored.into_iter().map(of).collect();
    Ok(ToPage::Storage { models, used: usage.used, quota: usage.quota, persistent: usage.persistent })
}
