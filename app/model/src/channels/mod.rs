//! The channels of an answer: what of a model's text is reasoning, what the answer, what a call of a function.
//!
//! [`Channels`] are the markers of a model, found in its vocabulary and its template (`table`), or else in what the template
//! makes of reasoning (`infer`). A [`ChannelParser`] reads an answer token by token. A marker that is a token of the vocabulary is known by
//! its id, so the same letters in a text are text; other markers are text, and count only where such a part may begin or
//! end. So do tags that are tokens for text (`<think>` of Qwen3): a model that quotes them writes these tokens as well.

mod infer;
mod parser;
mod table;

use std::sync::Arc;

use potluck_plan::Channel;
use rustc_hash::{FxHashMap, FxHashSet};

pub use parser::ChannelParser;

use crate::{ChatTemplate, TokenKind, Tokenizer};
use table::{ANSWER, HEADERS, HeaderMarker, Headers, REASONING};
pub(crate) use table::{TOOL_CALLS, Tags, tags};

/// A pair of markers.
#[derive(Clone, Debug)]
struct Pair {
    channel: Channel,
    open: Marker,
    close: Marker,
}

#[derive(Clone, Debug, Default)]
struct Marker {
    text: String,
    /// Looked for in text, because no special token stands for it.
    is_text: bool,
}

impl Marker {
    /// Models quote tags, but hardly a marker with bars.
    fn is_tag(&self) -> bool {
        !self.text.contains(['|', '｜'])
    }
}

/// What a token does.
#[derive(Clone, Copy, Debug)]
enum Act {
    Header(HeaderMarker),
    /// The pair of this index begins.
    Open(usize),
    /// The pair of this index ends, or another one with the same end.
    Close(usize),
}

/// The markers of a model. The default: none, so that a text is shown as it is.
#[derive(Clone, Debug, Default)]
pub struct Channels {
    by_id: FxHashMap<u32, Act>,
    pairs: Vec<Pair>,
    headers: Option<&'static Headers>,
    /// The pair around reasoning by which this model's answers are continued.
    reasoning: Option<usize>,
}

impl Channels {
    /// Tokens that are markers.
    pub fn markers(&self) -> impl Iterator<Item = u32> {
        self.by_id.keys().copied()
    }

    /// The markers of a model with this vocabulary and template.
    pub fn new(tokenizer: &Tokenizer, template: &ChatTemplate) -> Arc<Self> {
        let ids = TokenIds::new(tokenizer);
        let mut all = Self::default();
        all.headers = HEADERS.iter().find(|format| format.markers.iter().all(|(name, _)| ids.is_special(name)));
        for &(name, marker) in all.headers.map_or(&[][..], |format| format.markers) {
            all.by_id.extend(ids.of(name).map(|id| (id, Act::Header(marker))));
        }
        let source = template.source();
        let usual = &REASONING[0];
        let is_known = |tags: &&Tags| ids.is_special(tags.open) || ids.is_special(tags.close) || tags.is_in(source);
        let known: Vec<&Tags> = REASONING.iter().filter(is_known).collect();
        // Those that are in the template are the model's own; a vocabulary may have others as well.
        let own = known.iter().find(|tags| tags.is_in(source)).or(known.first());
        let inferred = if own.is_none() && all.headers.is_none() { infer::reasoning(template) } else { None };
        let own = own.map(|tags| (tags.open.to_owned(), tags.close.to_owned())).or(inferred);
        if let Some((open, close)) = own.clone() {
            all.reasoning = Some(all.pairs.len());
            all.add(Channel::Reasoning, &open, &close, &ids);
        }
        let others = known.into_iter().chain([usual]).filter(|tags| own.as_ref().is_none_or(|own| own.0 != tags.open));
        for tags in others {
            all.add(Channel::Reasoning, tags.open, tags.close, &ids);
        }
        if all.headers.is_none() {
            all.reasoning = all.reasoning.or(all.pairs.iter().position(|pair| pair.open.text == usual.open));
        }
        for (channel, table) in [(Channel::Answer, &ANSWER[..]), (Channel::ToolCall, &TOOL_CALLS[..])] {
            for tags in table.iter().filter(is_known) {
                all.add(channel, tags.open, tags.close, &ids);
            }
        }
        Arc::new(all)
    }

