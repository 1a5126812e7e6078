//! Fetches the catalogue from this page's server, once a visit.

use std::{cell::RefCell, rc::Rc};

use gloo_net::http::Request;

use super::entry::{Catalog, Entry};
use crate::{browser, host::choice::is_gguf_address};

/// Where the catalogue is.
const PATH: &str = "/catalog.json";

thread_local! {
    static KNOWN: RefCell<Option<Rc<Vec<Entry>>>> = const { RefCell::new(None) };
}

/// The entries that this build can run, smallest first; `None` if the file is missing or broken.
pub async fn entries() -> Option<Rc<Vec<Entry>>> {
    if let Some(known) = KNOWN.with_borrow(Clone::clone) {
        return Some(known);
    }
    let answer = Request::get(&browser::at(PATH)).send().await.ok().filter(gloo_net::http::Response::ok)?;
    let mut entries = answer.json::<Catalog>().await.ok()?.models;
    entries.retain(|entry| entry.runs_here() && is_gguf_address(&entry.address));
    let entries = Rc::new(entries);
    KNOWN.set(Some(entries.clone()));
    Some(entries)
}
