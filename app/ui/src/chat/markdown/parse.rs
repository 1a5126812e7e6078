//! The parser: events of `pulldown-cmark` become blocks and spans.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag};

use super::{Block, Cell, Item, Row, Span, addresses, formulas::Formulas};

/// Levels of nesting that are drawn: what is deeper inside is left as it was written. Everything that walks the blocks calls
/// itself once a level, and a stranger's text must not exhaust the stack; nor would a narrow screen have room for more.
const DEEPEST: usize = 8;

/// Bytes that are parsed. The rest of a longer text is one paragraph as it was written.
const LONGEST: usize = 256 << 10;

/// Cells of all tables up to which short rows are filled: two long rows could make a table of a quarter of a million cells.
const FILLED_CELLS: usize = 4_096;

/// Parses Markdown. Never fails: anything else is text.
#[must_use]
pub fn parse(text: &str) -> Vec<Block> {
    let (text, rest) = text.split_at(text.floor_char_boundary(LONGEST));
    let formulas = Formulas::find(text);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut builder = Builder::new(&formulas);
    for (event, range) in Parser::new_ext(&formulas.marked, options).into_offset_iter() {
        builder.take(event, &formulas.marked[range]);
    }
    let mut blocks = builder.finish();
    if !rest.is_empty() {
        blocks.push(Block::Paragraph(vec![Span::AsWritten(rest.to_owned())]));
    }
    addresses::link(&mut blocks);
    blocks
}

/// An open element.
enum Frame {
    Blocks(Vec<Block>),
    Item(Item),
    Spans(SpanKind, Vec<Span>),
    Code(String, String),
    List(Option<u64>, Vec<Item>),
    /// Which columns are aligned to the end of the line, and the rows, of which the first one is the header.
    Table(Vec<bool>, Vec<Row>),
    Row(Row),
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

impl Frame {
    /// Elements of its kind can lie in each other.
    const fn nests(&self) -> bool {
        use SpanKind::{Emphasis, Link, Strong, Struck};
        matches!(self, Self::Blocks(_) | Self::Item(_) | Self::Spans(Strong | Emphasis | Struck | Link(_), _))
    }
}

struct Builder<'a> {
    formulas: &'a Formulas<'a>,
    /// The root, then all open elements.
    frames: Vec<Frame>,
    /// Open elements within one that is left as it was written, and that one.
    unread: usize,
    /// Cells of all tables.
    cells: usize,
}

impl<'a> Builder<'a> {
    fn new(formulas: &'a Formulas<'a>) -> Self {
        Self { formulas, frames: vec![Frame::Blocks(Vec::new())], unread: 0, cells: 0 }
    }

    fn take(&mut self, event: Event<'_>, source: &str) {
        match event {
            Event::Start(_) if self.unread > 0 => self.unread += 1,
            Event::End(_) if self.unread > 0 => self.unread -= 1,
            _ if self.unread > 0 => {}
            Event::Start(tag) if self.is_too_deep(&tag) => {
                self.unread = 1;
                self.span(Span::AsWritten(self.formulas.restore(source.trim_end())));
            }
            Event::Start(tag) => self.open(tag),
            // Starts and ends are balanced, so the innermost frame ends here.
            Event::End(_) => self.close(),
            Event::Text(text) => self.text(&text),
            Event::Html(html) | Event::InlineHtml(html) => self.html(&html),
            Event::Code(code) => self.span(Span::Code(self.formulas.restore(&code))),
            // Models break lines where they mean it.
            Event::SoftBreak | Event::HardBreak => self.span(Span::Break),
            Event::Rule => self.block(Block::Rule),
            Event::TaskListMarker(done) => self.task(done),
            // Not enabled.
            Event::FootnoteReference(_) | Event::InlineMath(_) | Event::DisplayMath(_) => {}
        }
    }

    fn is_too_deep(&self, tag: &Tag<'_>) -> bool {
        let nests = matches!(
            tag,
            Tag::BlockQuote(_)
                | Tag::List(_)
                | Tag::Strong
                | Tag::Emphasis
                | Tag::Strikethrough
                | Tag::Link { .. }
                | Tag::Image { .. }
        );
        nests && self.frames.iter().filter(|frame| frame.nests()).count() > DEEPEST
    }

