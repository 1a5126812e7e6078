//! A small WGSL preprocessor with just enough features for kernel variants.
//!
//! Lines that start with `#` are directives: `#include NAME`, `#if NAME`, `#if NAME == VALUE`, `#else`, `#endif`, and
//! `#repeat VAR COUNT` … `#end`. Anywhere else, `$NAME` is replaced by its definition (or by a repeat's counter).

use std::collections::BTreeMap;

/// Why a template cannot be expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreprocessError {
    /// `#include` of an unknown template.
    NoSuchInclude(String),
    /// `#else`, `#endif` or `#end` without its opening directive, or an opening directive without its end.
    Unbalanced(String),
    /// An unknown directive, or one with missing arguments.
    BadDirective(String),
    /// `$NAME` without a definition.
    Undefined(String),
}

impl std::fmt::Display for PreprocessError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoSuchInclude(name) => write!(f, "no template is called {name}"),
            Self::Unbalanced(line) => write!(f, "`{line}` has no counterpart"),
            Self::BadDirective(line) => write!(f, "`{line}` is not a directive"),
            Self::Undefined(name) => write!(f, "${name} is not defined"),
        }
    }
}

impl std::error::Error for PreprocessError {}

/// The definitions of a variant, by name.
pub type Definitions = BTreeMap<String, String>;

/// Expands a template. `include` looks up other templates by name.
///
/// # Errors
/// The template has an unknown or unbalanced directive, an unknown include or an undefined name.
pub fn preprocess(
    template: &str,
    definitions: &Definitions,
    include: &dyn Fn(&str) -> Option<&'static str>,
) -> Result<String, PreprocessError> {
    let lines: Vec<&str> = template.lines().collect();
    let mut out = String::with_capacity(template.len());
    expand(&lines, &mut definitions.clone(), include, &mut out)?;
    Ok(out)
}

fn expand(
    lines: &[&str],
    definitions: &mut Definitions,
    include: &dyn Fn(&str) -> Option<&'static str>,
    out: &mut String,
) -> Result<(), PreprocessError> {
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let Some(directive) = line.trim_start().strip_prefix('#') else {
            substitute(line, definitions, out)?;
            out.push('\n');
            at += 1;
            continue;
        };
        let words: Vec<&str> = directive.split_whitespace().collect();
        match words.as_slice() {
            ["include", name] => {
                let text = include(name).ok_or_else(|| PreprocessError::NoSuchInclude((*name).to_owned()))?;
                expand(&text.lines().collect::<Vec<_>>(), definitions, include, out)?;
                at += 1;
            }
            ["if", condition @ ..] => {
                let truth = match condition {
                    [name] => definitions.contains_key(*name),
                    [name, "==", value] => definitions.get(*name).is_some_and(|v| v == value),
                    _ => return Err(PreprocessError::BadDirective(line.to_owned())),
                };
                let (otherwise, end) = branches(lines, at)?;
                let (first, second) = match otherwise {
                    Some(middle) => (&lines[at + 1..middle], &lines[middle + 1..end]),
                    None => (&lines[at + 1..end], &lines[end..end]),
                };
                expand(if truth { first } else { second }, definitions, include, out)?;
                at = end + 1;
            }
            ["repeat", name, count] => {
                let mut number = String::new();
                substitute(count, definitions, &mut number)?;
                let count: u32 = number.parse().map_err(|_| PreprocessError::BadDirective(line.to_owned()))?;
                let end = repeat_end(lines, at)?;
                let hidden = definitions.remove(*name);
                for i in 0..count {
                    definitions.insert((*name).to_owned(), i.to_string());
                    expand(&lines[at + 1..end], definitions, include, out)?;
                }
                definitions.remove(*name);
                if let Some(value) = hidden {
                    definitions.insert((*name).to_owned(), value);
                }
                at = end + 1;
            }
            ["else" | "endif" | "end", ..] => return Err(PreprocessError::Unbalanced(line.to_owned())),
            _ => return Err(PreprocessError::BadDirective(line.to_owned())),
        }
    }
    Ok(())
}

