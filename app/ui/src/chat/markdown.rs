//! Markdown as data: a model's text becomes blocks and spans, never HTML. Raw HTML stays visible as text.

use std::hash::{DefaultHasher, Hash, Hasher};

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// A block of text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
        items: Vec<Vec<Block>>,
    },
    /// A quotation.
    Quote(Vec<Block>),
    /// A table; the first row is the header.
    Table {
        /// Columns that are right-aligned.
        right: Vec<bool>,
        /// Rows of cells.
        rows: Vec<Vec<Vec<Span>>>,
    },
    /// A rule.
    Rule,
}

/// An inline element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Span {
    /// Plain text.
    Text(String),
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

impl Block {
    /// A hash that is equal for equal blocks, so that streaming does not redraw unchanged blocks.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// Parses Markdown. Never fails: anything else is text.
#[must_use]
pub fn parse(text: &str) -> Vec<Block> {
    let mut builder = Builder::default();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        builder.take(event);
    }
    builder.finish()
}

/// An open element.
enum Frame {
    Blocks(BlockKind, Vec<Block>),
    Spans(SpanKind, Vec<Span>),
    Code(String, String),
    List(Option<u64>, Vec<Vec<Block>>),
    Table(Vec<bool>, Vec<Vec<Vec<Span>>>),
    Row(Vec<Vec<Span>>),
}

enum BlockKind {
    Root,
    Item,
    Quote,
}

enum SpanKind {
    Paragraph,
    Heading(u8),
    Strong,
    Emphasis,
    Struck,
    Link(String),
    Cell,
}

struct Builder {
    frames: Vec<Frame>,
}

impl Default for Builder {
    fn default() -> Self {
        Self { frames: vec![Frame::Blocks(BlockKind::Root, Vec::new())] }
    }
}

impl Builder {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.open(tag),
            Event::End(tag) => self.close(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::Code(code) => self.span(Span::Code(code.into_string())),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.span(Span::Break),
            Event::Rule => self.block(Block::Rule),
            // Not enabled: footnotes, task lists, mathematics.
            Event::FootnoteReference(_) | Event::TaskListMarker(_) | Event::InlineMath(_) | Event::DisplayMath(_) => {}
        }
    }

    fn open(&mut self, tag: Tag<'_>) {
        let frame = match tag {
            Tag::Heading { level, .. } => Frame::Spans(SpanKind::Heading(depth(level)), Vec::new()),
            Tag::CodeBlock(kind) => Frame::Code(language(&kind), String::new()),
            Tag::List(start) => Frame::List(start, Vec::new()),
            Tag::Item => Frame::Blocks(BlockKind::Item, Vec::new()),
            Tag::BlockQuote(_) => Frame::Blocks(BlockKind::Quote, Vec::new()),
            Tag::Table(columns) => {
                Frame::Table(columns.iter().map(|column| *column == Alignment::Right).collect(), Vec::new())
            }
            Tag::TableHead | Tag::TableRow => Frame::Row(Vec::new()),
            Tag::TableCell => Frame::Spans(SpanKind::Cell, Vec::new()),
            Tag::Strong => Frame::Spans(SpanKind::Strong, Vec::new()),
            Tag::Emphasis => Frame::Spans(SpanKind::Emphasis, Vec::new()),
            Tag::Strikethrough => Frame::Spans(SpanKind::Struck, Vec::new()),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                Frame::Spans(SpanKind::Link(dest_url.into_string()), Vec::new())
            }
            _ => Frame::Spans(SpanKind::Paragraph, Vec::new()),
        };
        self.frames.push(frame);
    }

    fn close(&mut self, _tag: TagEnd) {
        // Starts and ends are balanced, so the innermost frame ends here; the root stays.
        if self.frames.len() < 2 {
            return;
        }
        let Some(frame) = self.frames.pop() else { return };
        match frame {
            Frame::Spans(SpanKind::Paragraph, spans) => {
                if !spans.is_empty() {
                    self.block(Block::Paragraph(spans));
                }
            }
            Frame::Spans(SpanKind::Heading(level), spans) => self.block(Block::Heading(level, spans)),
            Frame::Spans(SpanKind::Strong, spans) => self.span(Span::Strong(spans)),
            Frame::Spans(SpanKind::Emphasis, spans) => self.span(Span::Emphasis(spans)),
            Frame::Spans(SpanKind::Struck, spans) => self.span(Span::Struck(spans)),
            Frame::Spans(SpanKind::Link(address), spans) => {
                let safe = address.starts_with("https://") || address.starts_with("http://");
                if safe {
                    self.span(Span::Link(address, spans));
                } else {
                    spans.into_iter().for_each(|span| self.span(span));
                }
            }
            Frame::Spans(SpanKind::Cell, spans) => {
                if let Some(Frame::Row(cells)) = self.frames.last_mut() {
                    cells.push(spans);
                }
            }
            Frame::Row(cells) => {
                if let Some(Frame::Table(_, rows)) = self.frames.last_mut() {
                    rows.push(cells);
                }
            }
            Frame::Table(right, rows) => self.block(Block::Table { right, rows }),
            Frame::Code(language, text) => {
                self.block(Block::Code { language, text: text.trim_end_matches('\n').to_owned() });
            }
            Frame::List(start, items) => self.block(Block::List { start, items }),
            Frame::Blocks(BlockKind::Item, blocks) => {
                if let Some(Frame::List(_, items)) = self.frames.last_mut() {
                    items.push(blocks);
                }
            }
            Frame::Blocks(BlockKind::Quote, blocks) => self.block(Block::Quote(blocks)),
            Frame::Blocks(BlockKind::Root, _) => {}
        }
    }

    fn text(&mut self, text: &str) {
        match self.frames.last_mut() {
            Some(Frame::Code(_, code)) => code.push_str(text),
            Some(Frame::Spans(_, spans)) => match spans.last_mut() {
                Some(Span::Text(last)) => last.push_str(text),
                _ => spans.push(Span::Text(text.to_owned())),
            },
            // Items of tight lists and HTML blocks have no paragraph of their own.
            _ => self.span(Span::Text(text.to_owned())),
        }
    }

    fn span(&mut self, span: Span) {
        match self.frames.last_mut() {
            Some(Frame::Spans(_, spans)) => spans.push(span),
            Some(Frame::Blocks(_, blocks)) => match blocks.last_mut() {
                Some(Block::Paragraph(spans)) => spans.push(span),
                _ => blocks.push(Block::Paragraph(vec![span])),
            },
            _ => {}
        }
    }

    fn block(&mut self, block: Block) {
        if let Some(Frame::Blocks(_, blocks)) =
            self.frames.iter_mut().rev().find(|frame| matches!(frame, Frame::Blocks(..)))
        {
            blocks.push(block);
        }
    }

    fn finish(mut self) -> Vec<Block> {
        match self.frames.drain(..).next() {
            Some(Frame::Blocks(_, blocks)) => blocks,
            _ => Vec::new(),
        }
    }
}

