//! Reads that take their bytes from a request that serves many of them. Most networks hold its content back until a read asks for it,
//! so that memory holds little of what is to come; some browsers fetch it ahead, outside WebAssembly's memory, and get smaller parts.
//! A connection that breaks loses nothing: the next request goes on at the byte after the last.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use futures::lock::Mutex;
use potluck_model::FileRange;

use super::lanes::Lanes;
use super::line::{Attempts, Sent};
use super::replies::Refusal;
use super::{HttpSource, Remote};
use crate::platform::{Content, HttpRequest, NetError, Traffic};
use crate::source::error::SourceError;
use crate::source::permits::{Permit, Permits};
use crate::source::reading::Expected;

/// Bytes of a part where nothing is known of the line, where little comes, and where the network holds nothing back: contents that are
/// open then take four times that at most.
const LEAST_PART: u64 = 16 << 20;
/// Bytes of a part at most: on a fast line, or where the server has refused because of too many requests.
const MOST_PART: u64 = 64 << 20;
/// A part is to last for so long.
const PART_SECONDS: f64 = 4.0;
/// A part that is not larger is read at once and kept: the biases of experts, a few kilobytes each, come over hundreds of megabytes.
const WHOLE_BYTES: u64 = 2 << 20;
/// Bytes a second of a line on which that takes too long without progress.
const SLOW_LINE: f64 = 256e3;
/// Contents that are open at a time, if the others can be closed. A browser has six connections to a server without HTTP/2, for all tabs.
const MOST_OPEN: usize = 4;
/// A server that refuses so often, while other contents are open, may allow a single one.
pub(super) const FULL: u32 = 2;
/// Reads that are then made one at a time. After that more are tried, because the server may just have had a bad moment.
const ALONE: u32 = 100;
/// Bytes that are read and thrown away rather than asked for anew.
const MOST_SKIPPED: u64 = 256 << 10;
/// Bytes of a content after which it was worth its request: if it breaks, the rest is asked for at once.
const WORTH_A_REQUEST: u64 = 256 << 10;

/// The parts of the reads that are to come.
pub(super) struct Parts {
    lanes: RefCell<Lanes>,
    begun: RefCell<Vec<Rc<Part>>>,
    /// Which announcement of reads this is.
    announced: Cell<u64>,
    /// Reads so far, to tell which part was used last.
    reads: Cell<u64>,
    /// What had arrived when the reads were announced, and when that was.
    since: Cell<Option<(u64, f64)>>,
    /// Reads that are still to be made one at a time, because the server may allow a single connection.
    left_alone: Cell<u32>,
    /// Has one permit, for those.
    alone: Permits,
}

impl Default for Parts {
    fn default() -> Self {
        Self {
            lanes: RefCell::default(),
            begun: RefCell::default(),
            announced: Cell::default(),
            reads: Cell::default(),
            since: Cell::default(),
            left_alone: Cell::default(),
            alone: Permits::new(1),
        }
    }
}

/// What one request serves.
pub(super) struct Part {
    range: FileRange,
    /// Its lane, and its reads there.
    lane: usize,
    reads: Range<usize>,
    /// It is read at once and kept.
    is_whole: bool,
    /// Reads that are still to come.
    left: Cell<usize>,
    /// Reads take turns, in the order in which they came.
    turn: Permits,
    used: Cell<u64>,
    flow: Mutex<Flow>,
}

/// Where a part is.
#[derive(Default)]
struct Flow {
    /// The content of its request, once it was made and until it ends.
    content: Option<Box<dyn Content>>,
    /// The byte in the file that the content brings next.
    at: u64,
    /// Bytes that came of the content.
    come: u64,
    /// When its request was sent.
    sent: Sent,
    /// All of a small part.
    whole: Option<Vec<u8>>,
}

impl Parts {
    /// These reads come next, in this order.
    pub fn expect(&self, reads: &[FileRange]) -> Expected {
        self.announced.set(self.announced.get() + 1);
        *self.lanes.borrow_mut() = Lanes::new(reads);
        self.begun.borrow_mut().clear();
        self.since.set(None);
        Expected(self.announced.get())
    }

