//! One answer that was drawn: what a stage got is fetched and held against the hashes, then the host's device computes the stage's
//! part again, and compares it with what the stage sent.

use potluck_plan::{
    BatchToken, BiasedTokens, BlockRange, Candidates, ConversationId, Input, KernelClass, LmHeadRequest, LmHeadTokens,
    LogitsRequest, Millis, Outcome, PeerId, Position, StageId, Task, Then, WireType, Work,
};
use potluck_protocol::{RowRange, Rows, RowsHash, RowsRequest};

use super::ledger::EndedAnswer;
use crate::likeness::{self, Likeness};
use crate::limits;
use crate::row_hashes::hash_of;

/// The stage that is checked.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub peer: PeerId,
    /// It is of the host's kind, as far as it says. Another kind may round so differently that nothing convicts it.
    pub is_alike: bool,
    /// It has experts: where two are nearly as good, other rounding chooses another one, and then the numbers are far apart.
    pub is_routed: bool,
    pub blocks: BlockRange,
    /// It gets tokens.
    pub embeds: bool,
    /// The stage that gets its rows; none after the last one, whose candidates the host has.
    pub next: Option<(StageId, PeerId)>,
    /// Number format of the rows between them.
    pub wire: WireType,
    /// Values of a row.
    pub width: usize,
}

/// What the host found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The same bits.
    Equal,
    /// The same numbers within the tolerance: the devices are less alike than they say.
    Close,
    /// The stage sent other numbers, and the host computed its own twice.
    Wrong,
    /// This device did not show rows that it had committed to.
    Withheld(PeerId),
    /// The host computed something else the second time: nobody can say who is right.
    Unsteady,
    /// The host's engine could not do it.
    NotComputed,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Next {
    /// Ask this device for rows.
    Ask(PeerId, RowsRequest),
    /// Compute the next piece, as soon as there is room for it.
    Compute,
    /// Free what was computed, and compute everything again.
    Restart,
    /// It is over.
    End(Verdict),
}

pub(super) struct Replay {
    pub target: Target,
    ended: EndedAnswer,
    /// Of the checked stage.
    range: RowRange,
    /// Hashes of what it got and sent.
    hashes: [Vec<RowsHash>; 2],
    /// What it got and sent, as far as it was shown.
    rows: [Vec<f32>; 2],
    /// Positions computed.
    cursor: usize,
    likeness: Likeness,
    /// Where the host first got something else than the stage, and what.
    differs: Option<(usize, Outcome)>,
    pub since: Millis,
}

impl Replay {
    /// None if the answer is too long to be kept.
    pub fn new(
        target: Target,
        ended: EndedAnswer,
        range: RowRange,
        hashes: [Vec<RowsHash>; 2],
        since: Millis,
    ) -> Option<Self> {
        let fits = ended.tokens.len().saturating_mul(target.width) <= limits::MAX_SHOWN_VALUES;
        let (rows, likeness) = ([Vec::new(), Vec::new()], Likeness::Equal);
        fits.then_some(Self { target, ended, range, hashes, rows, cursor: 0, likeness, differs: None, since })
    }

    /// What was computed is gone.
    pub fn begin_again(&mut self) {
        (self.cursor, self.differs, self.likeness) = (0, None, Likeness::Equal);
    }

    /// Whether a result that is wrong convicts the stage: its device computes the host's bits, as far as it says and as all before
    /// that result shows. Of routed experts its word alone is not enough. A bias passes the stages before, any of which may have changed it.
    pub fn convicts(&self) -> bool {
        if self.target.next.is_none() && !self.ended.bias.is_empty() {
            return false;
        }
        let is_shown = self.differs.as_ref().is_some_and(|(at, _)| *at > 0);
        self.target.is_alike && self.likeness == Likeness::Equal && (is_shown || !self.target.is_routed)
    }

    pub fn ended(&self) -> &EndedAnswer {
        &self.ended
    }

    /// Positions of the checked stage.
    pub fn range(&self) -> &RowRange {
        &self.range
    }

    /// Who shows rows, and of which stage: the checked stage what it got, the next one what the checked one sent.
    fn sources(&self) -> [Option<(StageId, PeerId)>; 2] {
        [(!self.target.embeds).then_some((self.range.stage, self.target.peer)), self.target.next]
    }

    /// Pages that a source has shown.
    fn shown_pages(&self, source: usize) -> u32 {
        let positions = self.rows[source].len() / self.target.width.max(1);
        (positions as u32).div_ceil(RowRange::PAGE)
    }

    /// The rows that are missing, or the next piece.
    pub fn next(&self) -> Next {
        for (source, of) in self.sources().into_iter().enumerate() {
            let Some((stage, peer)) = of else { continue };
            let page = self.shown_pages(source);
            if page < self.range.pages() {
                return Next::Ask(peer, RowsRequest { range: RowRange { stage, ..self.range }, page });
            }
        }
        if self.cursor < self.ended.tokens.len() {
            return Next::Compute;
        }
        Next::End(if self.likeness == Likeness::Equal { Verdict::Equal } else { Verdict::Close })
    }

