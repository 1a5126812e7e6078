//! Texts that others write for the page: answers, names, titles, rooms, catalogues and links. `fuzz/page` reads far more of them in
//! WebAssembly; libFuzzer finds the rare ones.

use potluck_gguf::WriteError;
use potluck_ui::reading;

/// Longest text that is read. Longer ones only take longer.
const LONGEST: usize = 64 << 10;

/// Any text is an answer, a name or a title. The first byte chooses which.
pub fn page_text(data: &[u8]) {
    let Some((which, text)) = data.split_first() else { return };
    let text = text_of(text);
    match which % 3 {
        0 => reading::answer(&text),
        1 => reading::name(&text),
        _ => reading::title(&text),
    }
}

/// Any text is a room, a catalogue or something stored, or an error; a room can be laid out.
pub fn room_view(data: &[u8]) {
    let text = text_of(data);
    reading::room_view(&text);
    reading::catalogue(&text);
}

/// Any text is a link or none.
///
/// # Panics
/// If the link of a room does not read back.
pub fn links(data: &[u8]) {
    reading::link(&text_of(data));
}

fn text_of(data: &[u8]) -> String {
    String::from_utf8_lossy(&data[..data.len().min(LONGEST)]).into_owned()
}

pub fn text_seeds() -> Result<Vec<Vec<u8>>, WriteError> {
    let texts = [
        "# Soup\n\nTake **3** *spoons*, ~~salt~~, `code` and [more](https://example.org \"title\").\n\n---\n\n<br>",
        "- [x] wash\n- [ ] cook\n  1. onions\n  2) more\n\n> quoted\n> > twice\n\n```rust\nfn main() {}\n```\n",
        "| a | b |\n|---|--:|\n| `1` | 2<br>3 |\n\n[a]: https://example.org\n\n![a][a] https://example.org/a_(b)",
        r"So \(a_1 * b_2\) and $x_1$, $$y$$ \[z\] \` ``\``` &amp; &#xE000;0&#xE001;",
        "👩\u{200d}👩\u{200d}👧 Ωμέγα \u{202e}e\u{301} 我们把汤\u{2028}",
    ];
    Ok((0..3).flat_map(|which| texts.map(|text| [&[which], text.as_bytes()].concat())).collect())
}

pub fn room_seeds() -> Result<Vec<Vec<u8>>, WriteError> {
    Ok(vec![reading::example_of_room().into_bytes(), reading::example_of_catalogue().as_bytes().to_vec()])
}

pub fn link_seeds() -> Result<Vec<Vec<u8>>, WriteError> {
    let links = [
        "https://example.org/r/k3v9abcd#chat.AbC_-9",
        "http://localhost:8787/r/k3v9abcd",
        "/r/k3v9abcd#gpu.AbC_-9",
        "https://[::1]/a%2fb.gguf?download=true#",
        "javascript:alert(1)",
    ];
    Ok(links.map(|link| link.as_bytes().to_vec()).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_what_they_are_read_as() {
        let seeds = room_seeds().expect("texts");
        let texts = [&seeds[0], &seeds[1]].map(|seed| String::from_utf8(seed.clone()).expect("a text"));
        assert!(reading::room_view(&texts[0]), "no room: {}", texts[0]);
        assert!(reading::catalogue(&texts[1]), "no catalogue: {}", texts[1]);
    }
}
