//! The connection of one member, from the first message to the last, in one task that reads and writes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use potluck_relay_api::{
    BadFrame, Control, Departure, EntryProof, Eviction, Refusal, Request, Route, VERSION, nonce_at, split_parts,
};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::outbox::{Action, Closing, Outbox};
use super::room::{Forwarded, Room};
use super::{Phase, Rooms, control_text, id};
use crate::limits::{Limits, Rate, VisitLimits};
use crate::net::Activity;
use crate::quotas::{Lease, Share};
use crate::rate::TokenBucket;

/// Longest request: a proof is a few hundred bytes, and a title may be long in bytes.
const MAX_REQUEST_BYTES: usize = 8 * 1024;

/// Pings and pongs of a connection before it enters: none is needed, and each ping has a pong that may wait.
const MAX_ENTRY_MESSAGES: usize = 2_000;
/// A client's ping counts as so many frames: its pong waits in memory until the client reads it, and no peer of ours pings.
const PING_FRAMES: f64 = 200.0;
/// Pause before whoever came earlier than the room's owner asks again.
const ROOM_PAUSE: Duration = Duration::from_millis(50);

/// A connection that wants to enter a room.
#[derive(Debug)]
pub struct Arrival {
    /// What its address uses.
    pub share: Arc<Share>,
    /// Whether the connection is alive.
    pub activity: Arc<Activity>,
    /// Its place among the connections.
    pub lease: Option<Arc<Lease>>,
    /// The room id from the path, not checked yet.
    pub room: String,
    /// The name under which it called the relay.
    pub host: String,
    /// Whether it may open a room.
    pub creation: Result<(), Refusal>,
}

/// Serves one connection until it ends.
pub async fn serve(socket: WebSocket, arrival: Arrival, rooms: Arc<Rooms>) {
    let (mut sink, mut stream) = socket.split();
    arrival.activity.count_messages(&arrival.share, MAX_REQUEST_BYTES);
    let entered = tokio::select! {
        entered = enter(&mut sink, &mut stream, &arrival, &rooms) => entered,
        () = sleep(rooms.limits.entry) => Err(Left::Refused(Refusal::NoEntry)),
        () = rooms.closed() => Err(Left::Refused(Refusal::ShuttingDown)),
    };
    match entered {
        Ok(seat) => {
            // From here on the WebSocket itself bounds a message.
            arrival.activity.count_messages(&arrival.share, usize::MAX);
            let mut member = Member::new(&rooms, arrival.activity, seat);
            member.run(sink, stream).await;
        }
        Err(Left::Gone) => {}
        Err(Left::Refused(refusal)) => {
            rooms.metrics.members_refused.inc();
            let control = Control::Refused { reason: refusal, message: refusal.sentence().into() };
            let closing = Closing { control: Some(control), code: refusal.close_code() };
            part(sink, stream, closing, &arrival.activity, rooms.limits.close_timeout).await;
        }
    }
}

/// Why a connection did not become a member.
enum Left {
    Refused(Refusal),
    Gone,
}

/// A place in a room.
pub struct Seat {
    pub room: Arc<Room>,
    pub route: Route,
    pub outbox: Arc<Outbox>,
    pub _lease: Lease,
}

async fn enter(
    sink: &mut SplitSink<WebSocket, Message>,
    stream: &mut SplitStream<WebSocket>,
    arrival: &Arrival,
    rooms: &Rooms,
) -> Result<Seat, Left> {
    let (id, lease) = rooms.arrive(arrival, Instant::now()).map_err(Left::Refused)?;
    let nonce = id::nonce().ok_or(Left::Refused(Refusal::RelayFull))?;
    sink.send(control_text(&Control::Challenge { version: VERSION, nonce })).await.map_err(|_| Left::Gone)?;
    let proof = proof(stream, &arrival.activity).await?;
    let nonce = nonce_at(&arrival.host, &nonce);
    let deadline = Instant::now() + rooms.limits.room_wait;
    loop {
        let now = Instant::now();
        match rooms.join(&id, &nonce, &proof, &arrival.share, arrival.creation, now) {
            Ok((room, route, outbox)) => return Ok(Seat { room, route, outbox, _lease: lease }),
            // A room that moves is opened again by its owner, and others may be a little quicker.
            Err(Refusal::NoSuchRoom) if now < deadline && rooms.phase() == Phase::Open => sleep(ROOM_PAUSE).await,
            Err(refusal) => return Err(Left::Refused(refusal)),
        }
    }
}