const fn depth(level: HeadingLevel) -> u8 {
    level as u8
}

/// The first word after the fence, if it looks like the name of a language.
fn language(kind: &CodeBlockKind<'_>) -> String {
    let CodeBlockKind::Fenced(info) = kind else { return String::new() };
    let word = info.split([' ', ',', '{']).next().unwrap_or_default();
    let plausible = word.len() <= 24 && word.chars().all(|letter| letter.is_ascii_graphic());
    if plausible { word.to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Span {
        Span::Text(text.into())
    }

    #[test]
    fn paragraphs_and_emphasis() {
        assert_eq!(
            parse("Hello **you**\nthere"),
            vec![Block::Paragraph(vec![text("Hello "), Span::Strong(vec![text("you")]), text(" there"),])]
        );
    }

    #[test]
    fn code_keeps_its_language_and_its_lines_even_unfinished() {
        let code = |source| vec![Block::Code { language: "rust".into(), text: String::from(source) }];
        assert_eq!(parse("```rust\nfn main() {}\n\nlet x;\n```"), code("fn main() {}\n\nlet x;"));
        assert_eq!(parse("```rust\nfn main("), code("fn main("));
    }

    #[test]
    fn html_is_never_more_than_text() {
        assert_eq!(parse("a <b>c</b>"), vec![Block::Paragraph(vec![text("a <b>c</b>")])]);
        assert_eq!(parse("<script>x</script>"), vec![Block::Paragraph(vec![text("<script>x</script>")])]);
    }

    #[test]
    fn links_lead_to_the_web_only() {
        assert_eq!(parse("[a](javascript:x)"), vec![Block::Paragraph(vec![text("a")])]);
        assert_eq!(
            parse("[a](https://example.org)"),
            vec![Block::Paragraph(vec![Span::Link("https://example.org".into(), vec![text("a")])])]
        );
    }

    #[test]
    fn lists_nest_and_count() {
        let inner = Block::List { start: None, items: vec![vec![Block::Paragraph(vec![text("b")])]] };
        assert_eq!(
            parse("3. a\n   - b\n4. c"),
            vec![Block::List {
                start: Some(3),
                items: vec![vec![Block::Paragraph(vec![text("a")]), inner], vec![Block::Paragraph(vec![text("c")])]],
            }]
        );
    }

    #[test]
    fn tables_have_rows_and_columns() {
        assert_eq!(
            parse("| a | b |\n|---|--:|\n| 1 | 2 |"),
            vec![Block::Table {
                right: vec![false, true],
                rows: vec![vec![vec![text("a")], vec![text("b")]], vec![vec![text("1")], vec![text("2")]]],
            }]
        );
    }

    #[test]
    fn unchanged_blocks_keep_their_fingerprint_while_text_streams() {
        let (before, after) = (parse("One.\n\nTw"), parse("One.\n\nTwo"));
        assert_eq!(before[0].fingerprint(), after[0].fingerprint());
        assert_ne!(before[1].fingerprint(), after[1].fingerprint());
    }
}
