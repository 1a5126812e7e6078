//! Code with its language and a copy button.

use leptos::prelude::*;

use crate::common::CopyButton;

/// A block of code.
#[component]
pub fn CodeBlock(
    /// "rust", or empty.
    language: String,
    /// The code.
    text: String,
) -> impl IntoView {
    let shown = text.clone();
    let name = if language.is_empty() { "code".to_owned() } else { language };
    view! {
        <figure class="code">
            <figcaption class="code-top">
                <span>{name}</span>
                <CopyButton text class="button button-quiet button-small" />
            </figcaption>
            <pre tabindex="0"><code>{shown}</code></pre>
        </figure>
    }
}
