//! For measurements: the same question several times, from one or several conversations at once.

use std::collections::BTreeSet;

use potluck_panel::{
    AnswerPart, AnswerStop, ExpertsView, Message, PlanStatus, PromptRequest, RequestId, Role, Sealing, Status, Timings,
    ToNode, ToPage,
};
use potluck_text::texts;
use serde_json::{Value, json};

use super::session::REQUEST;
use super::{Options, Session};

/// How a room is measured.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
pub struct RoundOptions {
    /// For measurements: how many times the prompt is asked
    #[arg(long, hide = true, value_name = "N", default_value_t = 1)]
    pub rounds: u32,
    /// For measurements: from how many conversations at once, several numbers one after the other
    #[arg(long, hide = true, value_name = "N,…", value_delimiter = ',', default_value = "1")]
    pub conversations: Vec<u32>,
    /// For measurements: prompts of so many words besides, each answered by one token
    #[arg(long, hide = true, value_name = "N,…", value_delimiter = ',')]
    pub words: Vec<u32>,
    /// For measurements: wait until this many devices hold experts for others
    #[arg(long, hide = true, value_name = "N", default_value_t = 0)]
    pub holders: usize,
    /// For measurements: wait until this many devices are in the room
    #[arg(long, hide = true, value_name = "N", default_value_t = 1)]
    pub members: usize,
}

impl Default for RoundOptions {
    fn default() -> Self {
        Self { rounds: 1, conversations: vec![1], words: Vec::new(), holders: 0, members: 1 }
    }
}

impl RoundOptions {
    /// More than one question is asked.
    pub fn several(&self) -> bool {
        self.rounds > 1 || self.conversations != [1] || !self.words.is_empty()
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
    is_up && status.peers.len() >= options.members && holders(status) >= options.holders
}

/// The parts of a token, milliseconds. Readbacks are those of an empty piece of work, one for each trip and one at the end.
fn parts(experts: &ExpertsView, sync: f64, token: f64) -> Value {
    let readbacks = (experts.trips + 1.0) * sync;
    json!({
        "token": token,
        "own_kernels": experts.own_ms - readbacks,
        "readbacks": readbacks,
        "wire": experts.trips_ms - experts.trips_engine_ms,
        "experts": experts.trips_engine_ms,
        "sum": experts.own_ms + experts.trips_ms,
    })
}

impl Session {
    /// Asks the prompt as often as the options say, each time in new conversations; prints a line of JSON for each round to
    /// standard output.
    ///
    /// # Errors
    /// A sentence on why an answer failed.
    pub(super) async fn rounds(&mut self, prompt: &PromptRequest, options: &Options) -> Result<(), String> {
        let RoundOptions { rounds, conversations, words, .. } = &options.rounds;
        let mut first = REQUEST.0;
        for count in conversations {
            for round in 0..*rounds {
                let before = self.status.sealing;
                let timings = self.ask_at_once(prompt, first, *count).await?;
                println!("{}", self.round(round, &timings, before));
                first += count;
            }
        }
        for words in words {
            let content = "once ".repeat(*words as usize);
            let messages = vec![Message { role: Role::User, content }];
            let timings =
                self.ask_at_once(&PromptRequest { messages, max_tokens: 1, ..prompt.clone() }, first, 1).await?;
            if let Some(Timings { prompt_tokens, first_token_ms, .. }) = timings.first() {
                println!("{}", json!({ "prompt_tokens": prompt_tokens, "first_token_ms": first_token_ms }));
            }
            first += 1;
        }
        Ok(())
    }

    /// What is known after a round. `before`: what sealing had taken then.
    fn round(&self, round: u32, timings: &[Timings], before: Sealing) -> Value {
        let (tokens, longest) = timings.iter().fold((0, 0f64), |(tokens, longest), timings| {
            (tokens + timings.answer_tokens.saturating_sub(1), longest.max(timings.decode_ms))
        });
        let plan = self.status.plan.as_ref();
        let experts = plan.and_then(|plan| plan.experts.as_ref());
        let millis: Vec<f64> = timings.iter().map(Timings::millis_a_token).collect();
        let mean = millis.iter().sum::<f64>() / millis.len().max(1) as f64;
        let a_token = |sum: f64| sum / f64::from(tokens.max(1));
        let sealing = self.status.sealing;
        json!({
            "round": round,
            "conversations": timings.len(),
            "tokens_per_second": if longest > 0.0 { f64::from(tokens) * 1e3 / longest } else { 0.0 },
            "token_ms": millis,
            "parts_ms": experts.map(|experts| parts(experts, self.status.device.sync_ms, mean)),
            "vector_bytes_a_token": experts.map(|experts| experts.token_bytes),
            // Of this device, the prompt's messages included.
            "sealed_bytes_a_token": a_token(sealing.bytes.saturating_sub(before.bytes) as f64),
            "sealing_ms_a_token": a_token(sealing.ms - before.ms),
            "first_token_ms": timings.iter().map(|timings| timings.first_token_ms).collect::<Vec<f64>>(),
            "prompt_tokens": timings.first().map(|timings| timings.prompt_tokens),
            "stages": plan.map(|plan| plan.stages.len()),
            "holders": holders(&self.status),
            "copies": experts.map(|experts| experts.mean_holders),
            "expert_phases": experts.map(|experts| &experts.phases),
            "expected_token_ms": plan.map(|plan| plan.token_ms),
            "members": self.status.peers.len(),
        })
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
