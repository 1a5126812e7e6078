//! Markdown as data: a model's text becomes blocks and spans, never HTML. Raw HTML stays visible as text.

pub(crate) mod addresses;
mod formulas;
mod nesting;
mod parse;
#[cfg(test)]
mod tests;
mod titles;

pub use parse::parse;

/// A block of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// A paragraph.
    Paragraph(Vec<Span>),
    /// A heading of level 1 to 6.
    Heading(u8, Vec<Span>),
    /// Code, with its language if given.
    Code {
        /// "rust", or empty.
        language: String,
        /// The code.
        text: String,
    },
    /// A list; numbered if it has a first number.
    List {
        /// First number of a numbered list.
        start: Option<u64>,
        /// Items.
        items: Vec<Item>,
    },
    /// A quotation.
    Quote(Vec<Block>),
    /// A table.
    Table {
        /// Its header.
        head: Row,
        /// The rows below.
        rows: Vec<Row>,
    },
    /// A rule.
    Rule,
}

/// An item of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// The item is a task, done or not.
    pub done: Option<bool>,
    /// What it says.
    pub blocks: Vec<Block>,
}

/// A row of a table.
pub type Row = Vec<Cell>;

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// It belongs to the header.
    pub is_head: bool,
    /// Its column is aligned to the end of the line.
    pub at_end: bool,
    /// What it says.
    pub spans: Vec<Span>,
}

/// An inline element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// Plain text.
    Text(String),
    /// Text as it was written, with its lines: what is nested too deeply, and formulas beyond the limit.
    AsWritten(String),
    /// A formula with its marks, `$a$`.
    Formula(String),
    /// Code.
    Code(String),
    /// Strong.
    Strong(Vec<Span>),
    /// Emphasized.
    Emphasis(Vec<Span>),
    /// Struck out.
    Struck(Vec<Span>),
    /// A link to an `http` or `https` address; other links become plain text.
    Link(String, Vec<Span>),
    /// A line break.
    Break,
}

/// The text of blocks as a screen reader says it: each block, row and line on a line of its own.
#[must_use]
pub fn plain_text(blocks: &[Block]) -> String {
    let mut text = String::new();
    blocks.iter().for_each(|block| say_block(block, &mut text));
    text
}

fn say_block(block: &Block, text: &mut String) {
    match block {
        Block::Paragraph(spans) | Block::Heading(_, spans) => say_line(spans, text),
        Block::Code { text: code, .. } => {
            text.push_str(code);
            text.push('\n');
        }
        Block::List { items, .. } => {
            items.iter().flat_map(|item| &item.blocks).for_each(|block| say_block(block, text))
        }
        Block::Quote(blocks) => blocks.iter().for_each(|block| say_block(block, text)),
        Block::Table { head, rows } => {
            head.iter().chain(rows.iter().flatten()).for_each(|cell| say_line(&cell.spans, text));
        }
        Block::Rule => {}
    }
}

fn say_line(spans: &[Span], text: &mut String) {
    say_spans(spans, text);
    text.push('\n');
}

fn say_spans(spans: &[Span], text: &mut String) {
    for span in spans {
        match span {
            Span::Text(words) | Span::AsWritten(words) | Span::Formula(words) | Span::Code(words) => {
                text.push_str(words)
            }
            Span::Strong(inner) | Span::Emphasis(inner) | Span::Struck(inner) | Span::Link(_, inner) => {
                say_spans(inner, text);
            }
            Span::Break => text.push('\n'),
        }
    }
}
