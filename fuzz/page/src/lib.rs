//! Texts that others write for the page: what reads each kind of text, and texts of each kind made from seeds.
//!
//! `cargo xtask check page-text` reads a million of them in WebAssembly, as the page does; a trap, or a text that takes longer than
//! `LIMIT` in `run.mjs`, fails.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod json;
mod markdown;
mod words;

use potluck_plan::random::{Random, mix};
use potluck_ui::reading;

/// The longest text, bytes.
pub const LONGEST: usize = 64 << 10;

/// A kind of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An answer, Markdown.
    Answer,
    /// The name of a device or a model.
    Name,
    /// A question or a title.
    Title,
    /// A snapshot of a room.
    RoomView,
    /// The catalogue, or what is stored.
    Catalogue,
    /// A link.
    Link,
}

impl Kind {
    /// All kinds. Answers are read most and can be most, so they come twice as often.
    pub const ALL: [Self; 7] =
        [Self::Answer, Self::Name, Self::Answer, Self::Title, Self::RoomView, Self::Catalogue, Self::Link];

    /// The kind of the text with this number.
    #[must_use]
    pub fn of(number: u64) -> Self {
        Self::ALL[(number % Self::ALL.len() as u64) as usize]
    }

    /// Reads a text as the page reads one of this kind.
    pub fn read(self, text: &str) {
        match self {
            Self::Answer => reading::answer(text),
            Self::Name => reading::name(text),
            Self::Title => reading::title(text),
            Self::RoomView => drop(reading::room_view(text)),
            Self::Catalogue => drop(reading::catalogue(text)),
            Self::Link => reading::link(text),
        }
    }

    /// A text of this kind: equal numbers give equal texts.
    #[must_use]
    pub fn text(self, number: u64) -> String {
        let mut random = Random::new(mix(number));
        // Of all lengths alike, by their logarithm: most faults show in short texts, and long ones take their time.
        let length = (LONGEST as f64).powf(random.unit()) as usize + 1;
        let mut text = match self {
            Self::Answer => markdown::text(&mut random, length),
            Self::Name | Self::Title => words::text(&mut random, length),
            Self::RoomView => json::text(&reading::example_of_room(), &mut random, length),
            Self::Catalogue => json::text(reading::example_of_catalogue(), &mut random, length),
            Self::Link => words::link(&mut random, length),
        };
        text.truncate(text.floor_char_boundary(LONGEST));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_all_kinds_are_read_and_repeat() {
        for number in 0..500 {
            let kind = Kind::of(number);
            let text = kind.text(number);
            assert!(text.len() <= LONGEST);
            assert_eq!(text, kind.text(number));
            kind.read(&text);
        }
    }

    #[test]
    fn examples_are_valid() {
        assert!(reading::room_view(&reading::example_of_room()));
        assert!(reading::catalogue(reading::example_of_catalogue()));
        let valid = (0..200).filter(|number| reading::room_view(&Kind::RoomView.text(*number))).count();
        assert!(valid > 50, "{valid} of 200 rooms are rooms; the others are refused as a whole");
    }
}
