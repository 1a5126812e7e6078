//! What operators work on: literals and names, with the attributes, items and calls behind them.

use super::Parser;
use crate::template::jinja::Result;
use crate::template::jinja::ast::{Call, Expr};
use crate::template::jinja::lexer::Token;

impl Parser {
    pub(super) fn primary(&mut self) -> Result<Expr> {
        let value = match self.peek().cloned() {
            Some(Token::Name(_)) => {
                let found = self.identifier()?;
                return Ok(match &*found {
                    "true" | "True" => Expr::Bool(true),
                    "false" | "False" => Expr::Bool(false),
                    "none" | "None" => Expr::None,
                    _ => {
                        self.mention(&found);
                        Expr::Name(found)
                    }
                });
            }
            Some(Token::Str(first)) => {
                self.at += 1;
                let mut text = first;
                while let Some(Token::Str(more)) = self.peek() {
                    text = [&*text, more].concat().into();
                    self.at += 1;
                }
                return Ok(Expr::Str(text));
            }
            Some(Token::Int(value)) => Expr::Int(value),
            Some(Token::Float(value)) => Expr::Float(value),
            Some(Token::Op("(")) => {
                self.at += 1;
                let (mut items, is_tuple) = self.items(true, &[])?;
                self.expect_op(")")?;
                return Ok(match items.pop() {
                    Some(only) if !is_tuple => only,
                    last => {
                        items.extend(last);
                        Expr::Tuple(items)
                    }
                });
            }
            Some(Token::Op("[")) => {
                self.at += 1;
                let mut items = Vec::new();
                while !self.is_op("]") {
                    items.push(self.expression()?);
                    if !self.skip_op(",") {
                        break;
                    }
                }
                self.expect_op("]")?;
                return Ok(Expr::List(items));
            }
            Some(Token::Op("{")) => {
                self.at += 1;
                let mut pairs = Vec::new();
                while !self.is_op("}") {
                    let key = self.expression()?;
                    self.expect_op(":")?;
                    pairs.push((key, self.expression()?));
                    if !self.skip_op(",") {
                        break;
                    }
                }
                self.expect_op("}")?;
                return Ok(Expr::Dict(pairs));
            }
            _ => return self.unexpected("an expression"),
        };
        self.at += 1;
        Ok(value)
    }

    /// A macro that reads a special variable gets it.
    fn mention(&mut self, name: &str) {
        let Some(catches) = self.specials.last_mut() else { return };
        match name {
            "caller" => catches.caller = true,
            "varargs" => catches.varargs = true,
            "kwargs" => catches.kwargs = true,
            _ => {}
        }
    }

    pub(super) fn postfix(&mut self, mut value: Expr) -> Result<Expr> {
        loop {
            value = match self.peek() {
                Some(Token::Op(".")) => {
                    self.at += 1;
                    match self.peek().cloned() {
                        Some(Token::Int(index)) => {
                            self.at += 1;
                            Expr::Item(Box::new([value, Expr::Int(index)]))
                        }
                        _ => Expr::Attribute(Box::new(value), self.identifier()?),
                    }
                }
                Some(Token::Op("[")) => self.subscript(value)?,
                Some(Token::Op("(")) => self.call(value)?,
                _ => return Ok(value),
            };
            self.taller()?;
        }
    }

    pub(super) fn call(&mut self, callee: Expr) -> Result<Expr> {
        let arguments = self.arguments()?;
        Ok(Expr::Call(Box::new(Call { callee, arguments })))
    }

    fn subscript(&mut self, value: Expr) -> Result<Expr> {
        self.expect_op("[")?;
        let mut parts: [Option<Expr>; 3] = [None, None, None];
        let mut colons = 0;
        loop {
            if self.skip_op(":") {
                colons += 1;
                if colons > 2 {
                    return self.unexpected("']'");
                }
            } else if self.is_op("]") {
                break;
            } else if parts[colons].is_none() {
                parts[colons] = Some(self.expression()?);
            } else if colons == 0 && self.is_op(",") {
                let mut items: Vec<Expr> = parts[0].take().into_iter().collect();
                while self.skip_op(",") {
                    if !self.is_op("]") {
                        items.push(self.expression()?);
                    }
                }
                parts[0] = Some(Expr::Tuple(items));
            } else {
                return self.unexpected("']'");
            }
        }
        self.expect_op("]")?;
        match (colons, parts) {
            (0, [Some(index), ..]) => Ok(Expr::Item(Box::new([value, index]))),
            (0, _) => Ok(Expr::Item(Box::new([value, Expr::Tuple(Vec::new())]))),
            (_, parts) => Ok(Expr::Slice(Box::new(value), Box::new(parts))),
        }
    }
}
