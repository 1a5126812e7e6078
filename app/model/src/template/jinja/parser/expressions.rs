//! Expressions, from those that bind least to those that bind most: a function for each row of operators.

use super::Parser;
use crate::template::jinja::Result;
use crate::template::jinja::ast::{Comparison, Expr, Operator};
use crate::template::jinja::lexer::Token;

impl Parser {
    /// An expression, or several with commas between them.
    pub(super) fn tuple(&mut self, conditional: bool, ends: &[&str]) -> Result<Expr> {
        let (mut items, is_tuple) = self.items(conditional, ends)?;
        match items.pop() {
            None => self.unexpected("an expression"),
            Some(only) if !is_tuple => Ok(only),
            Some(last) => {
                items.push(last);
                Ok(Expr::Tuple(items))
            }
        }
    }

    pub(super) fn items(&mut self, conditional: bool, ends: &[&str]) -> Result<(Vec<Expr>, bool)> {
        let mut items = Vec::new();
        let mut is_tuple = false;
        loop {
            let is_end = matches!(self.peek(), None | Some(Token::BlockEnd | Token::VariableEnd))
                || self.is_op(")")
                || ends.iter().any(|end| self.is_name(end));
            if is_end {
                break;
            }
            items.push(if conditional { self.expression()? } else { self.deeper(Self::or)? });
            if !self.skip_op(",") {
                break;
            }
            is_tuple = true;
        }
        Ok((items, is_tuple))
    }

    pub(super) fn expression(&mut self) -> Result<Expr> {
        self.deeper(Self::conditional)
    }

    fn conditional(&mut self) -> Result<Expr> {
        let mut value = self.or()?;
        while self.skip_name("if") {
            let condition = self.beside(Self::or)?;
            let other = if self.skip_name("else") { Some(Box::new(self.expression()?)) } else { None };
            value = Expr::Cond(Box::new([condition, value]), other);
            self.taller()?;
        }
        Ok(value)
    }

    fn or(&mut self) -> Result<Expr> {
        let mut left = self.and()?;
        while self.skip_name("or") {
            left = Expr::Or(Box::new([left, self.beside(Self::and)?]));
            self.taller()?;
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr> {
        let mut left = self.not()?;
        while self.skip_name("and") {
            left = Expr::And(Box::new([left, self.beside(Self::not)?]));
            self.taller()?;
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr> {
        if self.skip_name("not") {
            return Ok(Expr::Not(Box::new(self.deeper(Self::not)?)));
        }
        self.compare()
    }

    fn compare(&mut self) -> Result<Expr> {
        let first = self.sum()?;
        let mut rest = Vec::new();
        loop {
            let comparison = match self.peek() {
                Some(Token::Op("==")) => Comparison::Eq,
                Some(Token::Op("!=")) => Comparison::Ne,
                Some(Token::Op("<")) => Comparison::Lt,
                Some(Token::Op("<=")) => Comparison::Le,
                Some(Token::Op(">")) => Comparison::Gt,
                Some(Token::Op(">=")) => Comparison::Ge,
                Some(Token::Name(name)) if &**name == "in" => Comparison::In,
                Some(Token::Name(name)) if &**name == "not" && self.is_name_at(self.at + 1, "in") => {
                    self.at += 1;
                    Comparison::NotIn
                }
                _ => break,
            };
            self.at += 1;
            rest.push((comparison, self.beside(Self::sum)?));
        }
        if !rest.is_empty() {
            self.taller()?;
        }
        Ok(if rest.is_empty() { first } else { Expr::Compare(Box::new(first), rest) })
    }

    fn binary(
        &mut self,
        operators: &[(&'static str, Operator)],
        operand: fn(&mut Self) -> Result<Expr>,
    ) -> Result<Expr> {
        let mut left = operand(self)?;
        while let Some((_, operator)) = operators.iter().find(|(text, _)| self.is_op(text)) {
            self.at += 1;
            left = Expr::Binary(*operator, Box::new([left, self.beside(operand)?]));
            self.taller()?;
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<Expr> {
        self.binary(&[("+", Operator::Add), ("-", Operator::Sub)], Self::concat)
    }

    fn concat(&mut self) -> Result<Expr> {
        let first = self.product()?;
        if !self.is_op("~") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.skip_op("~") {
            parts.push(self.beside(Self::product)?);
        }
        self.taller()?;
        Ok(Expr::Concat(parts))
    }

    fn product(&mut self) -> Result<Expr> {
        let operators = [("*", Operator::Mul), ("/", Operator::Div), ("//", Operator::FloorDiv), ("%", Operator::Mod)];
        self.binary(&operators, Self::power)
    }

    fn power(&mut self) -> Result<Expr> {
        self.binary(&[("**", Operator::Pow)], |parser| parser.unary(true))
    }

    fn unary(&mut self, with_filters: bool) -> Result<Expr> {
        let value = if self.skip_op("-") {
            Expr::Neg(Box::new(self.deeper(|parser| parser.unary(false))?))
        } else if self.skip_op("+") {
            Expr::Pos(Box::new(self.deeper(|parser| parser.unary(false))?))
        } else {
            self.primary()?
        };
        let value = self.postfix(value)?;
        if with_filters { self.filtered(value) } else { Ok(value) }
    }
}
