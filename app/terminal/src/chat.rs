//! `potluck-node run MODEL` without a question: a chat at the terminal, or the question from standard input.

use std::io::{BufRead, IsTerminal, Read};

use potluck_panel::{AnswerStop, Message, PromptRequest, RequestId, Role};
use potluck_text::texts;

use crate::failure::Failure;
use crate::options::AnswerOptions;
use crate::output::{ask_for, say};
use crate::printable::Printable;
use crate::session::Session;
use crate::signals::Stop;

/// Bytes of a question on standard input, at most.
const MAX_QUESTION: u64 = 2 << 20;
/// Stands around a question of several lines, as in other programs of this kind.
const FENCE: &str = "\"\"\"";

/// Where questions come from that the command line does not have.
pub(crate) fn is_at_terminal() -> bool {
    std::io::stdin().is_terminal()
}

/// The question on standard input.
///
/// # Errors
/// There is none, or it cannot be read.
pub(crate) async fn question_of_input(options: &AnswerOptions, stop: &Stop) -> Result<PromptRequest, Failure> {
    let read = || {
        let mut text = String::new();
        std::io::stdin().take(MAX_QUESTION).read_to_string(&mut text).map(|_| text)
    };
    let mut stop = stop.clone();
    let text = tokio::select! {
        signal = stop.stopped() => return Err(Failure::Stopped(signal)),
        text = tokio::task::spawn_blocking(read) => text.map_err(std::io::Error::other).flatten(),
    };
    let text = text.map_err(|error| Failure::Usage(texts().terminal.no_input(error.to_string())))?;
    let question = AnswerOptions { prompt: Some(text.trim().to_owned()), ..options.clone() }.question();
    question
        .filter(|question| !question.messages[0].content.is_empty())
        .ok_or_else(|| Failure::Usage(texts().terminal.no_question().to_owned()))
}

/// What a person has typed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entered {
    Question(String),
    Help,
    Clear,
    Bye,
    Unknown(String),
}

/// Puts lines together.
#[derive(Debug, Default)]
struct Lines {
    /// Those of a question that has begun with a fence.
    begun: Option<String>,
}

impl Lines {
    /// What is complete with this line.
    fn push(&mut self, line: &str) -> Option<Entered> {
        let line = line.trim_end_matches(['\r', '\n']);
        if let Some(begun) = &mut self.begun {
            let Some(last) = line.trim_end().strip_suffix(FENCE) else {
                begun.push_str(line);
                begun.push('\n');
                return None;
            };
            begun.push_str(last);
            return self.begun.take().map(|text| Entered::Question(text.trim().to_owned()));
        }
        let trimmed = line.trim();
        if let Some(first) = trimmed.strip_prefix(FENCE) {
            if let Some(whole) = first.strip_suffix(FENCE) {
                return Some(Entered::Question(whole.trim().to_owned()));
            }
            self.begun = Some(if first.is_empty() { String::new() } else { format!("{first}\n") });
            return None;
        }
        match trimmed {
            "" => None,
            "/?" | "/help" => Some(Entered::Help),
            "/clear" => Some(Entered::Clear),
            "/bye" | "/exit" | "/quit" => Some(Entered::Bye),
            command if command.starts_with('/') && !command.contains(char::is_whitespace) => {
                Some(Entered::Unknown(command.to_owned()))
            }
            question => Some(Entered::Question(question.to_owned())),
        }
    }
}

/// Chats until the person ends it.
///
/// # Errors
/// The node has ended, or somebody stopped the program.
pub(crate) async fn chat(session: &mut Session, options: &AnswerOptions) -> Result<(), Failure> {
    session.stay();
    say(texts().terminal.chat_welcome());
    let (mut lines, mut messages, mut asked) = (Lines::default(), Vec::<Message>::new(), 0);
    loop {
        ask_for(if lines.begun.is_some() { "... " } else { ">>> " });
        let Some(line) = next_line(session).await? else { return Ok(()) };
        match lines.push(&line) {
            None => {}
            Some(Entered::Bye) => return Ok(()),
            Some(Entered::Help) => say(Printable::lines(texts().terminal.chat_help())),
            Some(Entered::Unknown(command)) => say(texts().terminal.chat_unknown(command)),
            Some(Entered::Clear) => messages.clear(),
            Some(Entered::Question(text)) => {
                asked += 1;
                messages.push(Message::new(Role::User, text));
                let Some(question) = (AnswerOptions { prompt: Some(String::new()), ..options.clone() }).question()
                else {
                    continue;
                };
                let question = PromptRequest {
                    request: RequestId(asked),
                    messages: messages.clone(),
                    max_tokens: u32::MAX,
                    ..question
                };
                match crate::ask(session, question, false).await {
                    Ok(answer) if answer.stop != AnswerStop::Stopped => {
                        messages.push(Message::new(Role::Assistant, answer.text));
                    }
                    // Too long a conversation, for example: the person may say something else.
                    Err(Failure::Failed(sentence)) => {
                        say(sentence);
                        messages.pop();
                    }
                    Ok(_) => {}
                    Err(failure) => return Err(failure),
                }
            }
        }
    }
}

/// The next line of standard input; `None` at its end. The node goes on meanwhile.
async fn next_line(session: &mut Session) -> Result<Option<String>, Failure> {
    let read = || {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map(|bytes| (bytes > 0).then_some(line))
    };
    let mut line = tokio::task::spawn_blocking(read);
    loop {
        tokio::select! {
            line = &mut line => {
                let line = line.map_err(std::io::Error::other).flatten();
                return line.map_err(|error| Failure::Failed(texts().terminal.no_input(error.to_string())));
            }
            message = session.step() => {
                message?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entered(lines: &[&str]) -> Vec<Entered> {
        let mut read = Lines::default();
        lines.iter().filter_map(|line| read.push(&format!("{line}\n"))).collect()
    }

    #[test]
    fn a_line_is_a_question_and_a_fence_makes_several_lines_one() {
        let question = |text: &str| Entered::Question(text.to_owned());
        assert_eq!(entered(&["  Hello! ", "", "2 / 3?"]), [question("Hello!"), question("2 / 3?")]);
        assert_eq!(
            entered(&["\"\"\"one", " /bye", "", "three\"\"\"", "four"]),
            [question("one\n /bye\n\nthree"), question("four")]
        );
        assert_eq!(entered(&["\"\"\"one line\"\"\"", "\"\"\"", "a", "\"\"\""]), [question("one line"), question("a")]);
    }

    #[test]
    fn words_with_a_slash_are_commands() {
        assert_eq!(entered(&["/?", "/help", "/clear"]), [Entered::Help, Entered::Help, Entered::Clear]);
        assert_eq!(entered(&["/bye", "/exit"]), [Entered::Bye, Entered::Bye]);
        assert_eq!(entered(&["/set"]), [Entered::Unknown("/set".to_owned())]);
        assert_eq!(entered(&["/usr/bin is full"]), [Entered::Question("/usr/bin is full".to_owned())]);
    }
}