/// The first word of a directive line, without the `#`.
fn keyword(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix('#').and_then(|rest| rest.split_whitespace().next())
}

/// Line numbers of the `#else` (if any) and the `#endif` that match the `#if` on line `from`.
fn branches(lines: &[&str], from: usize) -> Result<(Option<usize>, usize), PreprocessError> {
    let mut depth = 0;
    let mut otherwise = None;
    for (at, line) in lines.iter().enumerate().skip(from + 1) {
        match keyword(line) {
            Some("if") => depth += 1,
            Some("else") if depth == 0 => otherwise = Some(at),
            Some("endif") if depth == 0 => return Ok((otherwise, at)),
            Some("endif") => depth -= 1,
            _ => {}
        }
    }
    Err(PreprocessError::Unbalanced(lines[from].to_owned()))
}

/// Line number of the `#end` that matches the `#repeat` on line `from`.
fn repeat_end(lines: &[&str], from: usize) -> Result<usize, PreprocessError> {
    let mut depth = 0;
    for (at, line) in lines.iter().enumerate().skip(from + 1) {
        match keyword(line) {
            Some("repeat") => depth += 1,
            Some("end") if depth == 0 => return Ok(at),
            Some("end") => depth -= 1,
            _ => {}
        }
    }
    Err(PreprocessError::Unbalanced(lines[from].to_owned()))
}

/// Replaces `$NAME`. A name is the longest defined prefix of the letters, digits and `_` after the `$`, so `$ROWSu`
/// works.
fn substitute(line: &str, definitions: &Definitions, out: &mut String) -> Result<(), PreprocessError> {
    let mut rest = line;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let tail = &rest[at + 1..];
        let word = tail.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(tail, |end| &tail[..end]);
        let found = (1..=word.len()).rev().find_map(|n| definitions.get(&word[..n]).map(|value| (n, value)));
        let (n, value) = found.ok_or_else(|| PreprocessError::Undefined(word.to_owned()))?;
        out.push_str(value);
        rest = &tail[n..];
    }
    out.push_str(rest);
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn run(template: &str, definitions: &[(&str, &str)]) -> Result<String, PreprocessError> {
        let definitions = definitions.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        preprocess(template, &definitions, &|name| (name == "part").then_some("part $A\n"))
    }

    #[test]
    fn conditions_nest_and_have_an_else() {
        let template = "#if A\n#if B == 2\nboth\n#else\nonly a\n#endif\n#else\nnone\n#endif\n";
        assert_eq!(run(template, &[("A", "1"), ("B", "2")]).unwrap(), "both\n");
        assert_eq!(run(template, &[("A", "1")]).unwrap(), "only a\n");
        assert_eq!(run(template, &[]).unwrap(), "none\n");
    }

    #[test]
    fn repeats_count_and_names_end_where_they_are_defined() {
        let template = "#repeat r $N\nacc_$r[$ru];\n#end\n";
        assert_eq!(run(template, &[("N", "2")]).unwrap(), "acc_0[0u];\nacc_1[1u];\n");
    }

    #[test]
    fn includes_see_the_definitions() {
        assert_eq!(run("#include part", &[("A", "x")]).unwrap(), "part x\n");
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(run("#include other", &[]), Err(PreprocessError::NoSuchInclude("other".into())));
        assert_eq!(run("#if A", &[]), Err(PreprocessError::Unbalanced("#if A".into())));
        assert_eq!(run("#endif", &[]), Err(PreprocessError::Unbalanced("#endif".into())));
        assert_eq!(run("#unless A", &[]), Err(PreprocessError::BadDirective("#unless A".into())));
        assert_eq!(run("$B", &[]), Err(PreprocessError::Undefined("B".into())));
    }
}
