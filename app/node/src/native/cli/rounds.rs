//! For measurements: the same question several times, from one or several conversations at once.

use std::collections::BTreeSet;

use potluck_panel::{AnswerPart, AnswerStop, PlanStatus, PromptRequest, RequestId, Status, Timings, ToNode, ToPage};
use potluck_text::texts;
use serde_json::json;

use super::{Options, Session};

/// How a room is measured.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
pub struct RoundOptions {
    /// For measurements: how many times the prompt is asked
    #[arg(long, hide = true, value_name = "N", default_value_t = 1)]
    pub rounds: u32,
    /// For measurements: from how many conversations at once
    #[arg(long, hide = true, value_name = "N", default_value_t = 1)]
    pub conversations: u32,
    /// For measurements: wait until this many devices hold experts for others
    #[arg(long, hide = true, value_name = "N", default_value_t = 0)]
    pub holders: usize,
}

impl Default for RoundOptions {
    fn default() -> Self {
        Self { rounds: 1, conversations: 1, holders: 0 }
    }
}

impl RoundOptions {
    /// More than one question is asked.
    pub fn several(&self) -> bool {
        self.rounds > 1 || self.conversations > 1
    }
}

/// Devices that hold experts for a stage of another device.
pub(super) fn holders(status: &Status) -> usize {
    let stages = status.plan.iter().flat_map(|plan| &plan.stages);
    stages.flat_map(|stage| &stage.expert_holders).map(|holding| holding.peer).collect::<BTreeSet<_>>().len()
}

/// The room answers, with the holders that a measurement needs.
pub(super) fn is_ready(status: &Status, options: &RoundOptions) -> bool {
    let is_up = status.plan.as_ref().is_some_and(|plan| plan.state == PlanStatus::Up);
    is_up && holders(status) >= options.holders
}

impl Session {
    /// Asks the prompt as often as the options say, each time in new conversations; prints a line of JSON for each round to
    /// standard output.
    ///
    /// # Errors
    /// A sentence on why an answer failed.
    pub(super) async fn rounds(&mut self, prompt: &PromptRequest, options: &Options) -> Result<(), String> {
        let RoundOptions { rounds, conversations, .. } = options.rounds;
        for round in 0..rounds {
            let first = 1 + round * conversations;
            let timings = self.ask_at_once(prompt, first, conversations).await?;
            let millis: Vec<f64> = timings.iter().map(Timings::millis_a_token).collect();
            let (tokens, longest) = timings.iter().fold((0, 0f64), |(tokens, longest), timings| {
                (tokens + timings.answer_tokens.saturating_sub(1), longest.max(timings.decode_ms))
            });
            let plan = self.status.plan.as_ref();
            let line = json!({
                "round": round,
                "token_ms": millis,
                "tokens_per_second": if longest > 0.0 { f64::from(tokens) * 1e3 / longest } else { 0.0 },
                "first_token_ms": timings.iter().map(|timings| timings.first_token_ms).collect::<Vec<f64>>(),
                "prompt_tokens": timings.first().map(|timings| timings.prompt_tokens),
                "stages": plan.map(|plan| plan.stages.len()),
                "holders": holders(&self.status),
                "expert_phases": plan.and_then(|plan| Some(&plan.experts.as_ref()?.phases)),
                "expected_token_ms": plan.map(|plan| plan.token_ms),
                "members": self.status.peers.len(),
            });
            println!("{line}");
        }
        Ok(())
    }

    /// Asks in several conversations at once; the timings of all answers.
    async fn ask_at_once(&mut self, prompt: &PromptRequest, first: u32, count: u32) -> Result<Vec<Timings>, String> {
        for request in first..first + count {
            let conversation = format!("terminal {request}");
            self.page(ToNode::Prompt(PromptRequest { request: RequestId(request), conversation, ..prompt.clone() }));
        }
        let mut all = Vec::new();
        while all.len() < count as usize {
            match self.next().await? {
                ToPage::Answer { event: AnswerPart::End { stop: AnswerStop::Failed(sentence), .. }, .. } => {
                    return Err(sentence);
                }
                ToPage::Answer { event: AnswerPart::End { timings, .. }, .. } => all.push(timings),
                ToPage::Answer { event: AnswerPart::Unknown, .. } => {
                    return Err(texts().answer.question_lost.to_owned());
                }
                _ => {}
            }
        }
        Ok(all)
    }
}
