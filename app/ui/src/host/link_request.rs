//! The page's own requests to servers of links, before a room is opened.

use gloo_net::http::{Request, RequestBuilder};
use leptos::prelude::*;
use potluck_panel::AccessToken;

use crate::state::Store;

/// A request that says who asks, if this device has an access token for the server.
pub fn get(store: Store, url: &str) -> RequestBuilder {
    let header = store.settings.with_untracked(|settings| settings.access_tokens.of(url).map(AccessToken::header));
    let request = Request::get(url);
    match header {
        Some(header) => request.header("authorization", &header),
        None => request,
    }
}
