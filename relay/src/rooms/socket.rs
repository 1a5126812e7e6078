//! The connection of one member, from the first message to the last.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use potluck_relay_api::{BadFrame, Control, Departure, Eviction, Refusal, Request, Route};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::Rooms;
use super::id::RoomId;
use super::outbox::{Action, Closing, Outbox};
use super::room::{Forwarded, Room, control_text, eviction};
use crate::limits::Limits;
use crate::net::Activity;
use crate::rate::TokenBucket;

/// A request to join a room.
#[derive(Debug)]
pub struct JoinRequest {
    /// The address of the client.
    pub address: IpAddr,
    /// Whether the connection is alive.
    pub activity: Arc<Activity>,
    /// The room id from the path, not checked yet.
    pub room: String,
    /// Whether to create a room that does not exist.
    pub create: bool,
}

/// Serves one connection until it ends.
pub async fn serve(socket: WebSocket, request: JoinRequest, rooms: Arc<Rooms>) {
    let (sink, stream) = socket.split();
    match rooms.join(request.address, &request.room, request.create, Instant::now()) {
        Err(refusal) => {
            rooms.metrics.members_refused.inc();
            refuse(sink, stream, refusal, &rooms.limits).await;
        }
        Ok((room, route, outbox)) => {
            let mut member = Member::new(&rooms, request.activity, room, route, outbox);
            member.run(sink, stream).await;
        }
    }
}

async fn refuse(
    mut sink: SplitSink<WebSocket, Message>,
    stream: SplitStream<WebSocket>,
    reason: Refusal,
    limits: &Limits,
) {
    let control = Control::Refused { reason, message: reason.sentence().into() };
    close(&mut sink, Closing { control: Some(control), code: reason.close_code() }, limits.close_timeout).await;
    drain(stream, limits.close_timeout).await;
}

/// A member in its room.
struct Member {
    rooms: Arc<Rooms>,
    activity: Arc<Activity>,
    room: Arc<Room>,
    route: Route,
    outbox: Arc<Outbox>,
    frames: TokenBucket,
    bytes: TokenBucket,
}

/// Why reading ended.
enum ReadEnd {
    Left(Departure),
    Evicted(Eviction),
}

impl Member {
    fn new(rooms: &Arc<Rooms>, activity: Arc<Activity>, room: Arc<Room>, route: Route, outbox: Arc<Outbox>) -> Self {
        let now = Instant::now();
        let frames = TokenBucket::new(rooms.limits.frame_rate, now);
        let bytes = TokenBucket::new(rooms.limits.byte_rate, now);
        Self { rooms: rooms.clone(), activity, room, route, outbox, frames, bytes }
    }

    async fn run(&mut self, sink: SplitSink<WebSocket, Message>, mut stream: SplitStream<WebSocket>) {
        let mut writer = tokio::spawn(write(sink, self.outbox.clone(), self.rooms.limits.close_timeout));
        let stopped = tokio::select! {
            stopped = self.read(&mut stream) => Some(stopped),
            // The writer ends by itself when the room evicts this member, the relay stops or the socket breaks.
            _ = &mut writer => None,
        };
        let leave = |reason| self.room.leave(self.route, reason, Instant::now());
        match stopped {
            None => leave(Departure::Closed),
            Some(ReadEnd::Left(reason)) => {
                leave(reason);
                self.outbox.abort(Closing { control: None, code: 1000 });
            }
            Some(ReadEnd::Evicted(reason)) => {
                let metrics = &self.rooms.metrics;
                match reason {
                    Eviction::Silent => metrics.evicted_silent.inc(),
                    Eviction::FrameTooLong => metrics.evicted_frame.inc(),
                    Eviction::SlowReceiver => metrics.evicted_slow.inc(),
                    Eviction::Unknown => {}
                }
                leave(if reason == Eviction::Silent { Departure::Silent } else { Departure::Evicted });
                self.outbox.abort(eviction(reason));
            }
        }
        if !writer.is_finished() && timeout(2 * self.rooms.limits.close_timeout, &mut writer).await.is_err() {
            writer.abort();
        }
        drain(stream, self.rooms.limits.close_timeout).await;
    }

