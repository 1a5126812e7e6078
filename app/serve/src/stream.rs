//! Answers as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response, sse};
use futures::FutureExt;
use futures::future::BoxFuture;
use potluck_text::texts;
use tokio::time::timeout;

use crate::answer::Asking;
use crate::api::{Event, Head, Shape};
use crate::error::ApiError;
use crate::question::Usage;
use crate::reader::Piece;

/// After this silence, a comment shows that the connection is alive. Until then, an error can still be an HTTP status.
pub(crate) const SILENCE: Duration = Duration::from_secs(10);
/// Tells a proxy (nginx) to hand on what it gets at once.
const NO_BUFFERING: (&str, &str) = ("x-accel-buffering", "no");
/// The last event of a stream that succeeded, in OpenAI's APIs.
const DONE: &str = "[DONE]";

/// A stream of events that is being written.
struct Writing {
    stage: Stage,
    /// How the answers are written, each in turn; the first one is written now.
    shapes: VecDeque<Box<dyn Shape>>,
    /// Of the answers so far.
    usage: Option<Usage>,
    head: Head,
    /// Text was sent.
    has_text: bool,
    ready: VecDeque<Event>,
}

/// How far an answer is.
enum Stage {
    /// It waits for its turn, and for its first piece.
    Begins(BoxFuture<'static, Result<(Asking, Piece), ApiError>>),
    /// Pieces come.
    GoesOn(Box<Asking>),
    /// Nothing more comes.
    IsOver,
}

/// Streams answers, one after another, each written in its own shape. They may still wait for their turn. Nothing is sent until the room begins to answer or [`SILENCE`] is over.
///
/// # Errors
/// The room does not take the question.
pub(crate) async fn respond(asking: Asking, shapes: Vec<Box<dyn Shape>>, head: Head) -> Result<Response, ApiError> {
    let mut begins = begin(asking);
    let mut shapes = VecDeque::from(shapes);
    let ready = shapes.front_mut().map_or_else(Vec::new, |shape| shape.begin(&head)).into();
    let begun = timeout(SILENCE, &mut begins).await;
    let mut writing = Writing { stage: Stage::Begins(begins), shapes, usage: None, head, has_text: false, ready };
    if let Ok(begun) = begun {
        writing.begin(begun?)?;
    }
    let events = futures::stream::unfold(writing, |mut writing| async move {
        let event = writing.next().await?;
        Some((Ok::<_, Infallible>(sse_event(event)), writing))
    });
    let keep_alive = KeepAlive::new().interval(SILENCE);
    Ok(([NO_BUFFERING], Sse::new(events).keep_alive(keep_alive)).into_response())
}

/// The next answer with its first piece.
fn begin(mut asking: Asking) -> BoxFuture<'static, Result<(Asking, Piece), ApiError>> {
    async move {
        let piece = asking.next().await?.next().await?;
        Ok((asking, piece))
    }
    .boxed()
}

fn sse_event(event: Event) -> sse::Event {
    match event {
        Event::Json(name, json) => {
            let event = sse::Event::default().data(json.to_string());
            match name {
                Some(name) => event.event(name),
                None => event,
            }
        }
        Event::Done => sse::Event::default().data(DONE),
    }
}

impl Writing {
    async fn next(&mut self) -> Option<Event> {
        while self.ready.is_empty() {
            let written = match &mut self.stage {
                Stage::IsOver => return None,
                Stage::GoesOn(asking) => match asking.newest() {
                    Some(answer) => answer.next().await.and_then(|piece| self.write(piece)),
                    None => Err(ApiError::ended()),
                },
                Stage::Begins(begins) => begins.await.and_then(|begun| self.begin(begun)),
            };
            if let Err(error) = written {
                self.ready.extend(self.shapes.front_mut().into_iter().flat_map(|shape| shape.fail(&self.head, &error)));
                self.stage = Stage::IsOver;
            }
        }
        self.ready.pop_front()
    }

    /// The first piece is here.
    fn begin(&mut self, (asking, piece): (Asking, Piece)) -> Result<(), ApiError> {
        self.stage = Stage::GoesOn(Box::new(asking));
        self.write(piece)
    }

    /// Writes the events of a piece.
    fn write(&mut self, piece: Piece) -> Result<(), ApiError> {
        let Some(shape) = self.shapes.front_mut() else { return Err(ApiError::ended()) };
        match piece {
            Piece::Taken(usage) => self.ready.extend(shape.taken(&self.head, usage)),
            Piece::Logprobs(logprobs) => shape.scores(logprobs),
            Piece::Text(channel, text) => {
                self.has_text = true;
                self.ready.extend(shape.more(&self.head, channel, &text));
            }
            Piece::Call(call) => {
                self.has_text = true;
                self.ready.extend(shape.call(&self.head, &call));
            }
            // What a program has read cannot be taken back.
            Piece::Void if self.has_text => return Err(ApiError::Failed(texts().api.void().to_owned())),
            Piece::Void => shape.void(),
            Piece::End(finish, usage) => {
                self.ready.extend(shape.end(&self.head, &finish, usage));
                let usage = self.usage.map_or(usage, |before| before.and(usage));
                self.usage = Some(usage);
                self.end_choice(usage);
            }
        }
        Ok(())
    }

    /// One answer is complete: the next one begins, or the stream ends.
    fn end_choice(&mut self, usage: Usage) {
        let last = self.shapes.pop_front();
        let stage = std::mem::replace(&mut self.stage, Stage::IsOver);
        if let (Some(shape), Stage::GoesOn(asking)) = (self.shapes.front_mut(), stage) {
            self.ready.extend(shape.begin(&self.head));
            (self.stage, self.has_text) = (Stage::Begins(begin(*asking)), false);
        } else {
            self.ready.extend(last.into_iter().flat_map(|mut shape| shape.close(&self.head, usage)));
        }
    }
}
