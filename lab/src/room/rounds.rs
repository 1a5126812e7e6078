//! The same question several times, from one or several conversations at once.

use std::time::Duration;

use potluck_panel::{Message, PlanStatus, PromptRequest, RequestId, Role};
use potluck_terminal::Session;
use serde_json::json;

use super::asking::{ask_at_once, pause, recorded, settle};
use super::options::{Lengths, RecallOptions, RoundOptions};
use super::recording;
use super::report::{Before, equation_1, holders, lengths_line, round_line};
use super::served::QUIET;

/// What devices have measured is known everywhere after so long: they report once a second.
const REPORTED: Duration = Duration::from_millis(1_500);
/// So long after a round devices that load on demand know that it is over.
const ROUND_OVER: Duration = QUIET.saturating_add(Duration::from_secs(1));

/// When a round is over everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Devices have reported what they measured.
    Reported,
    /// Devices that load on demand have also printed what the round cost them.
    Served,
}

/// How a question is asked.
pub struct Rounds<'a> {
    /// How often, and from how many conversations.
    pub options: &'a RoundOptions,
    /// What a recorded text is known with.
    pub recall: &'a RecallOptions,
    /// What is waited for after each round.
    pub pause: Pause,
}

impl Rounds<'_> {
    /// Waits until the room answers, with the holders that a measurement needs.
    pub async fn until_ready(&self, session: &mut Session) -> Result<(), String> {
        loop {
            let status = &session.status;
            let is_up = status.plan.as_ref().is_some_and(|plan| plan.state == PlanStatus::Up);
            if is_up && status.peers.len() >= self.options.members && holders(status) >= self.options.holders {
                return Ok(());
            }
            session.next().await?;
        }
    }

    /// Asks as often as the options say, each time in new conversations; prints a line of JSON for each round.
    pub async fn ask(&self, session: &mut Session, question: &PromptRequest) -> Result<(), String> {
        let RoundOptions { rounds, conversations, prompt_tokens: lengths, last_round, .. } = self.options;
        let (mut first, mut asked_tokens) = (question.request.0, 0);
        settle(session).await?;
        for count in conversations {
            for round in 0..*rounds {
                let is_last = round + 1 == *rounds && conversations.last() == Some(count);
                let last_round = last_round.as_ref().filter(|_| is_last);
                if let Some(file) = last_round {
                    std::fs::write(file, "").map_err(|error| error.to_string())?;
                }
                let before = Before::of(&session.status);
                let asked = ask_at_once(session, question, first..first + count).await?;
                // Before another plan may be made.
                let lines = recorded(session).await?;
                let over = match self.pause {
                    Pause::Reported => REPORTED,
                    Pause::Served => ROUND_OVER,
                };
                pause(session, over).await?;
                asked_tokens = asked.timings.first().map_or(0, |timings| timings.prompt_tokens);
                let mut line = round_line(&session.status, round, asked, &before);
                line["recorded"] = recording::report(&lines, RequestId(first), *count);
                // In which nobody's answers wait on purpose.
                line["is_last"] = json!(last_round.is_some());
                line["recall_percent"] = json!(self.recall.of_round(round));
                line["equation_1"] = json!(equation_1(&session.status, self.recall.lead()));
                println!("{line}");
                first += count;
            }
        }
        let text = question.messages.first().map(|message| message.content.clone()).unwrap_or_default();
        let words: Vec<&str> = text.split_whitespace().collect();
        for Lengths { prompt: tokens, answer } in lengths {
            let count = (*tokens as usize * words.len()).div_ceil(asked_tokens.max(1) as usize);
            let content = words.iter().cycle().take(count).copied().collect::<Vec<&str>>().join(" ");
            let messages = vec![Message::new(Role::User, content)];
            let question = PromptRequest { messages, max_tokens: *answer, ..question.clone() };
            let asked = ask_at_once(session, &question, first..first + 1).await?;
            if let Some(timings) = asked.timings.first() {
                println!("{}", lengths_line(timings));
            }
            first += 1;
        }
        Ok(())
    }
}
