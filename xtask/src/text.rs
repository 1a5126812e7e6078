//! The step `text`: links of the Markdown files lead somewhere, claims name what holds them, and words are spelled as they should be.

mod claims;
mod links;
mod spelling;

use anyhow::{Result, anyhow};

use crate::test::Closing;

/// Checks everything, even if something fails.
pub fn check() -> (Closing, Result<()>) {
    let (links, claims) = (links::check(), claims::check());
    let (closing, spelling) = spelling::check();
    let wrong: Vec<String> =
        [links, claims, spelling].into_iter().filter_map(|checked| Some(format!("{:#}", checked.err()?))).collect();
    (closing, if wrong.is_empty() { Ok(()) } else { Err(anyhow!(wrong.join("\n"))) })
}
