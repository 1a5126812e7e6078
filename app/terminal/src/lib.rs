//! The command line of `potluck-node`, a peer without a browser. As a library: [`Session`], a node in this process, and how it is
//! set up.
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![deny(clippy::print_stdout, clippy::print_stderr, reason = "they panic where a pipe is closed: `output` prints")]

mod bench;
mod channel_lines;
mod chat;
mod chosen_model;
mod command;
mod doctor;
mod failure;
mod host;
mod join;
mod link;
mod logging;
mod model_link;
mod model_path;
mod options;
mod output;
mod printable;
mod pull;
#[cfg(target_os = "linux")]
mod quiet_drivers;
mod run;
mod sampling;
mod secret_file;
mod serve;
mod session;
mod setup;
mod shell_files;
mod show;
mod showing;
mod signals;
mod stored_models;
mod usage;
mod values;
mod verify;
mod waiting;

use std::process::ExitCode;

use clap::Parser;
use potluck_panel::{AnswerStop, Channel, PromptRequest, Timings};
use potluck_text::texts;

use crate::channel_lines::ChannelLines;
use crate::output::{aside, end_progress, is_terminal, print_answer, say};
use crate::printable::Printable;

pub use bench::BenchOptions;
pub use command::{CommandLine, Verb};
pub use doctor::DoctorOptions;
pub use failure::{Failure, Signal};
pub use host::{HostOptions, PoolingOptions};
pub use join::{JoinOptions, LinkArgument};
pub use link::{BadLink, RoomLink};
pub use options::{
    AccessOptions, AnswerOptions, CacheOptions, Contribution, DeviceOptions, GuessArguments, ModelOptions,
    NetworkOptions,
};
pub use pull::PullOptions;
pub use run::RunOptions;
pub use sampling::SamplingArguments;
pub use serve::{ApiOptions, OwnModelOptions, RoomOptions, ServeOptions, ServeTarget};
pub use session::{Answer, Session};
pub use setup::{NO_RELAY, Setup};
pub use shell_files::{CompletionsOptions, ManOptions};
pub use show::ShowOptions;
pub use signals::Stop;
pub use stored_models::{ListOptions, RemoveOptions};
pub use values::{parse_bytes, parse_type};
pub use verify::{FileHash, VerifyOptions};

/// Runs the program. Errors go to standard error.
pub fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    quiet_drivers::start_again_if_needed();
    logging::log_to_stderr();
    let done = match CommandLine::try_parse() {
        Ok(line) => {
            let stop = Stop::on_signals();
            in_tasks(async move { perform(line.verb, &stop).await })
        }
        Err(error) => usage::explain(&error),
    };
    end_progress();
    let Err(failure) = done else { return ExitCode::SUCCESS };
    match failure.sentence() {
        // What is wrong with a command line may take several lines, and is the program's own.
        Some(sentence) if matches!(failure, Failure::Usage(_)) => say(Printable::lines(sentence)),
        Some(sentence) => say(sentence),
        None => {}
    }
    ExitCode::from(failure.code())
}

/// Runs `work` as a node needs it: on one thread, with tasks beside it.
///
/// # Errors
/// That of `work`, or why no tasks can run here.
pub fn in_tasks<E: From<Failure>>(work: impl Future<Output = Result<(), E>>) -> Result<(), E> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Failed(texts().terminal.cannot_start(error.to_string())))?;
    let done = tokio::task::LocalSet::new().block_on(&runtime, work);
    // Does not wait for blocking reads of files and HTTP.
    runtime.shutdown_background();
    done
}

async fn perform(verb: Verb, stop: &Stop) -> Result<(), Failure> {
    match verb {
        Verb::Run(options) => run::run(&options, stop).await,
        Verb::Host(options) => host::host(&options, stop).await,
        Verb::Join(options) => join::join(&options, stop).await,
        Verb::Serve(options) => serve::serve(&options, stop).await,
        Verb::Pull(options) => pull::pull(&options, stop).await,
        Verb::List(options) => stored_models::list(&options).await,
        Verb::Rm(options) => stored_models::remove(&options).await,
        Verb::Show(options) => show::show(&options, stop).await,
        Verb::Doctor(options) => doctor::doctor(&options, stop).await,
        Verb::Completions(options) => shell_files::completions(&options),
        Verb::Man(options) => shell_files::man(&options),
        Verb::Verify(options) => verify::verify(&options, stop).await,
    }
}

/// Asks, and prints the answer as it arrives; with `timings` also these.
async fn ask(session: &mut Session, question: PromptRequest, timings: bool) -> Result<Answer, Failure> {
    let limit = question.max_tokens;
    let mut lines = ChannelLines::new(is_terminal());
    let show = |channel: Channel, text: &str| {
        match lines.next(channel, text) {
            Some(Channel::Answer) => print_answer("\n")?,
            Some(Channel::Reasoning | Channel::ToolCall) => end_progress(),
            None => {}
        }
        // What the model thinks and calls is no part of the answer.
        match channel {
            _ if text.is_empty() => Ok(()),
            Channel::Answer => print_answer(text),
            Channel::Reasoning | Channel::ToolCall => {
                aside(&Printable::lines(text));
                Ok(())
            }
        }
    };
    let answered = session.chat(question, show).await;
    if lines.has_answer() || answered.is_ok() {
        // Whatever follows begins on a line of its own.
        print_answer("\n")?;
    }
    let answer = answered?;
    if answer.stop == AnswerStop::Length {
        let Timings { answer_tokens, context, .. } = answer.timings;
        let terminal = &texts().terminal;
        say(if answer_tokens >= limit { terminal.cut_by_limit(limit) } else { terminal.cut_by_context(context) });
    }
    if timings {
        say(Printable::json(&answer.to_json()));
        if let Some(report) = session.status.on_demand {
            let json = serde_json::to_string(&report).map_err(|error| Failure::Failed(error.to_string()))?;
            say(Printable::json(&json));
        }
    }
    Ok(answer)
}

/// Stays in the room that was entered, until somebody stops the program, or until the question is answered. The others are told of
/// every end.
async fn stay(
    session: &mut Session,
    entered: Result<(), Failure>,
    question: Option<PromptRequest>,
    timings: bool,
) -> Result<(), Failure> {
    let done = async {
        entered?;
        let Some(question) = question else {
            loop {
                session.step().await?;
            }
        };
        session.until_up().await?;
        ask(session, question, timings).await.map(|_| ())
    }
    .await;
    session.leave().await;
    done
}

impl Answer {
    /// Text, tokens and timings, on one line.
    fn to_json(&self) -> String {
        let per_second = |count: u32, millis: f64| if millis > 0.0 { f64::from(count) * 1000.0 / millis } else { 0.0 };
        let Timings { prompt_tokens, reused_tokens, answer_tokens, first_token_ms, decode_ms, .. } = self.timings;
        serde_json::json!({
            "text": self.text,
            "tokens": self.tokens,
            "timings": self.timings,
            "prefill_per_second": per_second(prompt_tokens - reused_tokens, first_token_ms),
            "decode_per_second": per_second(answer_tokens.saturating_sub(1), decode_ms),
        })
        .to_string()
    }
}
