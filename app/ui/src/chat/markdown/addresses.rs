//! Bare addresses in a text become links.

use linkify::{LinkFinder, LinkKind};

use super::{Block, Span};

/// Makes links of all `http` and `https` addresses that stand in plain text.
pub fn link(blocks: &mut [Block]) {
    for block in blocks {
        match block {
            Block::Paragraph(spans) | Block::Heading(_, spans) => link_spans(spans),
            Block::List { items, .. } => items.iter_mut().for_each(|item| link(&mut item.blocks)),
            Block::Quote(blocks) => link(blocks),
            Block::Table { head, rows } => {
                head.iter_mut().chain(rows.iter_mut().flatten()).for_each(|cell| link_spans(&mut cell.spans));
            }
            Block::Code { .. } | Block::Rule => {}
        }
    }
}

fn link_spans(spans: &mut Vec<Span>) {
    for span in spans.iter_mut() {
        if let Span::Strong(inner) | Span::Emphasis(inner) | Span::Struck(inner) = span {
            link_spans(inner);
        }
    }
    if spans.iter().any(|span| matches!(span, Span::Text(text) if text.contains("://"))) {
        *spans = std::mem::take(spans).into_iter().flat_map(split).collect();
    }
}

fn split(span: Span) -> Vec<Span> {
    let Span::Text(text) = span else { return vec![span] };
    let mut finder = LinkFinder::new();
    finder.kinds(&[LinkKind::Url]);
    let mut spans = Vec::new();
    for part in finder.spans(&text) {
        let words = part.as_str();
        if part.kind().is_none() || !is_web(words) {
            spans.push(Span::Text(words.to_owned()));
            continue;
        }
        let (address, rest) = words.split_at(words.find(is_wide_mark).unwrap_or(words.len()));
        spans.push(Span::Link(address.to_owned(), vec![Span::Text(address.to_owned())]));
        if !rest.is_empty() {
            spans.push(Span::Text(rest.to_owned()));
        }
    }
    spans
}

/// Punctuation of East Asia, which ends an address without a blank.
fn is_wide_mark(letter: char) -> bool {
    matches!(letter, '\u{3000}'..='\u{303F}' | '\u{FF00}'..='\u{FFEF}')
}

/// An address that a link may lead to.
pub fn is_web(address: &str) -> bool {
    let begins_with =
        |scheme: &str| address.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    begins_with("https://") || begins_with("http://")
}
