//! What takes a value: targets of assignments, and parameters of macros.

use super::Parser;
use crate::template::jinja::Result;
use crate::template::jinja::ast::{Expr, Target, Text};
use crate::template::jinja::lexer::Token;

impl Parser {
    /// A name, an attribute of a namespace, or several of them.
    pub(super) fn target(&mut self, ends: &[&str]) -> Result<Target> {
        let mut targets = Vec::new();
        let mut is_tuple = false;
        loop {
            let is_end = matches!(self.peek(), Some(Token::BlockEnd | Token::VariableEnd))
                || self.is_op(")")
                || ends.iter().any(|end| self.is_name(end));
            if is_end {
                break;
            }
            targets.push(self.deeper(Self::simple_target)?);
            if !self.skip_op(",") {
                break;
            }
            is_tuple = true;
        }
        match targets.pop() {
            None => self.unexpected("a name to assign to"),
            Some(only) if !is_tuple => Ok(only),
            Some(last) => {
                targets.push(last);
                Ok(Target::Tuple(targets))
            }
        }
    }

    fn simple_target(&mut self) -> Result<Target> {
        if self.skip_op("(") {
            let target = self.target(&[])?;
            self.expect_op(")")?;
            return Ok(target);
        }
        if self.skip_op("[") {
            let mut targets = Vec::new();
            while !self.skip_op("]") {
                if !targets.is_empty() {
                    self.expect_op(",")?;
                }
                targets.push(self.deeper(Self::simple_target)?);
            }
            return Ok(Target::Tuple(targets));
        }
        let first = self.identifier()?;
        if matches!(&*first, "true" | "false" | "none" | "True" | "False" | "None") {
            return self.error("can't assign to a constant");
        }
        if self.skip_op(".") { Ok(Target::Attribute(first, self.identifier()?)) } else { Ok(Target::Name(first)) }
    }

    pub(super) fn parameters(&mut self) -> Result<Vec<(Text, Option<Expr>)>> {
        let mut parameters: Vec<(Text, Option<Expr>)> = Vec::new();
        self.expect_op("(")?;
        while !self.is_op(")") {
            if !parameters.is_empty() {
                self.expect_op(",")?;
            }
            let name = self.identifier()?;
            let default = if self.skip_op("=") { Some(self.expression()?) } else { None };
            if default.is_none() && parameters.iter().any(|(_, default)| default.is_some()) {
                return self.error("non-default argument follows default argument");
            }
            parameters.push((name, default));
        }
        self.expect_op(")")?;
        Ok(parameters)
    }
}
