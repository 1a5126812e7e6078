//! Filters and tests.

use super::Parser;
use crate::template::jinja::Result;
use crate::template::jinja::ast::{Arguments, Expr, Filter, Text};
use crate::template::jinja::lexer::Token;

impl Parser {
    /// Filters, with a bar in front of each; `inline`: but for the first.
    pub(super) fn filters(&mut self, inline: bool) -> Result<Vec<Filter>> {
        let mut filters = Vec::new();
        let mut bare = inline;
        while bare || self.skip_op("|") {
            bare = false;
            filters.push(self.filter(None)?);
        }
        Ok(filters)
    }

    fn filter(&mut self, value: Option<Expr>) -> Result<Filter> {
        let name = self.dotted()?;
        let arguments = if self.is_op("(") { self.arguments()? } else { Arguments::default() };
        Ok(Filter { value, name, arguments })
    }

    fn dotted(&mut self) -> Result<Text> {
        let mut whole = self.identifier()?.to_string();
        while self.skip_op(".") {
            whole.push('.');
            whole.push_str(&self.identifier()?);
        }
        Ok(whole.into())
    }

    pub(super) fn filtered(&mut self, mut value: Expr) -> Result<Expr> {
        loop {
            value = match self.peek() {
                Some(Token::Op("|")) => {
                    self.at += 1;
                    Expr::Filter(Box::new(self.filter(Some(value))?))
                }
                Some(Token::Name(name)) if &**name == "is" => self.test(value)?,
                Some(Token::Op("(")) => self.call(value)?,
                _ => return Ok(value),
            };
            self.taller()?;
        }
    }

    fn test(&mut self, value: Expr) -> Result<Expr> {
        self.at += 1;
        let negated = self.skip_name("not");
        let name = self.dotted()?;
        let ends = ["else", "or", "and"].iter().any(|end| self.is_name(end));
        let arguments = match self.peek() {
            Some(Token::Op("(")) => self.arguments()?,
            Some(Token::Name(_) | Token::Str(_) | Token::Int(_) | Token::Float(_) | Token::Op("[" | "{")) if !ends => {
                if self.is_name("is") {
                    return self.error("You cannot chain multiple tests with is");
                }
                let argument = self.beside(|parser| {
                    let argument = parser.deeper(Self::primary)?;
                    parser.postfix(argument)
                })?;
                Arguments { positional: vec![argument], ..Arguments::default() }
            }
            _ => Arguments::default(),
        };
        let test = Expr::Test(Box::new(value), Box::new(Filter { value: None, name, arguments }));
        Ok(if negated { Expr::Not(Box::new(test)) } else { test })
    }
}
