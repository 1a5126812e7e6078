//! A text with its id, as Project Fluent writes it.

use std::fmt::Write;

/// A text of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Area and name, `answer-question-lost`.
    pub id: String,
    /// What it is, for translators.
    pub comment: &'static [&'static str],
    /// The names of its arguments.
    pub arguments: &'static [&'static str],
    /// The form for one of the first argument, if it differs.
    pub one: Option<&'static str>,
    /// The text.
    pub other: &'static str,
}

impl Message {
    /// The message as it stands in an `.ftl` file.
    #[must_use]
    pub fn fluent(&self) -> String {
        let mut out = String::new();
        for line in self.comment {
            _ = writeln!(out, "#{line}");
        }
        _ = match (self.one, self.arguments) {
            (Some(one), [chooses, ..]) => writeln!(
                out,
                "{} =\n    {{ ${chooses} ->\n        [one] {one}\n       *[other] {}\n    }}",
                self.id, self.other
            ),
            _ => writeln!(out, "{} = {}", self.id, self.other),
        };
        out
    }
}

/// The id of a text.
pub fn id(area: &str, name: &str) -> String {
    format!("{area}-{name}").replace('_', "-")
}