/// The proof in the first message.
async fn proof(stream: &mut SplitStream<WebSocket>, activity: &Activity) -> Result<EntryProof, Left> {
    for _ in 0..MAX_ENTRY_MESSAGES {
        let message = match stream.next().await {
            Some(Ok(message)) => message,
            _ => return Err(Left::Gone),
        };
        finish(activity, &message);
        let request = match &message {
            Message::Text(text) => serde_json::from_str(text).ok(),
            Message::Ping(_) | Message::Pong(_) => continue,
            Message::Close(_) => return Err(Left::Gone),
            Message::Binary(_) => None,
        };
        let Some(Request::Enter { proof }) = request else { return Err(Left::Refused(Refusal::BadProof)) };
        return Ok(proof);
    }
    Err(Left::Gone)
}

/// A member in its room.
struct Member {
    rooms: Arc<Rooms>,
    activity: Arc<Activity>,
    seat: Seat,
    /// The host has not let it in.
    is_visitor: bool,
    rates: Rates,
}

/// What a member may send at a time.
struct Rates {
    frames: TokenBucket,
    parts: TokenBucket,
    bytes: TokenBucket,
}

impl Rates {
    fn new(frames: Rate, parts: Rate, bytes: Rate) -> Self {
        let bucket = |rate| TokenBucket::new(rate, Instant::now());
        Self { frames: bucket(frames), parts: bucket(parts), bytes: bucket(bytes) }
    }

    fn of(is_visitor: bool, limits: &Limits) -> Self {
        if is_visitor { Self::of_visitor(&limits.visits) } else { Self::of_member(limits) }
    }

    fn of_member(limits: &Limits) -> Self {
        Self::new(limits.frame_rate, limits.part_rate, limits.byte_rate)
    }

    fn of_visitor(limits: &VisitLimits) -> Self {
        Self::new(limits.frame_rate, limits.part_rate, limits.byte_rate)
    }

    /// How long to pause after this.
    fn take(&mut self, frames: f64, bytes: usize, parts: usize) -> Duration {
        let now = Instant::now();
        let waits =
            [self.frames.take(frames, now), self.parts.take(parts as f64, now), self.bytes.take(bytes as f64, now)];
        waits.into_iter().max().unwrap_or_default()
    }
}

/// Why a member's connection ends.
enum End {
    /// It left, or its socket broke.
    Left(Departure),
    /// What it did puts it out.
    Evicted(Eviction),
    /// The room put it out, or the relay stops.
    Closing(Closing),
}

impl Member {
    fn new(rooms: &Arc<Rooms>, activity: Arc<Activity>, seat: Seat) -> Self {
        let is_visitor = seat.room.is_visitor(seat.route);
        let rates = Rates::of(is_visitor, &rooms.limits);
        Self { rooms: rooms.clone(), activity, seat, is_visitor, rates }
    }

    /// Whether it is a visitor. A visitor that is let in is a member from its next message on, and who waits at the door by an invite
    /// that is taken back is a visitor.
    fn visits(&mut self) -> bool {
        let is_visitor = self.seat.room.is_visitor(self.seat.route);
        if is_visitor != self.is_visitor {
            self.is_visitor = is_visitor;
            self.rates = Rates::of(is_visitor, &self.rooms.limits);
        }
        is_visitor
    }

    async fn run(&mut self, mut sink: SplitSink<WebSocket, Message>, mut stream: SplitStream<WebSocket>) {
        let outbox = self.seat.outbox.clone();
        // Nothing more is read from a member once its connection is to close.
        let end = tokio::select! {
            end = write(&mut sink, &outbox) => end,
            end = self.read(&mut stream) => end,
        };
        // A stall and a full memory show as a broken socket.
        let end = match end {
            End::Left(_) if self.activity.has_stalled() => End::Evicted(Eviction::SlowReceiver),
            End::Left(_) if self.activity.is_crowded_out() => End::Evicted(Eviction::RelayFull),
            end => end,
        };
        let closing = match end {
            End::Left(reason) => {
                self.seat.room.leave(self.seat.route, reason, Instant::now());
                Closing { control: None, code: 1000 }
            }
            End::Evicted(reason) => {
                self.rooms.metrics.evicted(reason);
                let departure = if reason == Eviction::Silent { Departure::Silent } else { Departure::Evicted };
                self.seat.room.leave(self.seat.route, departure, Instant::now());
                Closing::evicted(reason)
            }
            End::Closing(closing) => {
                self.seat.room.leave(self.seat.route, Departure::Closed, Instant::now());
                closing
            }
        };
        outbox.abort(closing.clone());
        part(sink, stream, closing, &self.activity, self.rooms.limits.close_timeout).await;
    }

