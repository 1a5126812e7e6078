//! A QR code, drawn as one path.

use fast_qr::qr::QRBuilder;
use leptos::prelude::*;
use potluck_text::texts;

/// A QR code of an address; empty if the address is too long.
#[component]
pub fn QrCode(
    /// The address to encode.
    address: String,
) -> impl IntoView {
    outline(&address).map(|(size, path)| {
        // The drawing includes two modules of quiet zone; the surrounding card provides the rest.
        let view_box = format!("-2 -2 {0} {0}", size + 4);
        view! {
            <svg class="qr" viewBox=view_box role="img" aria-label=texts().invite.qr() shape-rendering="crispEdges">
                <path d=path />
            </svg>
        }
    })
}

/// Size in modules, and the dark modules as path data.
fn outline(text: &str) -> Option<(usize, String)> {
    let code = QRBuilder::new(text).build().ok()?;
    let mut path = String::new();
    for row in 0..code.size {
        for (column, module) in code[row].iter().enumerate().take(code.size) {
            if module.value() {
                path.push_str(&format!("M{column} {row}h1v1h-1z"));
            }
        }
    }
    Some((code.size, path))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_link_has_a_code_with_its_finder_in_the_corner() {
        let (size, path) = outline("https://192.168.1.5:8787/r/k3v9abcd#key").unwrap();
        assert!(size >= 21);
        assert!(path.starts_with("M0 0h1v1h-1zM1 0"), "{path}");
        assert!(outline(&"x".repeat(5000)).is_none());
    }
}