    async fn read(&mut self, stream: &mut SplitStream<WebSocket>) -> ReadEnd {
        let limits = self.rooms.limits.clone();
        let (mut activity, mut missed) = (self.activity.count(), 0);
        let mut pings = interval(limits.ping_every);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = stream.next() => match message {
                    Some(Ok(Message::Binary(frame))) => {
                        let length = frame.len();
                        self.handle_frame(frame);
                        self.throttle(length).await;
                    }
                    Some(Ok(Message::Text(request))) => {
                        self.handle_request(&request);
                        self.throttle(request.len()).await;
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => self.throttle(0).await,
                    Some(Ok(Message::Close(_))) | None => return ReadEnd::Left(Departure::Closed),
                    Some(Err(error)) if is_over_limit(&error) => return ReadEnd::Evicted(Eviction::FrameTooLong),
                    Some(Err(_)) => return ReadEnd::Left(Departure::Closed),
                },
                _ = pings.tick() => {
                    let before = std::mem::replace(&mut activity, self.activity.count());
                    missed = if activity == before { missed + 1 } else { 0 };
                    if missed > limits.missed_pings {
                        return ReadEnd::Evicted(Eviction::Silent);
                    }
                    // With a full queue a ping is not needed: the queue itself will show whether the member is alive.
                    let _ = self.outbox.push(Message::Ping(Bytes::new()));
                }
            }
        }
    }

    /// Pauses after a message as long as the rate limits ask for, and notifies the member.
    async fn throttle(&mut self, bytes: usize) {
        let now = Instant::now();
        let wait = self.frames.take(1.0, now).max(self.bytes.take(bytes as f64, now));
        if wait >= Duration::from_millis(1) {
            self.rooms.metrics.senders_limited.inc();
            self.room.send_control(self.route, &Control::Limited { wait_ms: wait.as_millis() as u64 });
            sleep(wait).await;
        }
    }

    fn handle_frame(&self, frame: Bytes) {
        let metrics = &self.rooms.metrics;
        metrics.frames_received.inc();
        if frame.len() > self.rooms.limits.frame_bytes {
            return self.reject(BadFrame::TooLong);
        }
        match self.room.forward(self.route, frame) {
            Forwarded::To(_) => {}
            Forwarded::TooShort => self.reject(BadFrame::TooShort),
            Forwarded::Undeliverable(route) => {
                metrics.frames_undeliverable.inc();
                self.room.send_control(self.route, &Control::Undeliverable { route });
            }
        }
    }

    fn handle_request(&self, request: &Utf8Bytes) {
        match serde_json::from_str(request) {
            Ok(Request::Ping { nonce }) => self.room.send_control(self.route, &Control::Pong { nonce }),
            Ok(Request::Listing { owner, title, visible }) if RoomId::of_owner(&owner) == *self.room.id() => {
                self.room.set_listing(self.rooms.title(&title), visible);
            }
            Ok(Request::Listing { .. }) | Err(_) => self.reject(BadFrame::NotControl),
        }
    }

    fn reject(&self, reason: BadFrame) {
        self.rooms.metrics.frames_bad.inc();
        self.room.send_control(self.route, &Control::BadFrame { reason, message: reason.sentence().into() });
    }
}

/// Sends what is in the outbox until the connection closes.
async fn write(mut sink: SplitSink<WebSocket, Message>, outbox: Arc<Outbox>, close_timeout: Duration) {
    loop {
        match outbox.next().await {
            Action::Send(message) => tokio::select! {
                biased;
                sent = sink.send(message) => if sent.is_err() { return },
                () = outbox.was_aborted() => {}
            },
            Action::Close(closing) => return close(&mut sink, closing, close_timeout).await,
        }
    }
}

async fn close(sink: &mut SplitSink<WebSocket, Message>, closing: Closing, close_timeout: Duration) {
    let send = async {
        if let Some(control) = &closing.control {
            sink.send(control_text(control)).await?;
        }
        sink.send(closing.close_frame()).await
    };
    // A member that does not take it in time goes without.
    let _ = timeout(close_timeout, send).await;
}

/// Reads and drops what is still on its way. Closing a socket with unread bytes resets it, and the other side would lose
/// the last message.
async fn drain(mut stream: SplitStream<WebSocket>, close_timeout: Duration) {
    let _ = timeout(close_timeout, async { while let Some(Ok(_)) = stream.next().await {} }).await;
}

/// Whether reading failed because of a message over [`Limits::max_message_bytes`]. axum hides the error type of the
/// WebSocket library, so only the text tells; a test notices if it changes.
fn is_over_limit(error: &axum::Error) -> bool {
    error.to_string().starts_with("Space limit exceeded")
}
