//! For measurements: the same question several times, from one or several conversations at once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use potluck_panel::{
    AnswerPart, AnswerStop, ExpertsView, Message, OnDemandReport, PlanStatus, PromptRequest, RequestId, Role, Sealing,
    Status, Timings, ToNode, ToPage,
};
use potluck_text::texts;
use serde_json::{Value, json};

use super::holder_changes::HolderChanges;
use super::recording;
use super::served::QUIET;
use super::session::REQUEST;
use super::{Options, Session};

/// A room has settled after so many milliseconds without a change.
const SETTLED: u64 = 3_000;
/// What devices have measured is known everywhere after so many milliseconds: they report once a second.
const REPORTED: u64 = 1_500;
/// So long after a round devices that load on demand know that it is over.
const ROUND_OVER: u64 = QUIET.as_millis() as u64 + 1_000;

/// How a room is measured.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
pub struct RoundOptions {
    /// How many times the prompt is asked, each in a new conversation; prints a line of JSON for each
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub rounds: u32,
    /// For measurements: from how many conversations at once, several numbers one after the other
    #[arg(long, hide = true, value_name = "N,…", value_delimiter = ',', default_value = "1")]
    pub conversations: Vec<u32>,
    /// For measurements: prompts of about so many tokens besides, each answered by one token or by so many
    #[arg(long, hide = true, value_name = "N[/TOKENS],…", value_delimiter = ',')]
    pub prompt_tokens: Vec<Lengths>,
    /// For measurements: wait until this many devices hold experts for others
    #[arg(long, hide = true, value_name = "N", default_value_t = 0)]
    pub holders: usize,
    /// For measurements: wait until this many devices are in the room
    #[arg(long, hide = true, value_name = "N", default_value_t = 1)]
    pub members: usize,
    /// For measurements: a file that is made before the last round
    #[arg(long, hide = true, value_name = "FILE")]
    pub last_round: Option<PathBuf>,
}

impl Default for RoundOptions {
    fn default() -> Self {
        Self { rounds: 1, conversations: vec![1], prompt_tokens: Vec::new(), holders: 0, members: 1, last_round: None }
    }
}

impl RoundOptions {
    /// More than one question is asked.
    pub fn several(&self) -> bool {
        self.rounds > 1 || self.conversations != [1] || !self.prompt_tokens.is_empty()
    }
}

/// Tokens of a prompt and of its answer: `128/64`, or `128` for an answer of one token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    prompt: u32,
    answer: u32,
}

impl FromStr for Lengths {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (prompt, answer) = text.split_once('/').unwrap_or((text, "1"));
        let count = |text: &str| text.parse().ok().filter(|count| *count > 0);
        let lengths = count(prompt).zip(count(answer)).map(|(prompt, answer)| Self { prompt, answer });
        lengths.ok_or_else(|| format!("\"{text}\" is not a number of tokens like 128 or 128/64."))
    }
}

/// What came of a question that was asked in several conversations.
struct Asked {
    timings: Vec<Timings>,
    /// Milliseconds between the texts of each answer.
    gaps: Vec<f64>,
    /// Holders of experts that went and came meanwhile.
    changes: HolderChanges,
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

/// Times of a prompt of another length. `tokens_per_second` counts the first token's time, too (table 2 of od-moe.txt).
fn lengths_line(timings: &Timings) -> Value {
    let Timings { prompt_tokens, answer_tokens, first_token_ms, decode_ms, .. } = *timings;
    let mut line = json!({ "prompt_tokens": prompt_tokens, "first_token_ms": first_token_ms });
    if answer_tokens > 1 {
        line["answer_tokens"] = json!(answer_tokens);
        line["token_ms"] = json!(timings.millis_a_token());
        line["decode_per_second"] = json!(1e3 / timings.millis_a_token());
        line["tokens_per_second"] = json!(f64::from(answer_tokens) * 1e3 / (first_token_ms + decode_ms));
    }
    line
}

impl Session {
    /// Asks the prompt as often as the options say, each time in new conversations; prints a line of JSON for each round to
    /// standard output.
    ///
    /// # Errors
    /// A sentence on why an answer failed.
    pub(super) async fn rounds(&mut self, prompt: &PromptRequest, options: &Options) -> Result<(), String> {
        let RoundOptions { rounds, conversations, prompt_tokens: lengths, .. } = &options.rounds;
        let (mut first, mut asked_tokens) = (REQUEST.0, 0);
        self.settle().await?;
        for count in conversations {
            for round in 0..*rounds {
                let is_last = round + 1 == *rounds && conversations.last() == Some(count);
                let last_round = options.rounds.last_round.as_ref().filter(|_| is_last);
                if let Some(file) = last_round {
                    std::fs::write(file, "").map_err(|error| error.to_string())?;
                }
                let before = (self.status.sealing, self.status.on_demand);
                let asked = self.ask_at_once(prompt, first, *count).await?;
                // Before another plan may be made.
                let recording = self.recording().await?;
                self.pause(if options.on_demand { ROUND_OVER } else { REPORTED }).await?;
                asked_tokens = asked.timings.first().map_or(0, |timings| timings.prompt_tokens);
                let mut line = self.round(round, asked, before);
                line["recorded"] = recording::report(&recording, RequestId(first), *count);
                // In which nobody's answers wait on purpose.
                line["is_last"] = json!(last_round.is_some());
                line["recall_percent"] = json!(options.guesses.recall(round));
                line["equation_1"] = json!(self.equation_1(options.guesses.lead()));
                println!("{line}");
                first += count;
            }
        }
        let text = prompt.messages.first().map(|message| message.content.clone()).unwrap_or_default();
        let words: Vec<&str> = text.split_whitespace().collect();
        for Lengths { prompt: tokens, answer } in lengths {
            let count = (*tokens as usize * words.len()).div_ceil(asked_tokens.max(1) as usize);
            let content = words.iter().cycle().take(count).copied().collect::<Vec<&str>>().join(" ");
            let messages = vec![Message { role: Role::User, content }];
            let prompt = PromptRequest { messages, max_tokens: *answer, ..prompt.clone() };
            let Asked { timings, .. } = self.ask_at_once(&prompt, first, 1).await?;
            if let Some(timings) = timings.first() {
                println!("{}", lengths_line(timings));
            }
            first += 1;
        }
        Ok(())
    }

