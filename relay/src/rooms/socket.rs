//! One member's connection, from the first message to the last.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::Rooms;
use super::id::RoomId;
use super::outbox::{End, Next, Outbox};
use super::room::{Forwarded, Room, evicted, text};
use crate::limits::Limits;
use crate::net::Activity;
use crate::protocol::{BadFrame, Control, Departure, Eviction, Request, Route};
use crate::rate::Bucket;

/// Who connects, to what, and how.
#[derive(Debug)]
pub struct Arrival {
    /// Where from.
    pub address: IpAddr,
    /// The signs of life on this connection.
    pub activity: Arc<Activity>,
    /// The room's id as it stood in the path.
    pub room: String,
    /// Whether an unknown room is to be made.
    pub create: bool,
}

/// Carries one connection until it ends.
pub async fn serve(socket: WebSocket, arrival: Arrival, rooms: Arc<Rooms>) {
    let (sink, stream) = socket.split();
    match rooms.enter(arrival.address, &arrival.room, arrival.create, Instant::now()) {
        Err(refusal) => {
            rooms.metrics.members_refused.inc();
            let control = Control::Refused { reason: refusal, message: refusal.sentence().into() };
            refuse(sink, stream, End { control: Some(control), code: refusal.close_code() }, &rooms.limits).await;
        }
        Ok((room, route, outbox)) => {
            let mut member = Member::new(&rooms, arrival.activity, room, route, outbox);
            member.run(sink, stream).await;
        }
    }
}

async fn refuse(mut sink: SplitSink<WebSocket, Message>, stream: SplitStream<WebSocket>, end: End, limits: &Limits) {
    say_goodbye(&mut sink, end, limits.farewell).await;
    drain(stream, limits.farewell).await;
}

/// A member inside its room.
struct Member {
    rooms: Arc<Rooms>,
    activity: Arc<Activity>,
    room: Arc<Room>,
    route: Route,
    outbox: Arc<Outbox>,
    frames: Bucket,
    bytes: Bucket,
}

/// Why reading stopped.
enum Stopped {
    Left(Departure),
    PutOut(Eviction),
}

impl Member {
    fn new(rooms: &Arc<Rooms>, activity: Arc<Activity>, room: Arc<Room>, route: Route, outbox: Arc<Outbox>) -> Self {
        let now = Instant::now();
        let frames = Bucket::new(rooms.limits.frame_rate, now);
        let bytes = Bucket::new(rooms.limits.byte_rate, now);
        Self { rooms: rooms.clone(), activity, room, route, outbox, frames, bytes }
    }

    async fn run(&mut self, sink: SplitSink<WebSocket, Message>, mut stream: SplitStream<WebSocket>) {
        let mut writer = tokio::spawn(write(sink, self.outbox.clone(), self.rooms.limits.farewell));
        let stopped = tokio::select! {
            stopped = self.read(&mut stream) => Some(stopped),
            // The writer ends by itself when the room has put this member out, the relay stops or the socket broke.
            _ = &mut writer => None,
        };
        let leave = |reason| self.room.leave(self.route, reason, Instant::now());
        match stopped {
            None => leave(Departure::Closed),
            Some(Stopped::Left(reason)) => {
                leave(reason);
                self.outbox.cut(End { control: None, code: 1000 });
            }
            Some(Stopped::PutOut(reason)) => {
                let metrics = &self.rooms.metrics;
                match reason {
                    Eviction::Silent => metrics.evicted_silent.inc(),
                    Eviction::FrameTooLong => metrics.evicted_frame.inc(),
                    Eviction::SlowReceiver => metrics.evicted_slow.inc(),
                }
                leave(if reason == Eviction::Silent { Departure::Silent } else { Departure::Evicted });
                self.outbox.cut(evicted(reason));
            }
        }
        if !writer.is_finished() && timeout(2 * self.rooms.limits.farewell, &mut writer).await.is_err() {
            writer.abort();
        }
        drain(stream, self.rooms.limits.farewell).await;
    }

