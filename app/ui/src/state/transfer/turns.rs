//! A tree of messages becomes the turns of a conversation.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use super::{
    super::{Answer, Conversation, Turn, conversation::TurnKey},
    ImportError, LARGEST_FILE, MOST_TURNS,
};

/// What a message adds to a conversation.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said {
    /// A question.
    Question(String),
    /// A part of an answer.
    Answer { reasoning: String, text: String, model: String },
    /// What the model was told before the conversation.
    Instructions(String),
    /// Nothing that is shown, such as a tool's result.
    Nothing,
}

/// A message, and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    pub said: Said,
    pub parent: Option<String>,
    pub children: Vec<String>,
}

/// A conversation's messages, by their ids.
pub(super) type Tree = BTreeMap<String, Node>;

/// Messages of which each names its children, its parent, or both. If none does, each follows the one before it.
pub(super) fn linked(nodes: Vec<(String, Node)>) -> Tree {
    if nodes.iter().all(|(_, node)| node.parent.is_none() && node.children.is_empty()) {
        return row(nodes.into_iter().map(|(_, node)| node.said));
    }
    let listed: BTreeSet<_> =
        nodes.iter().flat_map(|(id, node)| node.children.iter().map(|child| (id.clone(), child.clone()))).collect();
    let named: Vec<_> = nodes.iter().filter_map(|(id, node)| Some((node.parent.clone()?, id.clone()))).collect();
    let mut tree: Tree = nodes.into_iter().collect();
    for (parent, id) in named.into_iter().filter(|link| !listed.contains(link)) {
        if let Some(parent) = tree.get_mut(&parent) {
            parent.children.push(id);
        }
    }
    tree
}

/// Messages one after the other.
pub(super) fn row(said: impl Iterator<Item = Said>) -> Tree {
    let name = |at: usize| format!("{at:08}");
    let mut tree: Tree = said
        .enumerate()
        .map(|(at, said)| (name(at), Node { said, parent: at.checked_sub(1).map(name), children: vec![name(at + 1)] }))
        .collect();
    if let Some(mut last) = tree.last_entry() {
        last.get_mut().children.clear();
    }
    tree
}

/// The turns of a tree: each goes from a question to the message before the next one, or to an end.
#[derive(Default)]
pub(super) struct Turns {
    turns: Vec<Turn>,
    bytes: usize,
    /// What the model was told before the first question.
    pub instructions: Vec<String>,
    /// By the message that a turn ends with.
    ends: BTreeMap<String, TurnKey>,
}

/// A turn that is not complete yet.
#[derive(Clone, Default)]
struct Begun {
    follows: Option<TurnKey>,
    question: Option<String>,
    reasoning: String,
    text: String,
    model: String,
    /// The turn that it is already.
    ended: Option<TurnKey>,
}

impl Begun {
    fn add(&mut self, said: &Said) {
        let append = |to: &mut String, text: &str| {
            if !to.is_empty() && !text.is_empty() {
                to.push_str("\n\n");
            }
            to.push_str(text);
        };
        match said {
            Said::Question(question) => self.question = Some(question.clone()),
            Said::Answer { reasoning, text, model } => {
                if !(reasoning.is_empty() && text.is_empty()) {
                    self.ended = None;
                }
                append(&mut self.reasoning, reasoning);
                append(&mut self.text, text);
                if !model.is_empty() {
                    self.model.clone_from(model);
                }
            }
            Said::Instructions(_) | Said::Nothing => {}
        }
    }
}

impl Turns {
    pub fn of(tree: &Tree) -> Result<Self, ImportError> {
        let mut turns = Self::default();
        let is_root = |node: &&Node| node.parent.as_ref().is_none_or(|parent| !tree.contains_key(parent));
        let roots = tree.iter().filter(|(_, node)| is_root(node)).map(|(id, _)| (id, Rc::default()));
        // The last one is visited first: children are numbered in their order.
        let mut due: Vec<_> = roots.rev().collect();
        let mut visited = BTreeSet::new();
        while let Some((id, begun)) = due.pop() {
            // A damaged tree may have circles.
            let Some(node) = tree.get(id).filter(|_| visited.insert(id)) else { continue };
            let mut begun: Begun = Rc::unwrap_or_clone(begun);
            begun.add(&node.said);
            if let (Said::Instructions(text), None, None) = (&node.said, begun.follows, &begun.question)
                && !text.is_empty()
                && !turns.instructions.contains(text)
            {
                turns.instructions.push(text.clone());
            }
            let is_question = |id: &String| matches!(tree.get(id).map(|node| &node.said), Some(Said::Question(_)));
            let ends = node.children.is_empty() || node.children.iter().any(is_question);
            let key = if ends { turns.end(id, &begun)? } else { None };
            let next = Rc::new(Begun { follows: key.or(begun.follows), ..Begun::default() });
            let on = Rc::new(Begun { ended: key, ..begun });
            for child in node.children.iter().rev() {
                due.push((child, Rc::clone(if is_question(child) { &next } else { &on })));
            }
        }
        if turns.turns.is_empty() { Err(ImportError::Empty) } else { Ok(turns) }
    }

    /// Ends a turn, if a question began it.
    fn end(&mut self, id: &str, begun: &Begun) -> Result<Option<TurnKey>, ImportError> {
        let Some(question) = begun.question.clone() else { return Ok(None) };
        if let Some(key) = begun.ended {
            // Nothing was said since.
            self.ends.insert(id.to_owned(), key);
            return Ok(Some(key));
        }
        if question.is_empty() && begun.text.is_empty() && begun.reasoning.is_empty() {
            return Ok(None);
        }
        // Branches share what they begin with.
        self.bytes += question.len() + begun.text.len() + begun.reasoning.len();
        if self.turns.len() >= MOST_TURNS || self.bytes as u64 > 2 * LARGEST_FILE {
            return Err(ImportError::TooLarge);
        }
        let key = TurnKey(u32::try_from(self.turns.len()).unwrap_or(u32::MAX));
        let Begun { follows, reasoning, text, model, .. } = begun.clone();
        self.turns.push(Turn { key, follows, question, answer: Answer::written(reasoning, text, model) });
        self.ends.insert(id.to_owned(), key);
        Ok(Some(key))
    }

    /// Puts the turns into a conversation; the branch with the message `current` is the chosen one.
    pub fn put_into(self, conversation: &mut Conversation, tree: &Tree, current: Option<String>) {
        let mut at = current;
        let mut steps = 0;
        let chosen = loop {
            let Some(id) = at.filter(|_| steps <= tree.len()) else { break None };
            if let Some(key) = self.ends.get(&id) {
                break Some(*key);
            }
            at = tree.get(&id).and_then(|node| node.parent.clone());
            steps += 1;
        };
        let mut branch = BTreeSet::new();
        let mut next = chosen;
        while let Some(key) = next {
            branch.insert(key);
            // A key is its turn's place.
            next = self.turns.get(key.0 as usize).and_then(|turn| turn.follows);
        }
        (conversation.turns, conversation.aside) = self.turns.into_iter().partition(|turn| branch.contains(&turn.key));
        conversation.go_to_end();
    }
}
