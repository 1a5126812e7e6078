//! The room, as the server sees it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use potluck_panel::{AnswerPart, Connection, ModelCard, PlanStatus, PromptRequest, RequestId, Status};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::api::models;
use crate::conversations::Conversations;
use crate::error::ApiError;
use crate::meter::Meter;
use crate::question::Question;

/// Questions that are with the room at a time. It answers up to eight at once: people beside the programs need not wait for one to end.
pub(crate) const SLOTS: usize = 6;

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
        let is_planned = status.plan.as_ref().is_some_and(|plan| plan.state == PlanStatus::Up);
        // The plan of a host that is away is remembered.
        let is_reached = match status.connection {
            Connection::Idle | Connection::Connected => true,
            Connection::Connecting
            | Connection::Reconnecting { .. }
            | Connection::SocketsRefused { .. }
            | Connection::WaitingForHost
            | Connection::Closed { .. } => false,
        };
        Self { model: status.model.clone(), context: status.context, is_up: is_planned && is_reached }
    }

    /// The name by which programs ask for its model.
    #[must_use]
    pub fn model_id(&self) -> Option<String> {
        self.model.as_ref().map(models::id)
    }

    /// The model that answers a request for the one of this name.
    ///
    /// # Errors
    /// There is none, or another one.
    pub(crate) fn model_for(&self, name: Option<&str>) -> Result<String, ApiError> {
        // A plan may be missing for a while: then the question waits. Without a model nobody knows for how long.
        let card = self.model.as_ref().filter(|_| self.context > 0).ok_or(ApiError::NotReady)?;
        let id = models::id(card);
        match name {
            Some(name) if !models::is_meant(card, name) => Err(ApiError::NoModel(id)),
            _ => Ok(id),
        }
    }
}

/// What the server asks of the program that is in the room.
#[derive(Debug)]
pub enum Order {
    /// Ask the room.
    Ask {
        /// What is asked, with a number of its own.
        prompt: Box<PromptRequest>,
        /// Takes all parts of the answer, the end included.
        parts: Parts,
    },
    /// Nobody waits for this answer any more.
    Stop(RequestId),
}

/// Takes the parts of an answer. Keep it until the answer has ended: dropping it frees the question's slot.
#[derive(Debug)]
pub struct Parts {
    /// Given back before the answer's reader learns that nothing more comes: it may ask again.
    _turn: (OwnedSemaphorePermit, Lease),
    sender: UnboundedSender<AnswerPart>,
}

impl Parts {
    /// Hands on a part. False if nobody waits for it.
    #[must_use]
    pub fn send(&self, part: AnswerPart) -> bool {
        self.sender.send(part).is_ok()
    }
}

/// Asks the room.
#[derive(Clone)]
pub(crate) struct RoomLine {
    orders: UnboundedSender<Order>,
    state: watch::Receiver<RoomState>,
    newest: Arc<AtomicU32>,
    conversations: Arc<Mutex<Conversations>>,
    slots: Arc<Semaphore>,
    meter: Arc<Meter>,
}

impl RoomLine {
    pub fn new(orders: UnboundedSender<Order>, state: watch::Receiver<RoomState>) -> Self {
        Self {
            orders,
            state,
            newest: Arc::default(),
            conversations: Arc::default(),
            slots: Arc::new(Semaphore::new(SLOTS)),
            meter: Arc::default(),
        }
    }

    pub fn state(&self) -> RoomState {
        self.state.borrow().clone()
    }

    /// How many more questions the room would be asked at once.
    pub fn idle_slots(&self) -> usize {
        self.slots.available_permits()
    }

    /// What was asked and answered.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Asks for an answer with this seed, once it is this question's turn. Dropping the answer stops it.
    pub async fn ask(&self, question: Question, seed: u64) -> Result<Asked, ApiError> {
        let model = question.model.clone();
        let mut prompt = question.into_prompt();
        prompt.request = RequestId(self.newest.fetch_add(1, Ordering::Relaxed).wrapping_add(1));
        prompt.sampling.seed = seed;
        // What no room takes need not wait.
        potluck_swarm::check_prompt(&prompt).map_err(ApiError::of_refused)?;
        // Semaphores are fair, and this one is never closed.
        let waiting = self.meter.wait();
        let slot = self.slots.clone().acquire_owned().await.map_err(|_| ApiError::ended())?;
        drop(waiting);
        let state = self.state();
        // Meanwhile the room may have turned to another model.
        state.model_for(model.as_deref())?;
        prompt.max_tokens = prompt.max_tokens.min(state.context);
        let conversation = Lease::take(&self.conversations, &prompt);
        prompt.conversation = conversation.name.clone();
        let (sender, parts) = unbounded_channel();
        let asked = Asked { request: prompt.request, orders: self.orders.clone(), parts, is_over: false };
        let parts = Parts { sender, _turn: (slot, conversation) };
        self.orders.send(Order::Ask { prompt: Box::new(prompt), parts }).map_err(|_| ApiError::ended())?;
        Ok(asked)
    }
}

/// A question that the room has. When this is dropped before its end, the room stops answering.
pub(crate) struct Asked {
    request: RequestId,
    orders: UnboundedSender<Order>,
    parts: UnboundedReceiver<AnswerPart>,
    is_over: bool,
}

