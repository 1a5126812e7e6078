//! What a language does besides wording: which form goes with a number, and how numbers are written.

use crate::{
    pattern::{Form, Pattern, fill},
    value::Value,
};

/// The rules of a language.
#[derive(Debug)]
pub struct Language {
    /// BCP 47 tag, for the document's `lang`.
    pub tag: &'static str,
    /// The form of a noun that goes with a number.
    pub(crate) form: fn(u64) -> Form,
    /// Writes a value at the end of a text.
    pub(crate) write: fn(&Value<'_>, &mut String),
}

impl Language {
    /// A value as a text of its own.
    pub(crate) fn value(&self, value: &Value<'_>) -> String {
        let mut text = String::new();
        (self.write)(value, &mut text);
        text
    }

    /// A pattern with its arguments, `names` and `values` in the same order; the first one chooses the form.
    /// The pattern is a copy, so that the compiler can leave out the tables' unused texts.
    pub(crate) fn fill(&self, pattern: Pattern, names: &[&str], values: &[Value<'_>]) -> String {
        let form = values.first().and_then(Value::number).map_or(Form::Other, self.form);
        fill(pattern.form(form), |name, out| {
            if let Some((_, value)) = names.iter().zip(values).find(|(known, _)| **known == name) {
                (self.write)(value, out);
            }
        })
    }
}

/// Sentences that follow each other; empty ones are left out.
#[must_use]
pub fn sentences(all: &[&str]) -> String {
    let mut text = String::new();
    for sentence in all.iter().filter(|sentence| !sentence.is_empty()) {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(sentence);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_sentences_leave_no_blank() {
        assert_eq!(sentences(&["It works.", "", "It goes on."]), "It works. It goes on.");
        assert_eq!(sentences(&["", "It works.", ""]), "It works.");
    }
}