    fn add(&mut self, channel: Channel, open: &str, close: &str, ids: &TokenIds) {
        let index = self.pairs.len();
        for id in ids.of(open) {
            self.by_id.entry(id).or_insert(Act::Open(index));
        }
        for id in ids.of(close) {
            self.by_id.entry(id).or_insert(Act::Close(index));
        }
        let marker = |text: &str| Marker { text: text.to_owned(), is_text: !text.is_empty() && !ids.is_special(text) };
        self.pairs.push(Pair { channel, open: marker(open), close: marker(close) });
    }

    /// The pair of an answer that begins with what ends this pair.
    fn after(&self, index: usize) -> Option<usize> {
        let end = &self.pairs[index].close.text;
        self.pairs.iter().position(|pair| pair.channel == Channel::Answer && pair.open.text == *end)
    }

    /// The pair with whose opening marker a prompt ends.
    fn opened_by(&self, prompt: &str) -> Option<usize> {
        let written = prompt.trim_end();
        self.pairs.iter().position(|pair| pair.channel != Channel::ToolCall && written.ends_with(&pair.open.text))
    }

    /// What goes in front of reasoning, between it and the answer, and in front of an answer without it, behind this prompt.
    pub(crate) fn seams(&self, prompt: &str) -> Seams {
        let opened =
            self.opened_by(prompt).map(|index| &self.pairs[index]).filter(|pair| pair.channel == Channel::Reasoning);
        if let (Some(format), None) = (self.headers, opened) {
            let [reasoning, between, answer] = [format.reasoning, format.between, format.answer].map(str::to_owned);
            return Seams { reasoning, between, answer };
        }
        let Some(Pair { open, close, .. }) = opened.or(self.reasoning.map(|index| &self.pairs[index])) else {
            return Seams::default();
        };
        let between = format!("\n{}\n\n", close.text);
        match opened {
            Some(_) => Seams { reasoning: String::new(), answer: between.trim_start().to_owned(), between },
            None => Seams { reasoning: format!("{}\n", open.text), between, answer: String::new() },
        }
    }
}

/// What is written around the parts of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seams {
    pub reasoning: String,
    pub between: String,
    pub answer: String,
}

impl Tags {
    fn is_in(&self, template: &str) -> bool {
        template.contains(self.open) || !self.close.is_empty() && template.contains(self.close)
    }
}

/// The tokens that may be markers as a whole, by their text, whatever their kind: files are often wrong about it.
struct TokenIds {
    ids: FxHashMap<Vec<u8>, Vec<u32>>,
    special: FxHashSet<Vec<u8>>,
}

impl TokenIds {
    fn new(tokenizer: &Tokenizer) -> Self {
        let mut all = Self { ids: FxHashMap::default(), special: FxHashSet::default() };
        for id in 0..tokenizer.len() as u32 {
            let piece = tokenizer.piece(id);
            // The first bytes of `<`, `[` and `◁`.
            if piece.len() > 2 && matches!(piece[0], b'<' | b'[' | 0xe2) {
                if tokenizer.kind(id) != Some(TokenKind::Normal) {
                    all.special.insert(piece.to_vec());
                }
                all.ids.entry(piece.to_vec()).or_default().push(id);
            }
        }
        all
    }

    fn of(&self, marker: &str) -> impl Iterator<Item = u32> + use<> {
        self.ids.get(marker.as_bytes()).cloned().unwrap_or_default().into_iter()
    }

    /// A token stands for it that no other text is split into.
    fn is_special(&self, marker: &str) -> bool {
        self.special.contains(marker.as_bytes())
    }
}