    /// Equation 1 of od-moe.txt 3.1: what the load of an expert may take, if a group of blocks is hinted ahead.
    fn equation_1(&self, group: u16) -> Option<Value> {
        let plan = self.status.plan.as_ref()?;
        let experts = plan.experts.as_ref().filter(|experts| experts.trips > 0.0)?;
        let (main, holders) = (experts.own_ms / experts.trips, experts.trips_ms / experts.trips);
        // As stages do where there are few blocks.
        let group = f64::from(group).min((experts.trips / 4.0).round()).max(1.0);
        let allowed = group * main + (group - 1.0) * holders;
        Some(json!({ "group": group, "main_ms": main, "experts_ms": holders, "load_may_take_ms": allowed }))
    }

    /// What is known after a round. `before`: what sealing and experts on demand had taken then.
    fn round(
        &self,
        round: u32,
        Asked { timings, mut gaps, changes }: Asked,
        (before, on_demand): (Sealing, Option<OnDemandReport>),
    ) -> Value {
        gaps.sort_by(f64::total_cmp);
        let quantile = |share: f64| gaps.get((gaps.len() as f64 * share) as usize).or(gaps.last());
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
            "gap_ms": { "median": quantile(0.5), "p99": quantile(0.99), "longest": gaps.last() },
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
            "holder_changes": changes.lines(),
            "members": self.status.peers.len(),
            // Of all rounds so far.
            "hints": self.status.hints,
            "drafts": self.status.drafts,
            "on_demand": self.status.on_demand.map(|now| now.since(&on_demand.unwrap_or_default())),
        })
    }

    /// Asks in several conversations at once.
    async fn ask_at_once(&mut self, prompt: &PromptRequest, first: u32, count: u32) -> Result<Asked, String> {
        for request in first..first + count {
            let conversation = format!("terminal {request}");
            self.page(ToNode::Prompt(PromptRequest { request: RequestId(request), conversation, ..prompt.clone() }));
        }
        let (mut all, mut gaps, mut last) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut changes = HolderChanges::default();
        while all.len() < count as usize {
            let message = self.next().await?;
            if matches!(message, ToPage::Status(_)) {
                changes.note(&self.status);
            }
            let ToPage::Answer { request, event } = message else { continue };
            match event {
                AnswerPart::End { stop: AnswerStop::Failed(sentence) | AnswerStop::Refused(sentence), .. } => {
                    return Err(sentence);
                }
                AnswerPart::End { timings, .. } => all.push(timings),
                AnswerPart::Unknown => return Err(texts().answer.question_lost.to_owned()),
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

    /// What the node has recorded, as it writes it.
    async fn recording(&mut self) -> Result<String, String> {
        self.page(ToNode::Trace);
        loop {
            if let ToPage::Trace(lines) = self.next().await? {
                return Ok(lines);
            }
        }
    }

    /// Waits until the plan has not changed, and nobody has loaded anything, for a while.
    async fn settle(&mut self) -> Result<(), String> {
        let state = |status: &Status| {
            let plan = status.plan.as_ref().map(|plan| (plan.epoch, plan.state));
            let is_loading = status.peers.iter().any(|member| member.loading.is_some());
            (plan, holders(status), status.peers.len(), is_loading)
        };
        loop {
            let before = state(&self.status);
            self.pause(SETTLED).await?;
            if state(&self.status) == before && !before.3 {
                return Ok(());
            }
        }
    }

    /// Lets time pass.
    async fn pause(&mut self, millis: u64) -> Result<(), String> {
        let end = tokio::time::sleep(Duration::from_millis(millis));
        tokio::pin!(end);
        loop {
            tokio::select! {
                message = self.next() => drop(message?),
                () = &mut end => return Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_a_prompt_and_perhaps_an_answer() {
        let lengths = |prompt, answer| Ok(Lengths { prompt, answer });
        assert_eq!("16".parse::<Lengths>(), lengths(16, 1));
        assert_eq!("128/256".parse::<Lengths>(), lengths(128, 256));
        for wrong in ["", "0", "16/", "/16", "16/0", "a", "1/2/3"] {
            assert!(wrong.parse::<Lengths>().is_err(), "{wrong} is no length");
        }
    }
}
