//! Capital and small letters.

use super::characters::{is_cased, is_space};

/// `capitalize()`.
pub(in crate::template::jinja) fn capitalize(text: &str) -> String {
    let mut capital = String::with_capacity(text.len());
    let mut chars = text.chars();
    if let Some(first) = chars.next() {
        push_title(&mut capital, first);
    }
    capital + &chars.as_str().to_lowercase()
}

/// `title()`.
pub(in crate::template::jinja) fn title(text: &str) -> String {
    let mut titled = String::with_capacity(text.len());
    let mut after_cased = false;
    for c in text.chars() {
        if after_cased {
            titled.extend(c.to_lowercase());
        } else {
            push_title(&mut titled, c);
        }
        after_cased = is_cased(c);
    }
    titled
}

/// A character at the beginning of a word.
fn push_title(text: &mut String, c: char) {
    match c {
        'Ǆ' | 'ǅ' | 'ǆ' => text.push('ǅ'),
        'Ǉ' | 'ǈ' | 'ǉ' => text.push('ǈ'),
        'Ǌ' | 'ǋ' | 'ǌ' => text.push('ǋ'),
        'Ǳ' | 'ǲ' | 'ǳ' => text.push('ǲ'),
        '\u{10d0}'..='\u{10ff}' => text.push(c),
        _ => {
            let mut upper = c.to_uppercase();
            text.extend(upper.next());
            // "ß" begins a word as "Ss".
            text.extend(upper.flat_map(char::to_lowercase));
        }
    }
}

/// `swapcase()`.
pub(in crate::template::jinja) fn swapcase(text: &str) -> String {
    let mut swapped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_uppercase() {
            swapped.extend(c.to_lowercase());
        } else if c.is_lowercase() {
            swapped.extend(c.to_uppercase());
        } else {
            swapped.push(c);
        }
    }
    swapped
}

/// `casefold()`.
pub(in crate::template::jinja) fn casefold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            'ı' => folded.push(c),
            'ẞ' => folded.push_str("ss"),
            _ => folded.extend(c.to_uppercase().flat_map(char::to_lowercase)),
        }
    }
    folded
}

/// The `title` filter of Jinja2: words begin behind white space and opening signs.
pub(in crate::template::jinja) fn filter_title(text: &str) -> String {
    let mut titled = String::with_capacity(text.len());
    let mut begins = true;
    for c in text.chars() {
        if is_space(c) || "-({[<".contains(c) {
            titled.push(c);
            begins = true;
        } else if std::mem::take(&mut begins) {
            titled.extend(c.to_uppercase());
        } else {
            titled.extend(c.to_lowercase());
        }
    }
    titled
}