impl Asked {
    /// The next part of the answer; `None` if the room has ended.
    pub async fn next(&mut self) -> Option<AnswerPart> {
        let part = self.parts.recv().await;
        self.is_over |= matches!(part, None | Some(AnswerPart::End { .. } | AnswerPart::Unknown));
        part
    }

    /// Stops it, unless it is over, and waits until its conversation is free.
    pub async fn close(mut self) {
        let stops = !std::mem::replace(&mut self.is_over, true);
        let stop = |orders: &UnboundedSender<Order>, request| {
            // Fails if the room has ended.
            _ = orders.send(Order::Stop(request));
        };
        if stops {
            stop(&self.orders, self.request);
        }
        while self.parts.recv().await.is_some() {
            // The order may have been lost.
            if stops {
                stop(&self.orders, self.request);
            }
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.is_over {
            // Fails if the room has ended.
            _ = self.orders.send(Order::Stop(self.request));
        }
    }
}

/// A conversation in use.
#[derive(Debug)]
struct Lease {
    name: String,
    all: Arc<Mutex<Conversations>>,
}

impl Lease {
    fn take(all: &Arc<Mutex<Conversations>>, prompt: &PromptRequest) -> Self {
        let name = all.lock().unwrap_or_else(PoisonError::into_inner).take(prompt);
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
    use crate::api::models::test_card;

    fn question() -> Question {
        let body = json!({ "model": "tiny", "messages": [{ "role": "user", "content": "Hi" }], "seed": 3 });
        chat::question(&body).unwrap()
    }

    fn state(model: &str) -> RoomState {
        RoomState { model: Some(test_card(model)), context: 256, is_up: true }
    }

    fn line() -> (RoomLine, UnboundedReceiver<Order>, watch::Sender<RoomState>) {
        let (orders, ordered) = unbounded_channel();
        let (told, known) = watch::channel(state("tiny"));
        (RoomLine::new(orders, known), ordered, told)
    }

    fn prompt(order: Order) -> (PromptRequest, Parts) {
        match order {
            Order::Ask { prompt, parts } => (*prompt, parts),
            Order::Stop(request) => panic!("{request:?} was stopped"),
        }
    }

    fn end() -> AnswerPart {
        AnswerPart::End { pieces: 0, stop: AnswerStop::Complete, timings: Timings::default() }
    }

    #[tokio::test]
    async fn who_goes_away_stops_an_answer_and_who_has_it_all_does_not() {
        let (line, mut ordered, _told) = line();
        let gone = line.ask(question(), 9).await.unwrap();
        let (asked, parts) = prompt(ordered.recv().await.unwrap());
        assert_eq!((asked.max_tokens, asked.sampling.seed), (256, 9), "as long as the context, with this seed");
        drop(gone);
        assert!(!parts.send(end()));
        assert!(matches!(ordered.recv().await, Some(Order::Stop(request)) if request == asked.request));

        let mut stays = line.ask(question(), 9).await.unwrap();
        let (_, parts) = prompt(ordered.recv().await.unwrap());
        assert!(parts.send(end()));
        assert!(matches!(stays.next().await, Some(AnswerPart::End { .. })));
        drop(stays);
        drop(line);
        assert!(ordered.recv().await.is_none(), "nothing is stopped");
    }

    #[tokio::test]
    async fn questions_wait_until_the_room_has_ended_one() {
        let (line, mut ordered, _told) = line();
        let (mut asked, mut with_room) = (Vec::new(), Vec::new());
        for _ in 0..SLOTS {
            asked.push(line.ask(question(), 1).await.unwrap());
            with_room.push(prompt(ordered.try_recv().unwrap()));
        }
        let names: std::collections::BTreeSet<&str> =
            with_room.iter().map(|(prompt, _)| prompt.conversation.as_str()).collect();
        assert_eq!(names.len(), SLOTS, "none waits for another one's conversation");
        let next = tokio::spawn({
            let line = line.clone();
            async move { line.ask(question(), 1).await.is_ok() }
        });
        drop(asked);
        tokio::task::yield_now().await;
        assert_eq!(line.idle_slots(), 0, "clients have left, and the room does not know it yet");
        with_room.pop();
        assert!(next.await.unwrap());
    }

    #[tokio::test]
    async fn what_no_room_takes_does_not_wait() {
        let (line, _ordered, _told) = line();
        let _all = line.slots.clone().try_acquire_many_owned(SLOTS as u32).unwrap();
        let mut long = question();
        long.messages[0].content = "a".repeat(2 << 20);
        assert!(matches!(line.ask(long, 1).await, Err(ApiError::TooLong { .. })));
    }

    #[tokio::test]
    async fn a_question_that_waited_is_not_put_to_another_model() {
        let (line, mut ordered, told) = line();
        told.send_replace(state("other"));
        assert_eq!(line.ask(question(), 1).await.err(), Some(ApiError::NoModel("other".to_owned())));
        told.send_replace(RoomState::default());
        assert_eq!(line.ask(question(), 1).await.err(), Some(ApiError::NotReady));
        assert!(ordered.try_recv().is_err(), "nothing was asked");
        assert_eq!(line.idle_slots(), SLOTS);
    }

    #[tokio::test]
    async fn after_the_room_nothing_is_asked() {
        let (line, ordered, _told) = line();
        drop(ordered);
        assert_eq!(line.ask(question(), 1).await.err(), Some(ApiError::ended()));
    }
}
