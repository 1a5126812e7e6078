//! Names, titles and links.

use potluck_plan::random::Random;

/// Pieces of text in many scripts, and what is no letter at all.
pub const PIECES: [&str; 36] = [
    "pot",
    "Luck ",
    "a",
    "soup. ",
    "Ωμέγα ",
    "щи ",
    "حساء ",
    "מרק ",
    "सूप ",
    "ซุป",
    "我们把汤",
    "テーブル",
    "수프 ",
    "👩\u{200d}👩\u{200d}👧",
    "🇩🇪",
    "e\u{301}\u{301}",
    "Z\u{351}\u{36b}\u{363}",
    "ﬁ",
    "İ",
    "\u{202e}",
    "\u{2067}",
    "\u{200b}",
    "\u{feff}",
    "\u{2028}",
    "\0",
    "\u{1b}[31m",
    "\u{7f}",
    "\u{fffd}",
    "\n",
    "\r\n",
    "\t",
    " ",
    "<img src=x onerror=alert(1)>",
    "&amp;",
    "\"",
    "\\",
];

const OF_LINKS: [&str; 26] = [
    "http://",
    "https://",
    "HTTPS://",
    "/r/",
    "k3v9abcd",
    "#",
    "?",
    "&",
    "/",
    "//",
    "@",
    ":",
    "%2f",
    "%00",
    "..",
    "localhost",
    "[::1]",
    ":8787",
    "chat.",
    "gpu.",
    "AbC_-9",
    "javascript:",
    "data:",
    ".gguf",
    "example.org",
    "\u{2025}",
];

/// Pieces until the text is long enough, with runs of one piece between them.
pub fn of(pieces: &[&str], random: &mut Random, length: usize) -> String {
    let mut text = String::with_capacity(length + 64);
    while text.len() < length {
        let piece = pieces[random.below(pieces.len())];
        let most = (length - text.len()) / piece.len();
        let times = match random.below(40) {
            0 => most,
            1..4 => random.below(most),
            _ => random.below(3) + 1,
        };
        (0..times).for_each(|_| text.push_str(piece));
    }
    text
}

/// A name or a title.
pub fn text(random: &mut Random, length: usize) -> String {
    of(&PIECES, random, length)
}

/// A link, or what could be meant as one.
pub fn link(random: &mut Random, length: usize) -> String {
    let start = ["", "/r/", "http://localhost:8787/r/", "https://example.org/"][random.below(4)];
    let rest = if random.chance(0.2) { text(random, length) } else { of(&OF_LINKS, random, length) };
    format!("{start}{rest}")
}
