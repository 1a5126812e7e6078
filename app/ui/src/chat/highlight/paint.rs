//! Colours code by ranges over its text, which stays one text: a selection in it, and what screen readers know of it, are left alone.

use std::cell::OnceCell;

use wasm_bindgen::{JsCast, prelude::*};
use web_sys::{Element, StaticRange, StaticRangeInit, Text};

use super::{
    Kind,
    grammar::Grammar,
    lexer::{Within, lex},
};
use crate::chat::markdown::Block;

/// What follows this many bytes of code is not highlighted.
const LONGEST_CODE: usize = 200_000;

#[wasm_bindgen]
extern "C" {
    /// The browser's table of highlights; some browsers have none.
    type Registry;

    #[wasm_bindgen(thread_local_v2, js_namespace = CSS, js_name = highlights)]
    static REGISTRY: Option<Registry>;

    #[wasm_bindgen(method)]
    fn set(this: &Registry, name: &str, highlight: &Highlight);

    type Highlight;

    #[wasm_bindgen(constructor, catch)]
    fn new() -> Result<Highlight, JsValue>;

    #[wasm_bindgen(method)]
    fn add(this: &Highlight, range: &StaticRange);

    #[wasm_bindgen(method)]
    fn delete(this: &Highlight, range: &StaticRange);
}

thread_local! {
    static HIGHLIGHTS: OnceCell<Option<Vec<Highlight>>> = const { OnceCell::new() };
}

/// One highlight for each kind, which the page's style sheet colours. None where the browser has none.
fn with_highlights(then: impl FnOnce(&[Highlight])) {
    let register = || {
        REGISTRY.with(|registry| {
            let registry = registry.as_ref()?;
            let registered = Kind::ALL.map(|kind| {
                let highlight = Highlight::new().ok()?;
                registry.set(kind.name(), &highlight);
                Some(highlight)
            });
            registered.into_iter().collect()
        })
    };
    HIGHLIGHTS.with(|highlights| {
        if let Some(highlights) = highlights.get_or_init(register) {
            then(highlights);
        }
    });
}

/// Colours the code of an answer, and takes the colours away when it is dropped.
#[derive(Debug, Default)]
pub struct Painter {
    blocks: Vec<Painted>,
}

/// A block of code.
#[derive(Debug)]
struct Painted {
    node: Text,
    language: String,
    /// What whole lines were coloured: bytes, and the browser's units.
    bytes: usize,
    units: u32,
    within: Within,
    ranges: Vec<(Kind, StaticRange)>,
    /// Of them, those of whole lines. The last line may grow.
    whole: usize,
}

impl Painter {
    /// Colours what was drawn: blocks `now`, which were `before`.
    pub fn paint(&mut self, drawn: &Element, before: &[Block], now: &[Block]) {
        let (before, now) = (codes(before), codes(now));
        if before == now {
            return;
        }
        let Ok(places) = drawn.query_selector_all(".code code") else { return };
        self.blocks.truncate(now.len());
        for (index, (language, text)) in now.iter().enumerate() {
            let place = u32::try_from(index).ok().and_then(|index| places.item(index));
            let Some(node) = place.and_then(|place| place.first_child()).and_then(|node| node.dyn_into::<Text>().ok())
            else {
                // Nothing stands in it yet, so nothing after it either.
                self.blocks.truncate(index);
                return;
            };
            let goes_on = self.blocks.get(index).is_some_and(|painted| {
                painted.node == node
                    && painted.language == *language
                    && before.get(index).is_some_and(|(_, before)| text.starts_with(before))
            });
            if !goes_on {
                let painted = Painted::new(node, language);
                match self.blocks.get_mut(index) {
                    Some(place) => *place = painted,
                    None => self.blocks.push(painted),
                }
            }
            if before.get(index) != Some(&(language, text)) || !goes_on {
                self.blocks[index].go_on(text);
            }
        }
    }
}

impl Painted {
    fn new(node: Text, language: &str) -> Self {
        let language = language.to_owned();
        Self { node, language, bytes: 0, units: 0, within: Within::Nothing, ranges: Vec::new(), whole: 0 }
    }

    /// Colours the lines that are new.
    fn go_on(&mut self, text: &str) {
        let Some(grammar) = Grammar::of(&self.language) else { return };
        self.forget(self.whole);
        while self.bytes < text.len().min(LONGEST_CODE) {
            let rest = &text[self.bytes..];
            let end = rest.find('\n');
            let line = &rest[..end.unwrap_or(rest.len())];
            let (pieces, within) = lex(grammar, line, self.within);
            let mut seen = (0, self.units);
            for (kind, range) in pieces {
                let start = seen.1 + units(&line[seen.0..range.start]);
                let stop = start + units(&line[range.clone()]);
                seen = (range.end, stop);
                self.add(kind, start, stop);
            }
            if end.is_none() {
                return;
            }
            self.bytes += line.len() + 1;
            self.units = seen.1 + units(&line[seen.0..]) + 1;
            self.within = within;
            self.whole = self.ranges.len();
        }
    }

    fn add(&mut self, kind: Kind, start: u32, end: u32) {
        let Ok(range) = StaticRange::new(&StaticRangeInit::new(&self.node, end, &self.node, start)) else { return };
        with_highlights(|highlights| highlights[kind as usize].add(&range));
        self.ranges.push((kind, range));
    }

    /// Takes all colours away but for those of the first `kept` pieces.
    fn forget(&mut self, kept: usize) {
        with_highlights(|highlights| {
            for (kind, range) in self.ranges.drain(kept..) {
                highlights[kind as usize].delete(&range);
            }
        });
    }
}

impl Drop for Painted {
    fn drop(&mut self) {
        self.forget(0);
    }
}

/// Language and text of each block of code, in the order in which they are shown.
fn codes(blocks: &[Block]) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    collect(blocks, &mut found);
    found
}

fn collect<'a>(blocks: &'a [Block], into: &mut Vec<(&'a str, &'a str)>) {
    for block in blocks {
        match block {
            Block::Code { language, text } => into.push((language, text)),
            Block::List { items, .. } => items.iter().for_each(|item| collect(&item.blocks, into)),
            Block::Quote(blocks) => collect(blocks, into),
            Block::Paragraph(_) | Block::Heading(..) | Block::Table { .. } | Block::Rule => {}
        }
    }
}

/// In the units of the browser's texts.
fn units(text: &str) -> u32 {
    u32::try_from(text.encode_utf16().count()).unwrap_or(u32::MAX)
}