    /// A device shows rows. None if it was not asked for them.
    pub fn shown(&mut self, from: PeerId, rows: &Rows) -> Option<Next> {
        let Next::Ask(peer, request) = self.next() else { return None };
        if (peer, request) != (from, rows.request) {
            return None;
        }
        let source = usize::from(request.range.stage != self.range.stage);
        let positions = request.range.page(request.page).len();
        let committed = self.hashes[source].get(request.page as usize);
        let is_so = rows.values.len() == positions * self.target.width
            && committed == Some(&hash_of(&rows.values, self.target.width));
        if !is_so {
            return Some(Next::End(Verdict::Withheld(from)));
        }
        self.rows[source].extend_from_slice(&rows.values);
        Some(self.next())
    }

    /// Positions of the next piece: of one kernel class. In a chunk of the prompt only the last position's logits are computed, as the
    /// first time.
    fn piece(&self) -> std::ops::Range<usize> {
        let (from, classes) = (self.cursor, &self.ended.classes[self.cursor..]);
        let Some(class) = classes.first() else { return from..from };
        let max = match class {
            KernelClass::Prefill => RowRange::PAGE as usize,
            KernelClass::Decode => Work::DECODE_TOKENS,
        };
        let same = classes.iter().take(max).take_while(|other| *other == class).count();
        let result = self.ended.results.range(from as u32..).next().map(|(position, _)| *position as usize + 1);
        let cut = result.filter(|_| *class == KernelClass::Prefill).unwrap_or(usize::MAX);
        from..(from + same).min(cut)
    }

    /// The next piece as work for the host's engine, with KV cache under an id of its own.
    pub fn task(&self, conversation: ConversationId) -> Task {
        let (piece, width) = (self.piece(), self.target.width);
        let class = self.ended.classes.get(piece.start).copied().unwrap_or(KernelClass::Decode);
        let input = if self.target.embeds {
            Input::Tokens(self.ended.tokens[piece.clone()].to_vec())
        } else {
            Input::Hidden(self.rows[0][piece.start * width..piece.end * width].to_vec())
        };
        let row = |position: usize| BatchToken { conversation, position: Position(position as u32) };
        let mut results =
            self.ended.results.range(piece.start as u32..piece.end as u32).map(|(_, sent)| sent).peekable();
        let (has_results, biases) = (results.peek().is_some(), BiasedTokens::all(piece.len(), &self.ended.bias));
        let n = LogitsRequest::MAX_TOP;
        let sums = results.any(|sent| sent.log_sum_exp.is_some());
        let logits = if sums { LogitsRequest::TopWithSum(n) } else { LogitsRequest::Top(n) };
        let tokens = match class {
            KernelClass::Prefill => LmHeadTokens::Last,
            KernelClass::Decode => LmHeadTokens::All,
        };
        let then = match self.target.next {
            Some(_) => Then::Hidden,
            None if has_results => Then::LmHead(LmHeadRequest { tokens, logits }),
            None => Then::Nothing,
        };
        let (batch, blocks) = (piece.map(row).collect(), self.target.blocks);
        Task::Forward { batch, class, input, blocks, then, biases }
    }

    /// The host's engine has computed the next piece.
    pub fn computed(&mut self, outcome: Outcome) -> Next {
        let piece = self.piece();
        let Some(likeness) = self.compare(&piece, &outcome) else { return Next::End(Verdict::NotComputed) };
        match &self.differs {
            // Nobody is blamed for what the host computed once.
            None if likeness == Likeness::Different => {
                self.differs = Some((piece.start, outcome));
                self.cursor = 0;
                return Next::Restart;
            }
            Some((at, before)) if *at == piece.start => {
                let is_same = likeness == Likeness::Different && *before == outcome;
                return Next::End(if is_same { Verdict::Wrong } else { Verdict::Unsteady });
            }
            // The first time it was alike.
            Some(_) if likeness == Likeness::Different => return Next::End(Verdict::Unsteady),
            _ => {}
        }
        self.likeness = self.likeness.max(likeness);
        self.cursor = piece.end;
        self.next()
    }

    /// How alike a piece's results are; none if the engine failed.
    fn compare(&self, piece: &std::ops::Range<usize>, outcome: &Outcome) -> Option<Likeness> {
        let width = self.target.width;
        match outcome {
            Outcome::Hidden(hidden) => {
                let mut computed = hidden.clone();
                if self.target.next.is_some_and(|(_, peer)| peer != self.target.peer) {
                    potluck_protocol::round(&mut computed, self.target.wire);
                }
                Some(likeness::rows(&self.rows[1][piece.start * width..piece.end * width], &computed, width))
            }
            Outcome::Done => Some(Likeness::Equal),
            Outcome::Candidates(computed) => {
                // Of the last position, or of all.
                let first = piece.end.checked_sub(computed.len())?;
                let sent = self.ended.results.range(piece.start as u32..piece.end as u32);
                let alike = |(position, sent): (&u32, &Candidates)| {
                    let at = (*position as usize).checked_sub(first)?;
                    Some(likeness::candidates(sent, computed.get(at)?))
                };
                sent.map(alike).try_fold(Likeness::Equal, |most, next| Some(most.max(next?)))
            }
            _ => None,
        }
    }
}