    async fn read(&mut self, stream: &mut SplitStream<WebSocket>) -> Stopped {
        let limits = self.rooms.limits.clone();
        let (mut signs, mut missed) = (self.activity.signs(), 0);
        let mut pings = interval(limits.ping_every);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = stream.next() => match message {
                    Some(Ok(Message::Binary(frame))) => {
                        let length = frame.len();
                        self.take_frame(frame);
                        self.pace(length).await;
                    }
                    Some(Ok(Message::Text(request))) => {
                        self.take_request(&request);
                        self.pace(request.len()).await;
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => self.pace(0).await,
                    Some(Ok(Message::Close(_))) | None => return Stopped::Left(Departure::Closed),
                    Some(Err(error)) if is_over_limit(&error) => return Stopped::PutOut(Eviction::FrameTooLong),
                    Some(Err(_)) => return Stopped::Left(Departure::Closed),
                },
                _ = pings.tick() => {
                    let before = std::mem::replace(&mut signs, self.activity.signs());
                    missed = if signs == before { missed + 1 } else { 0 };
                    if missed > limits.missed_pings {
                        return Stopped::PutOut(Eviction::Silent);
                    }
                    // A ping that finds no space is not needed: the queue is full of other signs of life.
                    let _ = self.outbox.push(Message::Ping(Bytes::new()));
                }
            }
        }
    }

    /// Waits as long as the rates ask for after a message, and says so.
    async fn pace(&mut self, bytes: usize) {
        let now = Instant::now();
        let wait = self.frames.take(1.0, now).max(self.bytes.take(bytes as f64, now));
        if wait >= Duration::from_millis(1) {
            self.rooms.metrics.senders_limited.inc();
            self.room.tell(self.route, &Control::Limited { wait_ms: wait.as_millis() as u64 });
            sleep(wait).await;
        }
    }

    fn take_frame(&self, frame: Bytes) {
        let metrics = &self.rooms.metrics;
        metrics.frames_received.inc();
        if frame.len() > self.rooms.limits.frame_bytes {
            return self.complain(BadFrame::TooLong);
        }
        match self.room.forward(self.route, frame) {
            Forwarded::To(_) => {}
            Forwarded::TooShort => self.complain(BadFrame::TooShort),
            Forwarded::Undeliverable(route) => {
                metrics.frames_undeliverable.inc();
                self.room.tell(self.route, &Control::Undeliverable { route });
            }
        }
    }

    fn take_request(&self, request: &Utf8Bytes) {
        match serde_json::from_str(request) {
            Ok(Request::Ping { nonce }) => self.room.tell(self.route, &Control::Pong { nonce }),
            Ok(Request::Listing { owner, title, visible }) if RoomId::of_owner(&owner) == *self.room.id() => {
                self.room.list(self.rooms.title(&title), visible);
            }
            Ok(Request::Listing { .. }) | Err(_) => self.complain(BadFrame::NotControl),
        }
    }

    fn complain(&self, reason: BadFrame) {
        self.rooms.metrics.frames_bad.inc();
        self.room.tell(self.route, &Control::BadFrame { reason, message: reason.sentence().into() });
    }
}

/// Sends what the outbox holds until its end.
async fn write(mut sink: SplitSink<WebSocket, Message>, outbox: Arc<Outbox>, farewell: Duration) {
    loop {
        match outbox.next().await {
            Next::Send(message) => tokio::select! {
                biased;
                sent = sink.send(message) => if sent.is_err() { return },
                () = outbox.was_cut() => {}
            },
            Next::Stop(end) => return say_goodbye(&mut sink, end, farewell).await,
        }
    }
}

async fn say_goodbye(sink: &mut SplitSink<WebSocket, Message>, end: End, farewell: Duration) {
    let words = async {
        if let Some(control) = &end.control {
            sink.send(text(control)).await?;
        }
        sink.send(end.close_frame()).await
    };
    // Who does not take its goodbye in time goes without.
    let _ = timeout(farewell, words).await;
}

/// Reads and drops what is still on its way. Closing a socket with unread bytes resets it, and the other side would lose
/// the goodbye.
async fn drain(mut stream: SplitStream<WebSocket>, farewell: Duration) {
    let _ = timeout(farewell, async { while let Some(Ok(_)) = stream.next().await {} }).await;
}

/// Whether reading failed because of a message over [`Limits::readable_bytes`]. The WebSocket library's error type is not
/// part of axum's interface, its words are all there is to go by; a test holds on to them.
fn is_over_limit(error: &axum::Error) -> bool {
    error.to_string().starts_with("Space limit exceeded")
}
