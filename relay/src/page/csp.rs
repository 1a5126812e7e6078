//! The content security policy.
//!
//! Scripts come from this relay only; WebAssembly may be compiled. The page starts from an inline module script: its
//! hash goes into the policy of that HTML file, so no other inline script runs. Connections may go anywhere, because a
//! person may paste the address of a GGUF file.
//!
//! In the page, a string becomes markup or the address of a script only if its one Trusted Types policy lets it through:
//! templates that were compiled in, and its own workers (`xtask/bundle/src/trusted.rs`). Workers have no markup, and only scripts
//! of this relay.

use axum::http::HeaderValue;
use data_encoding::BASE64;
use ring::digest::{SHA256, digest};

/// Directives for HTML files only.
const NO_STRINGS: &str = "; require-trusted-types-for 'script'; trusted-types potluck";

/// The policy for a file; an HTML file is given as text. Others are above all workers.
pub fn policy(html: Option<&str>) -> HeaderValue {
    let scripts = html.into_iter().flat_map(inline_scripts);
    let hashes: String = scripts.map(|script| format!(" 'sha256-{}'", sha256(script))).collect();
    let mut text = [
        "default-src 'none'",
        &format!("script-src 'self' 'wasm-unsafe-eval'{hashes}"),
        "worker-src 'self' blob:",
        "connect-src 'self' ws: wss: https: http:",
        "style-src 'self'",
        // Positions and bar lengths are style attributes, which cannot run code.
        "style-src-attr 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "manifest-src 'self'",
        // index.html has a base element that leads to the relay's own folder.
        "base-uri 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
    .join("; ");
    text.push_str(html.map_or("", |_| NO_STRINGS));
    // The text is visible ASCII, so this cannot fail.
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

fn sha256(script: &str) -> String {
    BASE64.encode(digest(&SHA256, script.as_bytes()).as_ref())
}

/// The contents of all `<script>` elements without `src`, as a browser hashes them.
fn inline_scripts(html: &str) -> impl Iterator<Item = &str> {
    let mut rest = html;
    std::iter::from_fn(move || {
        loop {
            let (_, after) = rest.split_once("<script")?;
            let (attributes, after) = after.split_once('>')?;
            let (script, after) = after.split_once("</script>")?;
            rest = after;
            let external = attributes.split_ascii_whitespace().any(|attribute| attribute.starts_with("src="));
            if !external {
                return Some(script);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn only_inline_scripts_are_found() {
        let html = "<script type=\"module\">a()</script><script src=\"/b.js\"></script>\n<script>\nc()\n</script>";
        assert_eq!(inline_scripts(html).collect::<Vec<_>>(), ["a()", "\nc()\n"]);
    }

    #[test]
    fn the_policy_names_the_hashes_of_inline_scripts() {
        // printf 'alert(1)' | openssl dgst -sha256 -binary | base64
        let with = policy(Some("<script>alert(1)</script>"));
        assert!(with.to_str().unwrap().contains("'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='"), "{with:?}");
        for without in [policy(None), policy(Some(""))] {
            assert!(!without.to_str().unwrap().contains("sha256"));
            assert!(!without.to_str().unwrap().contains("script-src 'self' 'unsafe-inline'"));
        }
    }

    #[test]
    fn in_the_page_strings_become_markup_by_one_policy_only() {
        let page = policy(Some("<p>"));
        assert!(
            page.to_str().unwrap().ends_with("; require-trusted-types-for 'script'; trusted-types potluck"),
            "{page:?}"
        );
        assert!(
            !policy(None).to_str().unwrap().contains("trusted-types"),
            "a worker has no markup, and loads its program by name"
        );
    }
}
