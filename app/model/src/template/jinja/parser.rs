//! Tokens to statements, by Jinja2's grammar. Here: the place in the tokens; in the submodules: each part of the grammar.

mod arguments;
mod expressions;
mod filters;
mod operands;
mod statements;
mod targets;

use super::ast::{Catches, Statement, Text};
use super::lexer::Token;
use super::{Result, fault};

/// Deepest nesting of expressions and of statements; low, because a page's stack is small.
const MAX_DEPTH: usize = 80;

/// Tallest tree of statements and expressions, with the operators, attributes and filters of a row, of which each stands on the
/// one before it: what is as tall is dropped by recursion. It could not run either.
const MAX_HEIGHT: usize = 240;

/// The statements of a template.
pub(super) fn parse(tokens: Vec<(Token, usize)>) -> Result<Vec<Statement>> {
    let mut parser = Parser { tokens, at: 0, depth: 0, height: 0, specials: Vec::new(), loops: 0 };
    let (body, _) = parser.body(&[])?;
    Ok(body)
}

struct Parser {
    tokens: Vec<(Token, usize)>,
    at: usize,
    depth: usize,
    /// How tall the tree is that is parsed so far, here.
    height: usize,
    /// What the macros around this place read of the special variables.
    specials: Vec<Catches>,
    /// Loops around this place, within its macro.
    loops: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn line(&self) -> usize {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |(_, line)| *line)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.at += 1;
        token
    }

    fn error<T>(&self, message: &str) -> Result<T> {
        fault(format!("syntax error: {message}, line {}", self.line()))
    }

    fn unexpected<T>(&self, expected: &str) -> Result<T> {
        let found = match self.peek() {
            None => "end of template".to_owned(),
            Some(Token::Name(name)) => format!("'{name}'"),
            Some(Token::Op(operator)) => format!("'{operator}'"),
            Some(Token::BlockEnd | Token::VariableEnd) => "end of tag".to_owned(),
            Some(_) => "a value".to_owned(),
        };
        self.error(&format!("expected {expected}, got {found}"))
    }

    fn is_op(&self, operator: &str) -> bool {
        matches!(self.peek(), Some(Token::Op(found)) if *found == operator)
    }

    fn is_name(&self, name: &str) -> bool {
        self.is_name_at(self.at, name)
    }

    fn is_name_at(&self, at: usize, name: &str) -> bool {
        matches!(self.tokens.get(at), Some((Token::Name(found), _)) if &**found == name)
    }

    fn skip_op(&mut self, operator: &str) -> bool {
        let is = self.is_op(operator);
        self.at += usize::from(is);
        is
    }

    fn skip_name(&mut self, name: &str) -> bool {
        let is = self.is_name(name);
        self.at += usize::from(is);
        is
    }

    fn expect_op(&mut self, operator: &str) -> Result<()> {
        if self.skip_op(operator) { Ok(()) } else { self.unexpected(&format!("'{operator}'")) }
    }

    fn expect_name(&mut self, name: &str) -> Result<()> {
        if self.skip_name(name) { Ok(()) } else { self.unexpected(&format!("'{name}'")) }
    }

    fn expect(&mut self, token: &Token, expected: &str) -> Result<()> {
        if self.peek() == Some(token) {
            self.at += 1;
            return Ok(());
        }
        self.unexpected(expected)
    }

    fn identifier(&mut self) -> Result<Text> {
        match self.peek() {
            Some(Token::Name(found)) if !found.starts_with(|c: char| c.is_numeric()) => {
                let found = found.clone();
                self.at += 1;
                Ok(found)
            }
            _ => self.unexpected("a name"),
        }
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.error("nested too deeply");
        }
        let parsed = self.beside(|parser| {
            let parsed = parse(parser)?;
            parser.taller()?;
            Ok(parsed)
        });
        self.depth -= 1;
        parsed
    }

    /// A part beside what is parsed so far: the taller one counts.
    fn beside<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = std::mem::take(&mut self.height);
        let parsed = parse(self)?;
        self.height = self.height.max(before);
        Ok(parsed)
    }

    /// One more on top of what is parsed so far.
    fn taller(&mut self) -> Result<()> {
        self.height += 1;
        if self.height > MAX_HEIGHT { self.error("too long a chain of operators") } else { Ok(()) }
    }
}
