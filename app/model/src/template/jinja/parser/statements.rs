//! Statements: the tags of a template, and the text between them.

use std::sync::Arc;

use super::Parser;
use crate::template::jinja::Result;
use crate::template::jinja::ast::{Catches, Expr, For, Kind, Macro, Statement, Text};
use crate::template::jinja::lexer::{Token, name};

impl Parser {
    /// Statements up to one of the names that end them, which is returned. Without names, up to the end of the template.
    pub(super) fn body(&mut self, ends: &[&str]) -> Result<(Vec<Statement>, Text)> {
        let mut body = Vec::new();
        loop {
            let line = self.line();
            let kind = match self.next() {
                None if ends.is_empty() => return Ok((body, name(""))),
                None => return self.error(&format!("unexpected end of template, expected {}", ends.join(" or "))),
                Some(Token::Data(text)) => Kind::Data(text),
                Some(Token::VariableBegin) => {
                    let value = self.tuple(true, &[])?;
                    self.expect(&Token::VariableEnd, "end of print statement")?;
                    Kind::Output(value)
                }
                Some(Token::BlockBegin) => {
                    if let Some(end) = ends.iter().find(|end| self.is_name(end)) {
                        self.at += 1;
                        return Ok((body, name(end)));
                    }
                    let kinds = self.deeper(Self::statement)?;
                    self.expect(&Token::BlockEnd, "end of statement block")?;
                    body.extend(kinds.into_iter().map(|kind| Statement { line, kind }));
                    continue;
                }
                Some(_) => return self.error("unexpected token"),
            };
            body.push(Statement { line, kind });
        }
    }

    /// The statements between this tag and the one that ends them.
    fn block(&mut self, ends: &[&str]) -> Result<(Vec<Statement>, Text)> {
        self.skip_op(":");
        self.expect(&Token::BlockEnd, "end of statement block")?;
        self.body(ends)
    }

    fn block_to(&mut self, end: &str) -> Result<Vec<Statement>> {
        Ok(self.block(&[end])?.0)
    }

    fn statement(&mut self) -> Result<Vec<Kind>> {
        let Some(Token::Name(tag)) = self.next() else {
            self.at -= 1;
            return self.error("tag name expected");
        };
        let kind = match &*tag {
            "if" => self.if_chain()?,
            "for" => self.for_loop()?,
            "set" => self.set()?,
            "with" => {
                let mut values = Vec::new();
                while self.peek() != Some(&Token::BlockEnd) {
                    if !values.is_empty() {
                        self.expect_op(",")?;
                    }
                    let target = self.target(&[])?;
                    self.expect_op("=")?;
                    values.push((target, self.expression()?));
                }
                Kind::With(values, self.block_to("endwith")?)
            }
            "macro" => {
                let name = self.identifier()?;
                let parameters = self.parameters()?;
                Kind::Macro(Arc::new(self.macro_body(Some(name), parameters, "endmacro")?))
            }
            "call" => {
                let parameters = if self.is_op("(") { self.parameters()? } else { Vec::new() };
                let Expr::Call(call) = self.expression()? else { return self.error("expected call") };
                Kind::CallBlock(Arc::new(self.macro_body(None, parameters, "endcall")?), call)
            }
            "filter" => {
                let filters = self.filters(true)?;
                Kind::FilterBlock(filters, self.block_to("endfilter")?)
            }
            "generation" => Kind::Scope(self.block_to("endgeneration")?),
            "autoescape" => {
                self.expression()?;
                Kind::Scope(self.block_to("endautoescape")?)
            }
            "block" => {
                let name = self.identifier()?;
                self.skip_name("scoped");
                self.skip_name("required");
                let body = self.block_to("endblock")?;
                self.skip_name(&name);
                Kind::Block(body)
            }
            "print" => {
                let mut values = Vec::new();
                while self.peek() != Some(&Token::BlockEnd) {
                    if !values.is_empty() {
                        self.expect_op(",")?;
                    }
                    values.push(Kind::Output(self.expression()?));
                }
                return Ok(values);
            }
            "break" | "continue" if self.loops == 0 => return self.error(&format!("'{tag}' outside of a loop")),
            "break" => Kind::Break,
            "continue" => Kind::Continue,
            "include" | "import" | "from" | "extends" => {
                while !matches!(self.peek(), None | Some(Token::BlockEnd)) {
                    self.at += 1;
                }
                Kind::Load
            }
            unknown => return self.error(&format!("Encountered unknown tag '{unknown}'")),
        };
        Ok(vec![kind])
    }

    fn if_chain(&mut self) -> Result<Kind> {
        let mut branches = Vec::new();
        loop {
            let condition = self.tuple(false, &[])?;
            let (body, end) = self.block(&["elif", "else", "endif"])?;
            branches.push((Some(condition), body));
            match &*end {
                "elif" => {}
                "else" => {
                    branches.push((None, self.block_to("endif")?));
                    break;
                }
                _ => break,
            }
        }
        Ok(Kind::If(branches))
    }

    fn for_loop(&mut self) -> Result<Kind> {
        let target = self.target(&["in"])?;
        self.expect_name("in")?;
        let iterable = self.tuple(false, &["recursive"])?;
        let condition = if self.skip_name("if") { Some(self.expression()?) } else { None };
        let recursive = self.skip_name("recursive");
        self.loops += 1;
        let (body, end) = self.block(&["endfor", "else"])?;
        self.loops -= 1;
        let otherwise = if &*end == "else" { self.block_to("endfor")? } else { Vec::new() };
        Ok(Kind::For(Arc::new(For { target, iterable, condition, recursive, body, otherwise })))
    }

    fn set(&mut self) -> Result<Kind> {
        let target = self.target(&[])?;
        if self.skip_op("=") {
            return Ok(Kind::Set(target, self.tuple(true, &[])?));
        }
        let filters = self.filters(false)?;
        Ok(Kind::SetBlock(target, filters, self.block_to("endset")?))
    }

    fn macro_body(&mut self, name: Option<Text>, parameters: Vec<(Text, Option<Expr>)>, end: &str) -> Result<Macro> {
        self.specials.push(Catches::default());
        let loops = std::mem::take(&mut self.loops);
        let body = self.block_to(end);
        self.loops = loops;
        let mut catches = self.specials.pop().unwrap_or_default();
        let has = |name: &str| parameters.iter().any(|(parameter, _)| &**parameter == name);
        catches.caller &= !has("caller");
        catches.varargs &= !has("varargs");
        catches.kwargs &= !has("kwargs");
        Ok(Macro { name, parameters, body: body?, catches })
    }
}
