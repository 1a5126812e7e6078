//! How a text with arguments is written: as a pattern of Project Fluent, `You are number { $place }.`

/// What stands before an argument's name.
const OPEN: &str = "{ $";
/// What stands behind it.
const CLOSE: &str = " }";

/// A form of a noun that goes with a number, as CLDR names it. A language that has more of them adds them here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// "1 device".
    One,
    /// "3 devices".
    Other,
}

/// A text with arguments, in the forms that its first argument needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The form for one, if it differs.
    pub one: Option<&'static str>,
    /// The form for everything else.
    pub other: &'static str,
}

impl Pattern {
    /// The text for a form.
    pub const fn form(&self, form: Form) -> &'static str {
        match (form, self.one) {
            (Form::One, Some(one)) => one,
            (Form::One, None) | (Form::Other, _) => self.other,
        }
    }

    /// What stands before an argument and behind it.
    pub fn around(&self, name: &str) -> [&'static str; 2] {
        let around = self.other.split_once(OPEN).and_then(|(before, rest)| {
            let (found, behind) = rest.split_once(CLOSE)?;
            (found == name).then_some([before, behind])
        });
        around.unwrap_or([self.other, ""])
    }

    /// Fails to compile if the arguments in the text are not these: each form has no others, and the general one has them all.
    pub const fn check(&self, names: &[&str]) {
        if let Some(one) = self.one {
            assert!(has_only(one, names), "a text has an argument that is not declared");
        }
        assert!(has_only(self.other, names), "a text has an argument that is not declared");
        let mut index = 0;
        while index < names.len() {
            assert!(has(self.other, names[index]), "a text does not use an argument that is declared");
            index += 1;
        }
    }
}

/// Fails to compile if a text without arguments has some.
pub const fn check_plain(text: &str) {
    assert!(has_only(text, &[]), "a text has an argument that is not declared");
}

/// Puts each argument in its place. `put` writes the argument of this name.
pub fn fill(text: &str, mut put: impl FnMut(&str, &mut String)) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(OPEN) {
        out.push_str(before);
        let (name, behind) = behind.split_once(CLOSE).unwrap_or((behind, ""));
        put(name, &mut out);
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// What stands before, between and behind the arguments of a text, in order; the whole text if it has none.
pub fn literals(text: &str) -> impl Iterator<Item = &str> {
    text.split(OPEN).enumerate().map(|(index, part)| match part.split_once(CLOSE) {
        Some((_, behind)) if index > 0 => behind,
        _ => part,
    })
}

/// True if every brace of a text belongs to an argument of these.
const fn has_only(text: &str, names: &[&str]) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'{' {
            let Some(length) = any_at(bytes, at, names) else { return false };
            at += length;
        } else if bytes[at] == b'}' {
            return false;
        } else {
            at += 1;
        }
    }
    true
}

/// True if a text has an argument of this name.
const fn has(text: &str, name: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if is_at(bytes, at, name).is_some() {
            return true;
        }
        at += 1;
    }
    false
}

/// Length of the argument that begins at `at`, if it is one of these.
const fn any_at(text: &[u8], at: usize, names: &[&str]) -> Option<usize> {
    let mut index = 0;
    while index < names.len() {
        let length = is_at(text, at, names[index]);
        if length.is_some() {
            return length;
        }
        index += 1;
    }
    None
}

/// Length of the argument `name` that begins at `at`, if it does.
const fn is_at(text: &[u8], at: usize, name: &str) -> Option<usize> {
    let length = OPEN.len() + name.len() + CLOSE.len();
    let (open, name, close) = (OPEN.as_bytes(), name.as_bytes(), CLOSE.as_bytes());
    let is_there =
        same(text, at, open) && same(text, at + open.len(), name) && same(text, at + open.len() + name.len(), close);
    if is_there { Some(length) } else { None }
}

const fn same(text: &[u8], at: usize, part: &[u8]) -> bool {
    let mut index = 0;
    while index < part.len() {
        if at + index >= text.len() || text[at + index] != part[index] {
            return false;
        }
        index += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_take_their_places() {
        let text = fill("{ $a } of { $b }, { $a }", |name, out| out.push_str(if name == "a" { "1" } else { "2" }));
        assert_eq!(text, "1 of 2, 1");
        assert_eq!(fill("nothing", |_, _| {}), "nothing");
    }

    #[test]
    fn missing_and_undeclared_arguments_are_found() {
        assert!(has_only("You are { $place } of { $all }.", &["all", "place"]));
        assert!(!has_only("You are { $plase }.", &["place"]), "misspelled");
        assert!(!has_only("You are {$place}.", &["place"]), "without blanks");
        assert!(!has_only("You are }.", &[]));
        assert!(has("{ $place }", "place") && !has("{ $places }", "place") && !has("", "place"));
    }

    #[test]
    fn a_text_around_an_element_has_two_parts() {
        let pattern = Pattern { one: None, other: "Its words: { $words }. Compare them." };
        assert_eq!(pattern.around("words"), ["Its words: ", ". Compare them."]);
    }
}