    /// These reads do not come any more; others that were announced meanwhile do.
    pub fn forget(&self, expected: Expected) {
        if expected == Expected(self.announced.get()) {
            self.expect(&[]);
        }
    }

    /// Closes contents that nobody reads now, those first that were used longest ago, so that at most so many are open with one
    /// that is to be opened: that of a part, or none of them. True if there are others.
    fn make_room(&self, for_part: Option<&Part>, most_open: usize) -> bool {
        let begun = self.begun.borrow().clone();
        let mut busy = 0;
        let mut idle = Vec::new();
        for part in begun.iter().filter(|part| !for_part.is_some_and(|opened| std::ptr::eq(part.as_ref(), opened))) {
            match part.flow.try_lock() {
                Some(flow) if flow.content.is_some() => idle.push((part.used.get(), flow)),
                Some(_) => {}
                None => busy += 1,
            }
        }
        idle.sort_by_key(|(used, _)| *used);
        let others = busy + idle.len();
        idle.iter_mut().take((others + 1).saturating_sub(most_open)).for_each(|(_, flow)| flow.content = None);
        others > 0
    }

    /// The turn of a read, if reads are made one at a time now: then no other content stays open.
    async fn turn_alone(&self, part: &Part) -> Option<Permit> {
        if self.left_alone.get() == 0 {
            return None;
        }
        let permit = self.alone.acquire().await;
        self.left_alone.set(self.left_alone.get().saturating_sub(1));
        self.make_room(Some(part), 1);
        Some(permit)
    }

    /// A server has refused a read so often that it may allow a single connection: the next reads are made one at a time.
    pub(super) fn go_alone(&self) {
        if self.make_room(None, 1) {
            self.left_alone.set(ALONE);
        }
    }

    /// A read of a part has ended.
    fn read_ended(&self, part: &Part) {
        part.left.set(part.left.get().saturating_sub(1));
        if part.left.get() == 0 {
            self.begun.borrow_mut().retain(|begun| !std::ptr::eq(begun.as_ref(), part));
        }
    }
}

/// A read of a part, until it ends in whatever way.
struct Reading<'a>(&'a Parts, &'a Part);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.read_ended(self.1);
    }
}

impl HttpSource {
    /// The part with the bytes of a read, if it was expected and comes in its turn.
    pub(super) fn part_of(&self, read: FileRange) -> Option<Rc<Part>> {
        let place = self.parts.lanes.borrow().place(read)?;
        let rate = self.rate();
        let bytes = if self.line.is_limited() { f64::INFINITY } else { rate * PART_SECONDS } as u64;
        let holds_back = self.line.platform.transport.holds_content_back();
        let most = if holds_back { MOST_PART } else { LEAST_PART };
        let cut = self.parts.lanes.borrow_mut().cut(place, bytes.clamp(LEAST_PART, most));
        let mut begun = self.parts.begun.borrow_mut();
        // One more would close another's content with each read.
        let are_many = begun.len() >= MOST_OPEN;
        if let Some((range, reads)) = cut {
            begun.push(Rc::new(Part {
                range,
                lane: place.lane,
                reads: place.index..place.index + reads,
                is_whole: range.len <= WHOLE_BYTES && (rate >= SLOW_LINE || are_many),
                left: Cell::new(reads),
                turn: Permits::new(1),
                used: Cell::default(),
                flow: Mutex::default(),
            }));
        }
        begun.iter().find(|part| part.lane == place.lane && part.reads.contains(&place.index)).cloned()
    }

    /// Bytes that have arrived in a second since the reads were announced; 0 if that is not known yet.
    fn rate(&self) -> f64 {
        let (now, arrived) = (self.line.platform.clock.now().0, self.line.traffic.bytes());
        let since = self.parts.since.get();
        self.parts.since.set(since.or(Some((arrived, now))));
        since.map_or(0.0, |(before, then)| arrived.saturating_sub(before) as f64 * 1e3 / (now - then).max(1.0))
    }

