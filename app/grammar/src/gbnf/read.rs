//! Reads GBNF.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

use super::Expression;
use crate::GrammarError;

/// Parentheses within each other, at most.
const MAX_DEPTH: usize = 64;
/// Repetitions, at most, as llama.cpp has it.
const MAX_TIMES: u32 = 2_000;

pub(super) struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
    depth: usize,
}

/// A sign that names of rules may have.
pub(super) fn is_of_name(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || ['-', '_'].contains(&sign)
}

/// A sign, as regular expressions and Lark have it.
fn escaped(sign: char) -> String {
    if sign.is_ascii_alphanumeric() { sign.to_string() } else { format!("\\x{{{:x}}}", u32::from(sign)) }
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { rest: text.chars().peekable(), line: 1, depth: 0 }
    }

    pub fn rules(mut self) -> Result<BTreeMap<String, Expression>, GrammarError> {
        let mut rules = BTreeMap::new();
        self.skip(true);
        while self.rest.peek().is_some() {
            let name = self.name()?;
            self.skip(false);
            for expected in "::=".chars() {
                self.expect(expected)?;
            }
            self.skip(true);
            let rule = self.choice()?;
            match self.rest.peek().copied() {
                None | Some('\n') => {}
                Some(sign) => return Err(self.wrong(&format!("{sign:?} is not expected"))),
            }
            if rules.insert(name.clone(), rule).is_some() {
                return Err(self.wrong(&format!("the rule {name} is defined twice")));
            }
            self.skip(true);
        }
        Ok(rules)
    }

    fn wrong(&self, what: &str) -> GrammarError {
        GrammarError::unusable(format!("line {} of the grammar: {what}", self.line))
    }

    fn next(&mut self) -> Result<char, GrammarError> {
        let sign = self.rest.next().ok_or_else(|| self.wrong("it ends too early"))?;
        self.line += usize::from(sign == '\n');
        Ok(sign)
    }

    fn expect(&mut self, expected: char) -> Result<(), GrammarError> {
        match self.next()? {
            sign if sign == expected => Ok(()),
            sign => Err(self.wrong(&format!("expected {expected:?}, not {sign:?}"))),
        }
    }

    fn takes(&mut self, sign: char) -> bool {
        let is_next = self.rest.peek() == Some(&sign);
        if is_next {
            self.line += usize::from(sign == '\n');
            self.rest.next();
        }
        is_next
    }

    /// Skips spaces and comments, and line breaks where a rule may go on behind them.
    fn skip(&mut self, with_lines: bool) {
        while let Some(sign) = self.rest.peek().copied() {
            match sign {
                ' ' | '\t' | '\r' => {}
                '\n' if with_lines => self.line += 1,
                '#' => {
                    while self.rest.peek().is_some_and(|sign| *sign != '\n') {
                        self.rest.next();
                    }
                    continue;
                }
                _ => return,
            }
            self.rest.next();
        }
    }

    fn name(&mut self) -> Result<String, GrammarError> {
        let mut name = String::new();
        while let Some(sign) = self.rest.peek().copied().filter(|sign| is_of_name(*sign)) {
            name.push(sign);
            self.rest.next();
        }
        if name.is_empty() { Err(self.wrong("expected the name of a rule")) } else { Ok(name) }
    }

    fn choice(&mut self) -> Result<Expression, GrammarError> {
        let mut parts = vec![self.sequence()?];
        while self.takes('|') {
            self.skip(true);
            parts.push(self.sequence()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::Choice(parts) })
    }

    fn sequence(&mut self) -> Result<Expression, GrammarError> {
        let mut parts = Vec::new();
        while let Some(sign) = self.rest.peek().copied() {
            let part = match sign {
                '"' => self.text()?,
                '[' => self.class()?,
                '.' => {
                    self.next()?;
                    Expression::Signs("(?s:.)".to_owned())
                }
                '(' => self.group()?,
                '<' | '!' => self.token()?,
                sign if is_of_name(sign) => Expression::Rule(self.name()?),
                _ => break,
            };
            parts.push(self.repeated(part)?);
            self.skip(self.depth > 0);
        }
        Ok(Expression::Sequence(parts))
    }

    fn group(&mut self) -> Result<Expression, GrammarError> {
        if self.depth == MAX_DEPTH {
            return Err(self.wrong("too many parentheses within each other"));
        }
        self.next()?;
        self.depth += 1;
        self.skip(true);
        let inner = self.choice()?;
        self.depth -= 1;
        self.expect(')')?;
        Ok(inner)
    }

    fn repeated(&mut self, mut part: Expression) -> Result<Expression, GrammarError> {
        loop {
            let (least, most) = match self.rest.peek() {
                Some('*') => (0, None),
                Some('+') => (1, None),
                Some('?') => (0, Some(1)),
                Some('{') => {
                    self.next()?;
                    let times = self.times()?;
                    part = Expression::Repeat(Box::new(part), times.0, times.1);
                    continue;
                }
                _ => return Ok(part),
            };
            self.next()?;
            part = Expression::Repeat(Box::new(part), least, most);
        }
    }

    /// `m}`, `m,}`, `m,n}` or `,n}`.
    fn times(&mut self) -> Result<(u32, Option<u32>), GrammarError> {
        let least = self.number()?;
        let most = if self.takes(',') { self.number()? } else { least };
        self.expect('}')?;
        let (least, is_open) = (least.unwrap_or(0), most.is_none());
        let most = most.unwrap_or(least);
        if most < least || most > MAX_TIMES {
            return Err(self.wrong(&format!("repetitions must go up, to {MAX_TIMES} at most")));
        }
        Ok((least, (!is_open).then_some(most)))
    }

    fn number(&mut self) -> Result<Option<u32>, GrammarError> {
        let mut digits = String::new();
        self.skip(false);
        while let Some(digit) = self.rest.peek().copied().filter(char::is_ascii_digit) {
            digits.push(digit);
            self.rest.next();
        }
        self.skip(false);
        match digits.is_empty() {
            true => Ok(None),
            false => digits.parse().map(Some).map_err(|_| self.wrong("a number is too large")),
        }
    }

    fn text(&mut self) -> Result<Expression, GrammarError> {
        self.next()?;
        let mut regex = String::new();
        while !self.takes('"') {
            regex.push_str(&escaped(self.sign()?));
        }
        Ok(Expression::Signs(regex))
    }

    fn class(&mut self) -> Result<Expression, GrammarError> {
        self.next()?;
        let mut regex = if self.takes('^') { "[^" } else { "[" }.to_owned();
        let bare = regex.len();
        while !self.takes(']') {
            let first = self.sign()?;
            regex.push_str(&escaped(first));
            if self.takes('-') {
                if self.rest.peek() == Some(&']') {
                    regex.push_str(&escaped('-'));
                    continue;
                }
                let last = self.sign()?;
                if last < first {
                    return Err(self.wrong("a range of signs goes backwards"));
                }
                regex.push('-');
                regex.push_str(&escaped(last));
            }
        }
        if regex.len() == bare {
            return Err(self.wrong("brackets must name at least one sign"));
        }
        regex.push(']');
        Ok(Expression::Signs(regex))
    }

    /// A sign of a text or of brackets, which may be escaped.
    fn sign(&mut self) -> Result<char, GrammarError> {
        if !self.takes('\\') {
            return self.next();
        }
        match self.next()? {
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'x' => self.code(2),
            'u' => self.code(4),
            'U' => self.code(8),
            sign @ ('\\' | '"' | '[' | ']' | '^' | '-') => Ok(sign),
            sign => Err(self.wrong(&format!("\\{sign} is not known"))),
        }
    }

    fn code(&mut self, digits: usize) -> Result<char, GrammarError> {
        let mut code = 0u32;
        for _ in 0..digits {
            let digit = self.next()?.to_digit(16).ok_or_else(|| self.wrong("expected a hexadecimal digit"))?;
            code = code.wrapping_mul(16) | digit;
        }
        char::from_u32(code).ok_or_else(|| self.wrong("an escaped code is no sign"))
    }

    /// `<[7]>`, or any but this one: `!<[7]>`.
    fn token(&mut self) -> Result<Expression, GrammarError> {
        let is_other = self.takes('!');
        self.expect('<')?;
        if !self.takes('[') {
            return Err(self.wrong("tokens are named by their numbers, as in <[7]>"));
        }
        let id = self.number()?.ok_or_else(|| self.wrong("expected a token's number"))?;
        self.expect(']')?;
        self.expect('>')?;
        Ok(Expression::Token(if is_other { format!("<[^{id}]>") } else { format!("<[{id}]>") }))
    }
}
