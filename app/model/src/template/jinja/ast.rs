//! What a template consists of, with the names of Jinja2's nodes.

use std::sync::Arc;

/// A name or a text.
pub(super) type Text = Arc<str>;

pub(super) enum Expr {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Text),
    Name(Text),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    /// `value if condition else other`.
    Cond(Box<[Expr; 2]>, Option<Box<Expr>>),
    Or(Box<[Expr; 2]>),
    And(Box<[Expr; 2]>),
    Not(Box<Expr>),
    Compare(Box<Expr>, Vec<(Comparison, Expr)>),
    Binary(Operator, Box<[Expr; 2]>),
    /// `~`.
    Concat(Vec<Expr>),
    Neg(Box<Expr>),
    Pos(Box<Expr>),
    Attribute(Box<Expr>, Text),
    Item(Box<[Expr; 2]>),
    Slice(Box<Expr>, Box<[Option<Expr>; 3]>),
    Call(Box<Call>),
    Filter(Box<Filter>),
    Test(Box<Expr>, Box<Filter>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
    NotIn,
}

pub(super) struct Call {
    pub callee: Expr,
    pub arguments: Arguments,
}

#[derive(Default)]
pub(super) struct Arguments {
    pub positional: Vec<Expr>,
    pub named: Vec<(Text, Expr)>,
    /// `*expression`.
    pub rest: Option<Expr>,
    /// `**expression`.
    pub rest_named: Option<Expr>,
}

/// A filter, or a test with its arguments.
pub(super) struct Filter {
    /// What it is applied to; absent in a filter block.
    pub value: Option<Expr>,
    pub name: Text,
    pub arguments: Arguments,
}

pub(super) enum Target {
    Name(Text),
    /// An attribute of a namespace.
    Attribute(Text, Text),
    Tuple(Vec<Target>),
}

pub(super) struct Statement {
    pub line: usize,
    pub kind: Kind,
}

pub(super) enum Kind {
    Data(Text),
    Output(Expr),
    /// The branches, the last one without a condition if there is an `else`.
    If(Vec<(Option<Expr>, Vec<Statement>)>),
    For(Arc<For>),
    Set(Target, Expr),
    SetBlock(Target, Vec<Filter>, Vec<Statement>),
    With(Vec<(Target, Expr)>, Vec<Statement>),
    Macro(Arc<Macro>),
    CallBlock(Arc<Macro>, Box<Call>),
    FilterBlock(Vec<Filter>, Vec<Statement>),
    /// What has a scope of its own: `generation`, `autoescape`.
    Scope(Vec<Statement>),
    /// A named block, which sees the variables of the template only.
    Block(Vec<Statement>),
    Break,
    Continue,
    /// A tag that loads another template, of which there is none.
    Load,
}

pub(super) struct For {
    pub target: Target,
    pub iterable: Expr,
    pub condition: Option<Expr>,
    pub recursive: bool,
    pub body: Vec<Statement>,
    pub otherwise: Vec<Statement>,
}

pub(super) struct Macro {
    /// Absent for the body of a call block.
    pub name: Option<Text>,
    pub parameters: Vec<(Text, Option<Expr>)>,
    pub body: Vec<Statement>,
    pub catches: Catches,
}

/// Which of the special variables a macro's body reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Catches {
    pub caller: bool,
    pub varargs: bool,
    pub kwargs: bool,
}