    fn open(&mut self, tag: Tag<'_>) {
        let frame = match tag {
            Tag::Heading { level, .. } => Frame::Spans(SpanKind::Heading(depth(level)), Vec::new()),
            Tag::CodeBlock(kind) => Frame::Code(language(&kind), String::new()),
            Tag::List(start) => Frame::List(start, Vec::new()),
            Tag::Item => Frame::Item(Item::default()),
            Tag::BlockQuote(_) => Frame::Blocks(Vec::new()),
            Tag::Table(columns) => {
                Frame::Table(columns.iter().map(|column| *column == Alignment::Right).collect(), Vec::new())
            }
            Tag::TableHead | Tag::TableRow => Frame::Row(Vec::new()),
            Tag::TableCell => Frame::Spans(SpanKind::Cell, Vec::new()),
            Tag::Strong => Frame::Spans(SpanKind::Strong, Vec::new()),
            Tag::Emphasis => Frame::Spans(SpanKind::Emphasis, Vec::new()),
            Tag::Strikethrough => Frame::Spans(SpanKind::Struck, Vec::new()),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                Frame::Spans(SpanKind::Link(self.formulas.restore(&dest_url)), Vec::new())
            }
            _ => Frame::Spans(SpanKind::Paragraph, Vec::new()),
        };
        self.frames.push(frame);
    }

    fn close(&mut self) {
        // The root stays.
        let Some(frame) = (if self.frames.len() > 1 { self.frames.pop() } else { None }) else { return };
        match frame {
            Frame::Spans(kind, spans) => self.close_spans(kind, spans),
            Frame::Row(mut cells) => {
                self.cells += cells.len();
                while self.cells > FILLED_CELLS && cells.last().is_some_and(|cell| cell.spans.is_empty()) {
                    cells.pop();
                }
                if let Some(Frame::Table(_, rows)) = self.frames.last_mut() {
                    rows.push(cells);
                }
            }
            Frame::Table(_, rows) => {
                let mut rows = rows.into_iter();
                self.block(Block::Table { head: rows.next().unwrap_or_default(), rows: rows.collect() });
            }
            Frame::Code(language, text) => {
                let text = self.formulas.restore(text.trim_end_matches('\n'));
                self.block(Block::Code { language, text });
            }
            Frame::List(start, items) => self.block(Block::List { start, items }),
            Frame::Item(item) => {
                if let Some(Frame::List(_, items)) = self.frames.last_mut() {
                    items.push(item);
                }
            }
            Frame::Blocks(blocks) => self.block(Block::Quote(blocks)),
        }
    }

    fn close_spans(&mut self, kind: SpanKind, spans: Vec<Span>) {
        match kind {
            SpanKind::Paragraph if spans.is_empty() => {}
            SpanKind::Paragraph => self.block(Block::Paragraph(spans)),
            SpanKind::Heading(level) => self.block(Block::Heading(level, spans)),
            SpanKind::Strong => self.span(Span::Strong(spans)),
            SpanKind::Emphasis => self.span(Span::Emphasis(spans)),
            SpanKind::Struck => self.span(Span::Struck(spans)),
            SpanKind::Link(address) if addresses::is_web(&address) => self.span(Span::Link(address, spans)),
            SpanKind::Link(_) => spans.into_iter().for_each(|span| self.span(span)),
            SpanKind::Cell => {
                if let [.., Frame::Table(at_end, rows), Frame::Row(cells)] = self.frames.as_mut_slice() {
                    let at_end = at_end.get(cells.len()).copied().unwrap_or(false);
                    cells.push(Cell { is_head: rows.is_empty(), at_end, spans });
                }
            }
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(Frame::Code(_, code)) = self.frames.last_mut() {
            code.push_str(text);
        } else {
            let spans = self.formulas.spans(text);
            spans.into_iter().for_each(|span| self.span(span));
        }
    }

    /// HTML is text, but for line breaks.
    fn html(&mut self, html: &str) {
        let line = html.trim_end_matches(['\r', '\n']);
        let tag = line.trim().trim_start_matches('<').trim_end_matches(['>', '/', ' ']);
        if tag.eq_ignore_ascii_case("br") && line.trim().starts_with('<') {
            return self.span(Span::Break);
        }
        self.text(line);
        if line.len() < html.len() {
            self.span(Span::Break);
        }
    }

    fn task(&mut self, done: bool) {
        if let Some(Frame::Item(item)) = self.frames.iter_mut().rev().find(|frame| matches!(frame, Frame::Item(_))) {
            item.done = Some(done);
        }
    }

    /// Appends an inline element. Items of tight lists and what lies between blocks have no paragraph of their own.
    fn span(&mut self, span: Span) {
        let spans = match self.frames.last_mut() {
            Some(Frame::Spans(_, spans)) => spans,
            Some(Frame::Blocks(blocks) | Frame::Item(Item { blocks, .. })) => {
                if !matches!(blocks.last(), Some(Block::Paragraph(_))) {
                    blocks.push(Block::Paragraph(Vec::new()));
                }
                let Some(Block::Paragraph(spans)) = blocks.last_mut() else { return };
                spans
            }
            _ => return,
        };
        match (spans.last_mut(), span) {
            (Some(Span::Text(last)), Span::Text(text)) => last.push_str(&text),
            (_, span) => spans.push(span),
        }
    }

    fn block(&mut self, block: Block) {
        let blocks = self.frames.iter_mut().rev().find_map(|frame| match frame {
            Frame::Blocks(blocks) | Frame::Item(Item { blocks, .. }) => Some(blocks),
            _ => None,
        });
        if let Some(blocks) = blocks {
            blocks.push(block);
        }
    }

    fn finish(self) -> Vec<Block> {
        match self.frames.into_iter().next() {
            Some(Frame::Blocks(blocks)) => blocks,
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
