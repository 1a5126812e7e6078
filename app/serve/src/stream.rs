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

use crate::answer::Answer;
use crate::api::{Event, Head, Shape};
use crate::error::ApiError;
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
    shape: Box<dyn Shape>,
    head: Head,
    /// Text was sent.
    has_text: bool,
    ready: VecDeque<Event>,
}

/// How far an answer is.
enum Stage {
    /// It waits for its turn, and for its first piece.
    Begins(BoxFuture<'static, Result<(Answer, Piece), ApiError>>),
    /// Pieces come.
    GoesOn(Box<Answer>),
    /// Nothing more comes.
    IsOver,
}

/// Streams an answer, which may still wait for its turn. Nothing is sent until the room begins to answer or [`SILENCE`] is over.
///
/// # Errors
/// The room does not take the question.
pub(crate) async fn respond(
    asking: impl Future<Output = Result<Answer, ApiError>> + Send + 'static,
    mut shape: Box<dyn Shape>,
    head: Head,
) -> Result<Response, ApiError> {
    let mut begins = async move {
        let mut answer = asking.await?;
        let piece = answer.next().await?;
        Ok((answer, piece))
    }
    .boxed();
    let ready = shape.begin(&head).into();
    let begun = timeout(SILENCE, &mut begins).await;
    let mut writing = Writing { stage: Stage::Begins(begins), shape, head, has_text: false, ready };
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
                Stage::GoesOn(answer) => answer.next().await.and_then(|piece| self.write(piece)),
                Stage::Begins(begins) => begins.await.and_then(|begun| self.begin(begun)),
            };
            if let Err(error) = written {
                self.ready.extend(self.shape.fail(&self.head, &error));
                self.stage = Stage::IsOver;
            }
        }
        self.ready.pop_front()
    }

    /// The first piece is here.
    fn begin(&mut self, (answer, piece): (Answer, Piece)) -> Result<(), ApiError> {
        self.stage = Stage::GoesOn(Box::new(answer));
        self.write(piece)
    }

    /// Writes the events of a piece.
    fn write(&mut self, piece: Piece) -> Result<(), ApiError> {
        match piece {
            Piece::Taken(usage) => self.ready.extend(self.shape.taken(&self.head, usage)),
            Piece::Text(channel, text) => {
                self.has_text = true;
                self.ready.extend(self.shape.more(&self.head, channel, &text));
            }
            Piece::Call(call) => {
                self.has_text = true;
                self.ready.extend(self.shape.call(&self.head, &call));
            }
            // What a program has read cannot be taken back.
            Piece::Void if self.has_text => return Err(ApiError::Failed(texts().api.void().to_owned())),
            Piece::Void => {}
            Piece::End(finish, usage) => {
                self.ready.extend(self.shape.end(&self.head, &finish, usage));
                self.stage = Stage::IsOver;
            }
        }
        Ok(())
    }
}
