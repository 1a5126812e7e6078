//! Syntax highlighting of code in answers.
//!
//! The page tells comments, strings, numbers and keywords apart, in the languages that people ask for most. A parser for each language
//! would be right more often, and is a download of its own: see decision 0084.

mod grammar;
mod lexer;
mod paint;

pub use paint::Painter;

#[cfg(feature = "fuzz")]
pub use lexer::highlighted_bytes;

/// What a piece of code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A comment.
    Comment,
    /// A string or a character.
    Literal,
    /// A number.
    Number,
    /// A word of the language, the name of a tag, a key.
    Keyword,
    /// A line that a diff adds.
    Added,
    /// A line that a diff removes.
    Removed,
}

impl Kind {
    /// All of them, by index.
    const ALL: [Self; 6] = [Self::Comment, Self::Literal, Self::Number, Self::Keyword, Self::Added, Self::Removed];

    /// Its name in style sheets, `::highlight(…)`.
    const fn name(self) -> &'static str {
        match self {
            Self::Comment => "code-comment",
            Self::Literal => "code-literal",
            Self::Number => "code-number",
            Self::Keyword => "code-keyword",
            Self::Added => "code-added",
            Self::Removed => "code-removed",
        }
    }
}
