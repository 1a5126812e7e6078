//! Kinds of characters, and texts that have only such: `isalpha`, `isdigit` and so on.

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// `c.isspace()`.
pub(in crate::template::jinja) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// `c.isprintable()`.
pub(in crate::template::jinja) fn is_printable(c: char) -> bool {
    let hidden = matches!(c.general_category_group(), GeneralCategoryGroup::Other | GeneralCategoryGroup::Separator);
    c == ' ' || !hidden
}

/// The value of a decimal digit of any script: those of a script lie side by side.
pub(in crate::template::jinja) fn decimal_digit(c: char) -> Option<u32> {
    if c.is_ascii() {
        return c.to_digit(10);
    }
    let is_decimal = |c: char| c.general_category() == GeneralCategory::DecimalNumber;
    if !is_decimal(c) {
        return None;
    }
    // Blocks of digits begin at a multiple of ten behind the first of their run.
    let code = u32::from(c);
    let before = (1..100).take_while(|back| char::from_u32(code - back).is_some_and(is_decimal)).count();
    u32::try_from(before % 10).ok()
}

fn is_alpha(c: char) -> bool {
    c.general_category_group() == GeneralCategoryGroup::Letter
}

/// Superscripts and digits in circles, which are digits but no decimal ones.
fn is_digit(c: char) -> bool {
    let other = matches!(u32::from(c), 0xb2 | 0xb3 | 0xb9 | 0x1369..=0x1371 | 0x19da | 0x2070 | 0x2074..=0x2079
        | 0x2080..=0x2089 | 0x2460..=0x2468 | 0x2474..=0x247c | 0x2488..=0x2490 | 0x24ea | 0x24f5..=0x24fd | 0x24ff
        | 0x2776..=0x277e | 0x2780..=0x2788 | 0x278a..=0x2792 | 0x10a40..=0x10a43 | 0x10e60..=0x10e68
        | 0x11052..=0x1105a | 0x1f100..=0x1f10a);
    other || decimal_digit(c).is_some()
}

fn is_numeric(c: char) -> bool {
    const HAN: &str = "一二三四五六七八九十百千万零〇壹贰叁肆伍陆柒捌玖拾佰仟億亿兆两";
    c.general_category_group() == GeneralCategoryGroup::Number || HAN.contains(c)
}

fn is_titlecase(c: char) -> bool {
    c.general_category() == GeneralCategory::TitlecaseLetter
}

pub(super) fn is_cased(c: char) -> bool {
    c.is_uppercase() || c.is_lowercase() || is_titlecase(c)
}

/// `isalpha`, `isdigit` and so on, `None` for another name.
pub(in crate::template::jinja) fn predicate(name: &str, text: &str) -> Option<bool> {
    let all = |test: fn(char) -> bool| !text.is_empty() && text.chars().all(test);
    Some(match name {
        "isalpha" => all(is_alpha),
        "isdecimal" => all(|c| decimal_digit(c).is_some()),
        "isdigit" => all(is_digit),
        "isnumeric" => all(is_numeric),
        "isalnum" => all(|c| is_alpha(c) || is_digit(c) || is_numeric(c)),
        "isspace" => all(is_space),
        "isascii" => text.is_ascii(),
        "isprintable" => text.chars().all(is_printable),
        "islower" => text.chars().any(char::is_lowercase) && !text.chars().any(|c| c.is_uppercase() || is_titlecase(c)),
        "isupper" => text.chars().any(char::is_uppercase) && !text.chars().any(|c| c.is_lowercase() || is_titlecase(c)),
        "istitle" => is_title(text),
        "isidentifier" => {
            let mut chars = text.chars();
            chars.next().is_some_and(|first| first == '_' || is_alpha(first))
                && chars.all(|c| c == '_' || c.is_alphanumeric())
        }
        _ => return None,
    })
}

fn is_title(text: &str) -> bool {
    let (mut cased, mut after_cased) = (false, false);
    for c in text.chars() {
        if c.is_uppercase() || is_titlecase(c) {
            if after_cased {
                return false;
            }
            (cased, after_cased) = (true, true);
        } else if c.is_lowercase() {
            if !after_cased {
                return false;
            }
            cased = true;
        } else {
            after_cased = false;
        }
    }
    cased
}

/// Words of letters, digits and underscores.
pub(in crate::template::jinja) fn count_words(text: &str) -> usize {
    text.split(|c: char| c != '_' && !is_alpha(c) && !is_digit(c) && !is_numeric(c))
        .filter(|word| !word.is_empty())
        .count()
}
