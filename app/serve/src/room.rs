//! The room, as the server sees it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use potluck_panel::{AnswerPart, ModelCard, PlanStatus, PromptRequest, RequestId, Status};
use potluck_text::texts;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::conversations::Conversations;
use crate::error::ApiError;
use crate::question::Question;

/// Questions that are with the room at a time. It answers up to eight at once: people beside the programs need not wait for one to end.
pub(crate) const SLOTS: usize = 6;
/// Requests that are answered or wait for that, at most.
const MAX_REQUESTS: usize = 512;

/// What the server is told of the room.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoomState {
    /// Its model, once it is known.
    pub model: Option<ModelCard>,
    /// Positions of its context.
    pub context: u32,
    /// It can answer now.
    pub is_up: bool,
}

impl RoomState {
    /// What a node's snapshot says of it.
    #[must_use]
    pub fn of(status: &Status) -> Self {
        let is_up = status.plan.as_ref().is_some_and(|plan| plan.state == PlanStatus::Up);
        Self { model: status.model.clone(), context: status.context, is_up }
    }

    /// The name by which programs ask for its model.
    #[must_use]
    pub fn model_id(&self) -> Option<String> {
        self.model.as_ref().map(crate::api::models::id)
    }
}

/// What the server asks of the program that is in the room.
#[derive(Debug)]
pub enum Order {
    /// Ask the room.
    Ask {
        /// What is asked, with a number of its own.
        prompt: PromptRequest,
        /// Takes all parts of the answer, the end included.
        parts: UnboundedSender<AnswerPart>,
    },
    /// Nobody waits for this answer any more.
    Stop(RequestId),
}

/// Asks the room.
#[derive(Clone)]
pub(crate) struct RoomLine {
    orders: UnboundedSender<Order>,
    state: watch::Receiver<RoomState>,
    newest: Arc<AtomicU32>,
    conversations: Arc<Mutex<Conversations>>,
    slots: Arc<Semaphore>,
    places: Arc<Semaphore>,
}

impl RoomLine {
    pub fn new(orders: UnboundedSender<Order>, state: watch::Receiver<RoomState>) -> Self {
        Self {
            orders,
            state,
            newest: Arc::default(),
            conversations: Arc::default(),
            slots: Arc::new(Semaphore::new(SLOTS)),
            places: Arc::new(Semaphore::new(MAX_REQUESTS)),
        }
    }

    pub fn state(&self) -> RoomState {
        self.state.borrow().clone()
    }

    /// How many more questions the room would be asked at once.
    pub fn idle_slots(&self) -> usize {
        self.slots.available_permits()
    }

    /// Asks, once it is this question's turn. Dropping the answer stops it.
    pub async fn ask(&self, question: &Question, seed: u64) -> Result<Asked, ApiError> {
        let busy = |_| ApiError::Busy(texts().api.busy(MAX_REQUESTS));
        let place = self.places.clone().try_acquire_owned().map_err(busy)?;
        // Semaphores are fair, and this one is never closed.
        let slot = self.slots.clone().acquire_owned().await.map_err(|_| ApiError::ended())?;
        let context = self.state.borrow().context;
        let conversation = Lease::take(&self.conversations, question);
        let request = RequestId(self.newest.fetch_add(1, Ordering::Relaxed).wrapping_add(1));
        let mut sampling = question.sampling;
        sampling.seed = question.seed.unwrap_or(seed);
        let prompt = PromptRequest {
            request,
            conversation: conversation.name.clone(),
            messages: question.messages.clone(),
            raw: question.raw,
            max_tokens: question.max_tokens.unwrap_or(context).min(context),
            sampling,
            reasoning: question.reasoning,
        };
        let (sender, parts) = unbounded_channel();
        let order = Order::Ask { prompt, parts: sender };
        self.orders.send(order).map_err(|_| ApiError::ended())?;
        let orders = self.orders.clone();
        Ok(Asked { request, orders, parts, is_over: false, _held: (place, slot, conversation) })
    }
}

/// A question that the room has. When this is dropped before its end, the room stops answering.
pub(crate) struct Asked {
    request: RequestId,
    orders: UnboundedSender<Order>,
    parts: UnboundedReceiver<AnswerPart>,
    is_over: bool,
    _held: (OwnedSemaphorePermit, OwnedSemaphorePermit, Lease),
}

