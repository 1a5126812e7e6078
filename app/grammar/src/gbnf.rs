//! Grammars in GBNF, llama.cpp's notation, written in Lark as llguidance reads it.
//!
//! llguidance's lexer takes the longest match, and GBNF knows no lexer. So whatever is regular, rules included, becomes one regular
//! expression, and only what is recursive stays a rule.

mod read;

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::GrammarError;
use read::Reader;

/// Bytes of a regular expression, at most: what is longer stays in rules.
const MAX_REGEX: usize = 8 * 1024;
/// The rule with which an answer begins.
const ROOT: &str = "root";

/// What a rule says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Expression {
    /// One sign, or several in a row, as a regular expression.
    Signs(String),
    /// A token, as Lark has it.
    Token(String),
    Rule(String),
    Sequence(Vec<Expression>),
    Choice(Vec<Expression>),
    Repeat(Box<Expression>, u32, Option<u32>),
}

/// A text is a grammar in GBNF: a line of it defines a rule.
#[must_use]
pub fn is_gbnf(text: &str) -> bool {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(read::is_of_name);
    text.lines().any(|line| line.split_once("::=").is_some_and(|(name, _)| is_name(name.trim())))
}

/// The same grammar in Lark.
///
/// # Errors
/// What cannot be read of it, and in which line.
pub fn lark_of_gbnf(text: &str) -> Result<String, GrammarError> {
    let rules = Reader::new(text).rules()?;
    if !rules.contains_key(ROOT) {
        return Err(GrammarError::unusable(format!("the grammar has no rule {ROOT}")));
    }
    for (name, rule) in &rules {
        if let Some(missing) = named(rule).into_iter().find(|named| !rules.contains_key(*named)) {
            return Err(GrammarError::unusable(format!("the rule {name} names {missing}, which the grammar lacks")));
        }
    }
    Ok(Writer::new(&rules).lark())
}

/// The rules that an expression names.
fn named(expression: &Expression) -> Vec<&str> {
    match expression {
        Expression::Signs(_) | Expression::Token(_) => Vec::new(),
        Expression::Rule(name) => vec![name],
        Expression::Sequence(parts) | Expression::Choice(parts) => parts.iter().flat_map(named).collect(),
        Expression::Repeat(inner, ..) => named(inner),
    }
}

struct Writer<'a> {
    rules: &'a BTreeMap<String, Expression>,
    /// Rules that are regular expressions.
    regular: BTreeMap<&'a str, String>,
}

impl<'a> Writer<'a> {
    fn new(rules: &'a BTreeMap<String, Expression>) -> Self {
        let mut writer = Self { rules, regular: BTreeMap::new() };
        // A rule is regular once all that it names is; what names itself never is.
        loop {
            let known = writer.regular.len();
            for (name, rule) in rules {
                if !writer.regular.contains_key(name.as_str())
                    && let Some(regex) = writer.regex(rule)
                {
                    writer.regular.insert(name, regex);
                }
            }
            if writer.regular.len() == known {
                return writer;
            }
        }
    }

    fn lark(&self) -> String {
        let mut text = format!("start: {}\n", self.name(ROOT));
        for (name, rule) in self.rules {
            if name == ROOT || !self.regular.contains_key(name.as_str()) {
                // Writing to a string does not fail.
                _ = writeln!(text, "{}: {}", self.name(name), self.written(rule));
            }
        }
        text
    }

    /// Names may have signs that Lark's do not.
    fn name(&self, name: &str) -> String {
        format!("rule_{}", self.rules.keys().take_while(|known| *known != name).count())
    }

    /// The regular expression that says the same; `None`: there is none, or it is too long.
    fn regex(&self, expression: &Expression) -> Option<String> {
        let regex = match expression {
            Expression::Signs(regex) => regex.clone(),
            Expression::Token(_) => return None,
            Expression::Rule(name) => self.regular.get(name.as_str())?.clone(),
            Expression::Sequence(parts) => parts.iter().map(|part| self.regex(part)).collect::<Option<String>>()?,
            Expression::Choice(parts) => {
                let parts = parts.iter().map(|part| self.regex(part)).collect::<Option<Vec<_>>>()?;
                format!("(?:{})", parts.join("|"))
            }
            Expression::Repeat(inner, least, most) => format!("(?:{}){}", self.regex(inner)?, times(*least, *most)),
        };
        (regex.len() <= MAX_REGEX).then_some(regex)
    }

    fn written(&self, expression: &Expression) -> String {
        if let Some(regex) = self.regex(expression) {
            return if regex.is_empty() { "\"\"".to_owned() } else { format!("/{regex}/") };
        }
        match expression {
            Expression::Signs(regex) => format!("/{regex}/"),
            Expression::Token(token) => token.clone(),
            Expression::Rule(name) => self.name(name),
            Expression::Sequence(parts) => self.sequence(parts),
            Expression::Choice(parts) => self.choice(parts),
            Expression::Repeat(inner, least, most) => format!("({}){}", self.written(inner), times(*least, *most)),
        }
    }

    /// Neighbours that are regular become one expression: between two, the lexer would have to guess where the first one ends.
    fn sequence(&self, parts: &[Expression]) -> String {
        let (mut written, mut regex) = (Vec::new(), String::new());
        for part in parts {
            match self.regex(part) {
                Some(more) if regex.len() + more.len() <= MAX_REGEX => regex.push_str(&more),
                _ => {
                    written.extend((!regex.is_empty()).then(|| format!("/{}/", std::mem::take(&mut regex))));
                    written.push(match part {
                        Expression::Choice(parts) => format!("({})", self.choice(parts)),
                        part => self.written(part),
                    });
                }
            }
        }
        written.extend((!regex.is_empty()).then(|| format!("/{regex}/")));
        written.join(" ")
    }

    fn choice(&self, parts: &[Expression]) -> String {
        let regular: Vec<String> = parts.iter().filter_map(|part| self.regex(part)).collect();
        let others = parts.iter().filter(|part| self.regex(part).is_none()).map(|part| self.written(part));
        let regular = (!regular.is_empty()).then(|| match regular.join("|") {
            regex if regex.is_empty() => "\"\"".to_owned(),
            regex => format!("/{regex}/"),
        });
        regular.into_iter().chain(others).collect::<Vec<_>>().join(" | ")
    }
}

/// As regular expressions and Lark have it.
fn times(least: u32, most: Option<u32>) -> String {
    match (least, most) {
        (0, None) => "*".to_owned(),
        (1, None) => "+".to_owned(),
        (0, Some(1)) => "?".to_owned(),
        (least, None) => format!("{{{least},}}"),
        (least, Some(most)) => format!("{{{least},{most}}}"),
    }
}

#[cfg(test)]
mod tests;
