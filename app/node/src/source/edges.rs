//! Groups at the ends of reads. Pieces of a model are checked in whole groups of 64 KiB, so neighbouring pieces (small
//! tensors, slices of experts) need the same group: it is fetched by the first and shared with the others, also while it
//! is still on its way.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::Shared;

use crate::hashes::GROUP_BYTES;

/// Groups that are remembered: 8 MiB.
const MOST: usize = 128;

/// A checked group, or one on its way; canceled if its fetch failed.
pub type Group = Shared<oneshot::Receiver<std::rc::Rc<[u8]>>>;

/// The end groups of recent reads of one file.
#[derive(Default)]
pub struct Edges {
    known: RefCell<(HashMap<u64, Group>, VecDeque<u64>)>,
}

/// A promise to fetch a group.
pub struct Promise {
    index: u64,
    sender: oneshot::Sender<std::rc::Rc<[u8]>>,
}

/// What to do about a group.
pub enum Edge {
    /// Somebody has it, or fetches it now.
    Known(Group),
    /// Nobody: the caller fetches it and keeps the promise.
    Ours(Promise),
}

impl Edges {
    /// Looks a group up, by its index in the file.
    pub fn look(&self, index: u64) -> Edge {
        let (known, order) = &mut *self.known.borrow_mut();
        match known.get(&index).filter(|group| !matches!(group.peek(), Some(Err(_)))) {
            Some(group) => Edge::Known(group.clone()),
            None => {
                let (sender, receiver) = oneshot::channel();
                if known.insert(index, receiver.shared()).is_none() {
                    order.push_back(index);
                }
                while order.len() > MOST {
                    if let Some(oldest) = order.pop_front() {
                        known.remove(&oldest);
                    }
                }
                Edge::Ours(Promise { index, sender })
            }
        }
    }
}

impl Edge {
    /// Keeps a promise of ours with the checked bytes that start at `start` in the file; gives what is to be waited for.
    pub fn keep(self, start: u64, bytes: &[u8]) -> Option<Group> {
        match self {
            Self::Known(group) => Some(group),
            Self::Ours(promise) => {
                promise.keep(start, bytes);
                None
            }
        }
    }
}

impl Promise {
    fn keep(self, start: u64, bytes: &[u8]) {
        let from = (self.index * GROUP_BYTES).saturating_sub(start) as usize;
        let to = bytes.len().min(from + GROUP_BYTES as usize);
        if let Some(group) = bytes.get(from..to) {
            // Nobody may be waiting.
            let _ = self.sender.send(group.into());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use futures::executor::block_on;

    #[test]
    fn the_first_fetches_and_the_others_share() {
        let edges = Edges::default();
        let Edge::Ours(promise) = edges.look(3) else { panic!("nobody has it yet") };
        let Edge::Known(waiting) = edges.look(3) else { panic!("it is on its way") };
        let mut bytes = vec![1; GROUP_BYTES as usize];
        bytes.extend([2; 10]);
        promise.keep(2 * GROUP_BYTES, &bytes);
        assert_eq!(*block_on(waiting).unwrap(), [2; 10]);
    }

    #[test]
    fn a_failed_fetch_is_taken_over_and_old_groups_are_forgotten() {
        let edges = Edges::default();
        let Edge::Ours(promise) = edges.look(0) else { panic!("nobody has it yet") };
        let Edge::Known(waiting) = edges.look(0) else { panic!("it is on its way") };
        drop(promise);
        assert!(block_on(waiting).is_err());
        let Edge::Ours(promise) = edges.look(0) else { panic!("the next one fetches it") };
        promise.keep(0, &[5; 4]);
        assert!(matches!(edges.look(0), Edge::Known(_)));
        for index in 1..=MOST as u64 {
            let Edge::Ours(promise) = edges.look(index) else { panic!("a new group") };
            promise.keep(index * GROUP_BYTES, &[0; 4]);
        }
        assert!(matches!(edges.look(0), Edge::Ours(_)), "the oldest went");
    }
}
