//! Arguments of calls, filters and tests.

use super::Parser;
use crate::template::jinja::Result;
use crate::template::jinja::ast::Arguments;
use crate::template::jinja::lexer::Token;

impl Parser {
    pub(super) fn arguments(&mut self) -> Result<Arguments> {
        let mut arguments = Arguments::default();
        self.expect_op("(")?;
        let mut is_first = true;
        loop {
            if self.skip_op(")") {
                return Ok(arguments);
            }
            if !is_first {
                self.expect_op(",")?;
                if self.skip_op(")") {
                    return Ok(arguments);
                }
            }
            is_first = false;
            let (has_rest, has_named) = (arguments.rest.is_some(), arguments.rest_named.is_some());
            let is_named = matches!(self.peek(), Some(Token::Name(_)))
                && matches!(self.tokens.get(self.at + 1), Some((Token::Op("="), _)));
            if self.is_op("*") && !has_rest && !has_named {
                self.at += 1;
                arguments.rest = Some(self.expression()?);
            } else if self.is_op("**") && !has_named {
                self.at += 1;
                arguments.rest_named = Some(self.expression()?);
            } else if is_named && !has_named {
                let key = self.identifier()?;
                self.at += 1;
                arguments.named.push((key, self.expression()?));
            } else if !has_rest && !has_named && arguments.named.is_empty() {
                arguments.positional.push(self.expression()?);
            } else {
                return self.error("invalid syntax for function call expression");
            }
        }
    }
}