    async fn read(&mut self, stream: &mut SplitStream<WebSocket>) -> End {
        let limits = self.rooms.limits.clone();
        let (mut activity, mut missed) = (self.activity.count(), 0);
        let mut pings = interval(limits.ping_every);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = stream.next() => {
                    match &message {
                        Some(Ok(message)) => finish(&self.activity, message),
                        // What is left goes with the connection, within `close_timeout`. If it counted until then, the
                        // news that this member left might not fit for others of the same address.
                        Some(Err(_)) | None => self.activity.finish_message(),
                    }
                    match message {
                        // A visitor would pay for such a message until it counted as silent.
                        Some(Ok(message @ (Message::Binary(_) | Message::Text(_)))) if self.is_far_too_long(&message) => {
                            return End::Evicted(Eviction::FrameTooLong);
                        }
                        Some(Ok(Message::Binary(frame))) => {
                            let length = frame.len();
                            match self.handle_message(frame) {
                                Ok(parts) => self.throttle(length, parts).await,
                                Err(reason) => return End::Evicted(reason),
                            }
                        }
                        Some(Ok(Message::Text(request))) => {
                            self.seat.room.heard(self.seat.route);
                            self.handle_request(&request);
                            self.throttle(request.len(), 0).await;
                        }
                        Some(Ok(Message::Ping(_))) => self.throttle_frames(PING_FRAMES, 0, 0).await,
                        Some(Ok(Message::Pong(_))) => self.throttle(0, 0).await,
                        Some(Ok(Message::Close(_))) | None => return End::Left(Departure::Closed),
                        Some(Err(error)) if is_over_limit(&error) => return End::Evicted(Eviction::FrameTooLong),
                        Some(Err(_)) => return End::Left(Departure::Closed),
                    }
                }
                _ = pings.tick() => {
                    let before = std::mem::replace(&mut activity, self.activity.count());
                    missed = if activity == before { missed + 1 } else { 0 };
                    // While frames wait, the writer notices by itself whether the member takes them.
                    if missed > limits.missed_pings && !self.seat.outbox.has_frames() {
                        return End::Evicted(Eviction::Silent);
                    }
                    // If it does not fit, the member has missed a thousand others.
                    let _ = self.seat.outbox.push(Message::Ping(Bytes::new()));
                }
            }
        }
    }

    /// Longest message that it may send now.
    fn frame_bytes(&mut self) -> usize {
        let is_visitor = self.visits();
        let limits = &self.rooms.limits;
        if is_visitor { limits.visits.frame_bytes } else { limits.frame_bytes }
    }

    /// As [`Limits::max_message_bytes`] for members, which the WebSocket keeps.
    fn is_far_too_long(&mut self, message: &Message) -> bool {
        let bytes = match message {
            Message::Binary(bytes) => bytes.len(),
            Message::Text(text) => text.len(),
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) => 0,
        };
        bytes > self.frame_bytes().saturating_mul(2)
    }

    /// Pauses after a message as long as the rate limits ask for, and notifies the member.
    async fn throttle(&mut self, bytes: usize, parts: usize) {
        self.throttle_frames(1.0, bytes, parts).await;
    }

    async fn throttle_frames(&mut self, frames: f64, bytes: usize, parts: usize) {
        let wait = self.rates.take(frames, bytes, parts);
        if wait >= Duration::from_millis(1) {
            self.rooms.metrics.senders_limited.inc();
            self.answer(&Control::Limited { wait_ms: wait.as_millis() as u64 });
            sleep(wait).await;
        }
    }

    /// Forwards a binary message, or each of its parts. Returns how many parts it had.
    fn handle_message(&mut self, message: Bytes) -> Result<usize, Eviction> {
        self.rooms.metrics.frames_received.inc();
        if message.len() > self.frame_bytes() {
            self.reject(BadFrame::TooLong);
            return Ok(0);
        }
        let Some((Route::PARTS, body)) = Route::split(&message) else {
            return self.forward(message).map(|()| 0);
        };
        let parts = match split_parts(body) {
            Ok(parts) => parts,
            Err(reason) => {
                self.reject(reason);
                return Ok(0);
            }
        };
        for (route, frame) in &parts {
            self.forward(route.prepend(frame).into())?;
        }
        Ok(parts.len())
    }

    fn forward(&self, frame: Bytes) -> Result<(), Eviction> {
        let metrics = &self.rooms.metrics;
        match self.seat.room.forward(self.seat.route, &self.seat.outbox, frame) {
            Forwarded::Queued => {}
            Forwarded::Evict(reason) => return Err(reason),
            Forwarded::Bad(reason) => self.reject(reason),
            Forwarded::Undeliverable(route) => {
                metrics.frames_undeliverable.inc();
                self.answer(&Control::Undeliverable { route });
            }
        }
        Ok(())
    }

    fn handle_request(&self, request: &Utf8Bytes) {
        if request.len() > MAX_REQUEST_BYTES {
            return self.reject(BadFrame::NotControl);
        }
        match serde_json::from_str(request) {
            Ok(Request::Ping { nonce }) => self.answer(&Control::Pong { nonce }),
            Ok(Request::Mute { route }) => self.seat.room.mute(self.seat.route, route),
            Ok(request) if self.handle_owner(&request) => {}
            Ok(_) | Err(_) => self.reject(BadFrame::NotControl),
        }
    }

    /// What only the owner may ask for. False if it may not.
    fn handle_owner(&self, request: &Request) -> bool {
        let (room, me) = (&self.seat.room, self.seat.route);
        match request {
            Request::Listing { title, visible } => room.set_listing(me, self.rooms.listing(title, *visible)),
            Request::Revoked { invites } => room.set_revoked(me, invites),
            Request::TakenBack { invites } => room.set_taken_back(me, invites),
            Request::Links { join_key, for_returning, for_nobody } => {
                room.set_links(me, *join_key, for_returning, for_nobody)
            }
            Request::LetIn { route } => room.let_in(me, *route),
            Request::PutOut { route } => room.expel(me, *route),
            Request::Enter { .. } | Request::Ping { .. } | Request::Mute { .. } => false,
        }
    }

    fn reject(&self, reason: BadFrame) {
        self.rooms.metrics.frames_bad.inc();
        self.answer(&Control::BadFrame { reason, message: reason.sentence().into() });
    }

    fn answer(&self, control: &Control) {
        self.seat.room.send_control(self.seat.route, control);
    }
}