    /// Reads bytes of a part.
    pub(super) async fn read_part(
        &self,
        remote: &Remote,
        part: &Part,
        read: FileRange,
        arrived: &Traffic,
    ) -> Result<Vec<u8>, SourceError> {
        let _reading = Reading(&self.parts, part);
        let _turn = part.turn.acquire().await;
        // Before its content is locked: who waits here keeps none.
        let mut alone = self.parts.turn_alone(part).await;
        let flow = &mut *part.flow.lock().await;
        part.used.set(self.parts.reads.get());
        self.parts.reads.set(part.used.get() + 1);
        if part.is_whole {
            return self.read_whole(remote, part, flow, read, arrived).await;
        }
        let (url, end) = (&remote.file.url, part.range.offset + part.range.len);
        let (mut bytes, mut attempts, mut full) = (Vec::with_capacity(read.len as usize), Attempts::default(), 0);
        while (bytes.len() as u64) < read.len {
            remote.check()?;
            let wanted = read.offset + bytes.len() as u64;
            if flow.at > wanted {
                // It is late: what follows was read.
                let rest = Some(wanted..read.offset + read.len);
                bytes.extend(self.get_with_retries(remote, url, rest, &Traffic::default()).await?);
                arrived.add(read.len - (wanted - read.offset));
                break;
            }
            if wanted - flow.at > MOST_SKIPPED {
                flow.content = None;
            }
            // A read that is given up takes the content along: bytes that were on their way would be missing.
            let Some(mut content) = flow.content.take() else {
                let has_others = self.parts.make_room(Some(part), if alone.is_some() { 1 } else { MOST_OPEN });
                match self.open_part(remote, wanted..end).await {
                    Ok((content, sent)) => {
                        *flow = Flow { content: Some(content), at: wanted, come: 0, sent, whole: None };
                    }
                    Err(refusal) => {
                        full += u32::from(has_others && matches!(refusal, Refusal::Full(_)));
                        self.wait(remote, &mut attempts, url, refusal).await?;
                        if full >= FULL && alone.is_none() && !self.line.is_limited() {
                            self.parts.go_alone();
                            alone = self.parts.turn_alone(part).await;
                        }
                    }
                }
                continue;
            };
            let skipped = wanted - flow.at;
            let most = if skipped > 0 { skipped } else { read.len - bytes.len() as u64 };
            let error = match content.next(most as usize).await {
                Ok(next) if !next.is_empty() => {
                    flow.content = Some(content);
                    flow.at += next.len() as u64;
                    flow.come += next.len() as u64;
                    self.line.traffic.add(next.len() as u64);
                    if flow.come >= WORTH_A_REQUEST || flow.at >= read.offset + read.len {
                        attempts = Attempts::default();
                        self.line.works(flow.sent);
                    }
                    if skipped == 0 {
                        arrived.add(next.len() as u64);
                        bytes.extend(next);
                    }
                    continue;
                }
                Ok(_) => NetError::unreachable(url, "the connection failed"),
                Err(error) => error,
            };
            // Some servers send less than they are asked for, but not a few bytes again and again.
            if flow.come < WORTH_A_REQUEST {
                self.wait(remote, &mut attempts, url, Refusal::Retry(error.into())).await?;
            }
        }
        if flow.at >= end {
            flow.content = None;
        }
        Ok(bytes)
    }

    async fn read_whole(
        &self,
        remote: &Remote,
        part: &Part,
        flow: &mut Flow,
        read: FileRange,
        arrived: &Traffic,
    ) -> Result<Vec<u8>, SourceError> {
        let FileRange { offset, len, .. } = part.range;
        let whole = match flow.whole.take() {
            Some(whole) => whole,
            None => {
                let range = Some(offset..offset + len);
                self.get_with_retries(remote, &remote.file.url, range, &Traffic::default()).await?
            }
        };
        let from = (read.offset - offset) as usize;
        let bytes = whole[from..from + read.len as usize].to_vec();
        flow.whole = Some(whole);
        arrived.add(read.len);
        Ok(bytes)
    }

    /// Asks for the bytes of a part from some byte on.
    async fn open_part(&self, remote: &Remote, range: Range<u64>) -> Result<(Box<dyn Content>, Sent), Refusal> {
        let request = HttpRequest { range: Some(range.clone()), ..HttpRequest::get(&remote.file.url) };
        let ((reply, content), sent) = self.line.open(request).await.map_err(|error| Refusal::Retry(error.into()))?;
        self.judge_opened(remote, &range, &reply).await?;
        Ok((content, sent))
    }
}
