//! Asking a room and waiting for it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use potluck_panel::{AnswerPart, AnswerStop, PromptRequest, RequestId, Status, Timings, ToNode, ToPage};
use potluck_terminal::Session;
use potluck_text::texts;

use super::holder_changes::HolderChanges;
use super::recording::{self, Line};
use super::report::holders;

/// A room has settled after so long without a change.
const SETTLED: Duration = Duration::from_secs(3);

/// What came of a question that was asked in several conversations.
pub struct Asked {
    /// Of each answer.
    pub timings: Vec<Timings>,
    /// Milliseconds between the texts of each answer.
    pub gaps: Vec<f64>,
    /// Holders of experts that went and came meanwhile.
    pub changes: HolderChanges,
}

/// Asks in several conversations at once, each with a request of its own.
pub async fn ask_at_once(
    session: &mut Session,
    question: &PromptRequest,
    requests: Range<u32>,
) -> Result<Asked, String> {
    for request in requests.clone() {
        let conversation = format!("terminal {request}");
        session.page(ToNode::Prompt(PromptRequest { request: RequestId(request), conversation, ..question.clone() }));
    }
    let (mut all, mut gaps, mut last) = (Vec::new(), Vec::new(), BTreeMap::new());
    let mut changes = HolderChanges::default();
    while all.len() < requests.len() {
        let message = session.next().await?;
        if matches!(message, ToPage::Status(_)) {
            changes.note(&session.status);
        }
        let ToPage::Answer { request, event } = message else { continue };
        match event {
            AnswerPart::End { stop: AnswerStop::Failed(sentence) | AnswerStop::Refused(sentence), .. } => {
                return Err(sentence);
            }
            AnswerPart::End { timings, .. } => all.push(timings),
            AnswerPart::Unknown => return Err(texts().answer.question_lost().to_owned()),
            AnswerPart::Recovering(reason) => eprintln!("{reason}"),
            AnswerPart::Text { .. } => {
                let now = Instant::now();
                let before = last.insert(request, now);
                gaps.extend(before.map(|before| (now - before).as_secs_f64() * 1e3));
            }
            _ => {}
        }
    }
    Ok(Asked { timings: all, gaps, changes })
}

/// What the node has recorded.
pub async fn recorded(session: &mut Session) -> Result<Vec<Line>, String> {
    session.page(ToNode::Trace);
    loop {
        if let ToPage::Trace(json) = session.next().await? {
            return recording::lines(&json);
        }
    }
}

/// Waits until the plan has not changed, and nobody has loaded anything, for a while.
pub async fn settle(session: &mut Session) -> Result<(), String> {
    let state = |status: &Status| {
        let plan = status.plan.as_ref().map(|plan| (plan.epoch, plan.state));
        let is_loading = status.peers.iter().any(|member| member.loading.is_some());
        (plan, holders(status), status.peers.len(), is_loading)
    };
    loop {
        let before = state(&session.status);
        pause(session, SETTLED).await?;
        if state(&session.status) == before && !before.3 {
            return Ok(());
        }
    }
}

/// Lets time pass.
pub async fn pause(session: &mut Session, time: Duration) -> Result<(), String> {
    let end = tokio::time::sleep(time);
    tokio::pin!(end);
    loop {
        tokio::select! {
            message = session.next() => drop(message?),
            () = &mut end => return Ok(()),
        }
    }
}