impl Asked {
    /// The next part of the answer; `None` if the room has ended.
    pub async fn next(&mut self) -> Option<AnswerPart> {
        let part = self.parts.recv().await;
        self.is_over |= matches!(part, None | Some(AnswerPart::End { .. } | AnswerPart::Unknown));
        part
    }

    /// Nobody wants more text. The end still comes.
    pub fn stop(&self) {
        // Fails if the room has ended.
        _ = self.orders.send(Order::Stop(self.request));
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.is_over {
            self.stop();
        }
    }
}

/// A conversation in use.
struct Lease {
    name: String,
    all: Arc<Mutex<Conversations>>,
}

impl Lease {
    fn take(all: &Arc<Mutex<Conversations>>, question: &Question) -> Self {
        let name = all.lock().unwrap_or_else(PoisonError::into_inner).take(&question.messages, question.raw);
        Self { name, all: all.clone() }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).give_back(&self.name);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_panel::{AnswerStop, Timings};
    use serde_json::json;

    use super::*;
    use crate::api::chat;

    fn question() -> Question {
        chat::question(&json!({ "messages": [{ "role": "user", "content": "Hi" }], "seed": 3 })).unwrap()
    }

    fn line() -> (RoomLine, UnboundedReceiver<Order>) {
        let (orders, ordered) = unbounded_channel();
        let (_, state) = watch::channel(RoomState { context: 256, ..RoomState::default() });
        (RoomLine::new(orders, state), ordered)
    }

    fn prompt(order: Order) -> (PromptRequest, UnboundedSender<AnswerPart>) {
        match order {
            Order::Ask { prompt, parts } => (prompt, parts),
            Order::Stop(request) => panic!("{request:?} was stopped"),
        }
    }

    #[tokio::test]
    async fn who_goes_away_stops_an_answer_and_who_has_it_all_does_not() {
        let (line, mut ordered) = line();
        let gone = line.ask(&question(), 9).await.unwrap();
        let (asked, parts) = prompt(ordered.recv().await.unwrap());
        assert_eq!(
            (asked.max_tokens, asked.sampling.seed),
            (256, 3),
            "as long as the context, with the seed that was given"
        );
        drop(gone);
        assert!(parts.is_closed());
        assert!(matches!(ordered.recv().await, Some(Order::Stop(request)) if request == asked.request));

        let mut stays = line.ask(&question(), 9).await.unwrap();
        let (_, parts) = prompt(ordered.recv().await.unwrap());
        parts.send(AnswerPart::End { pieces: 0, stop: AnswerStop::Complete, timings: Timings::default() }).unwrap();
        assert!(matches!(stays.next().await, Some(AnswerPart::End { .. })));
        drop(stays);
        drop(line);
        assert!(ordered.recv().await.is_none(), "nothing is stopped");
    }

    #[tokio::test]
    async fn questions_wait_for_their_turn_and_too_many_are_refused() {
        let (line, mut ordered) = line();
        let mut asked = Vec::new();
        for _ in 0..SLOTS {
            asked.push(line.ask(&question(), 1).await.unwrap());
        }
        let names: std::collections::BTreeSet<String> =
            (0..SLOTS).map(|_| prompt(ordered.try_recv().unwrap()).0.conversation).collect();
        assert_eq!(names.len(), SLOTS, "none waits for another one's conversation");
        let next = tokio::spawn({
            let line = line.clone();
            async move { line.ask(&question(), 1).await.is_ok() }
        });
        tokio::task::yield_now().await;
        assert!(ordered.try_recv().is_err(), "one more waits here");
        asked.pop();
        assert!(next.await.unwrap());

        let _places = line.places.clone().try_acquire_many_owned(line.places.available_permits() as u32).unwrap();
        assert!(matches!(line.ask(&question(), 1).await, Err(ApiError::Busy(_))));
    }

    #[tokio::test]
    async fn after_the_room_nothing_is_asked() {
        let (line, ordered) = line();
        drop(ordered);
        assert_eq!(line.ask(&question(), 1).await.err(), Some(ApiError::ended()));
    }
}