/// Sends what is in the outbox until the connection closes.
async fn write(sink: &mut SplitSink<WebSocket, Message>, outbox: &Outbox) -> End {
    loop {
        match outbox.next().await {
            Action::Send(mut batch) => {
                let send = async {
                    for message in batch.messages() {
                        sink.feed(message).await?;
                    }
                    sink.flush().await
                };
                tokio::select! {
                    biased;
                    sent = send => match sent {
                        Ok(()) => outbox.sent(batch),
                        Err(_) => return End::Left(Departure::Closed),
                    },
                    () = outbox.was_aborted() => {}
                }
            }
            Action::Close(closing) => return End::Closing(closing),
        }
    }
}

/// Tells the other side why the connection ends. Meanwhile, reads and drops what is still on its way: closing a socket with
/// unread bytes resets it, and the other side would lose the last message. Slowly, so that somebody who sends on and on is
/// no work.
async fn part(
    mut sink: SplitSink<WebSocket, Message>,
    mut stream: SplitStream<WebSocket>,
    closing: Closing,
    activity: &Activity,
    close_timeout: Duration,
) {
    activity.read_slowly();
    let tell = async {
        if let Some(control) = &closing.control {
            sink.send(control_text(control)).await?;
        }
        sink.send(closing.close_frame()).await
    };
    let drain = async {
        while let Some(Ok(message)) = stream.next().await {
            finish(activity, &message);
        }
    };
    // A member that does not take it in time goes without.
    let _ = timeout(close_timeout, async { tokio::join!(tell, drain) }).await;
}

/// Returns what a received message was counted with. Control frames also come between the fragments of a message, which the
/// WebSocket keeps.
fn finish(activity: &Activity, message: &Message) {
    match message {
        Message::Ping(payload) | Message::Pong(payload) => activity.finish_control(payload.len()),
        Message::Text(_) | Message::Binary(_) | Message::Close(_) => activity.finish_message(),
    }
}

/// Whether reading failed because of a message over [`Limits::max_message_bytes`]. axum hides the error type of the
/// WebSocket library, so only the text tells; a test notices if it changes.
fn is_over_limit(error: &axum::Error) -> bool {
    error.to_string().starts_with("Space limit exceeded")
}
