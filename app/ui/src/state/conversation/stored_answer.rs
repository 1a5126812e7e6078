//! Answers as browsers have stored them.

use potluck_panel::{RequestId, Timings};
use serde::Deserialize;

use super::{Answer, AnswerState, Thought};

/// Any form of a stored answer. Older pages kept reasoning in the text, between tags.
#[derive(Deserialize)]
pub(super) struct StoredAnswer {
    request: Option<RequestId>,
    reasoning: Option<String>,
    #[serde(default)]
    thought: Thought,
    text: String,
    #[serde(default)]
    tool_calls: String,
    state: AnswerState,
    timings: Option<Timings>,
    model: String,
    #[serde(default)]
    requests: Vec<RequestId>,
    #[serde(default)]
    doubtful: bool,
}

impl From<StoredAnswer> for Answer {
    fn from(stored: StoredAnswer) -> Self {
        let StoredAnswer { request, reasoning, thought, text, tool_calls, state, timings, model, requests, doubtful } =
            stored;
        let (reasoning, text) = match reasoning {
            Some(reasoning) => (reasoning, text),
            None => split(text),
        };
        Self {
            request,
            reasoning,
            thought,
            text,
            tool_calls,
            state,
            timings,
            model,
            requests,
            doubtful,
            before: [0; 3],
        }
    }
}

/// Separates the reasoning at the start of a text.
fn split(text: String) -> (String, String) {
    let Some(rest) = text.trim_start().strip_prefix("<think>") else { return (String::new(), text) };
    let (reasoning, answer) = rest.split_once("</think>").unwrap_or((rest, ""));
    (reasoning.trim().to_owned(), answer.trim_start().to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn stored(text: &str) -> Answer {
        let text = serde_json::to_string(text).unwrap();
        let old = format!(r#"{{"request":null,"text":{text},"state":"Complete","timings":null,"model":"tiny"}}"#);
        serde_json::from_str(&old).unwrap()
    }

    #[test]
    fn reasoning_that_older_pages_kept_in_the_text_is_found() {
        for (text, reasoning, answer) in [
            ("<think>\nhm\n</think>\n\nHi", "hm", "Hi"),
            ("<think>\nhm", "hm", ""),
            ("<think>\n\n</think>Hi", "", "Hi"),
            ("1 < 2", "", "1 < 2"),
            ("The tag <think>", "", "The tag <think>"),
        ] {
            let read = stored(text);
            assert_eq!([read.reasoning.as_str(), &read.text], [reasoning, answer], "{text}");
        }
    }

    #[test]
    fn an_answer_is_read_as_it_was_stored() {
        let answer = Answer { reasoning: "hm".into(), tool_calls: "now {}".into(), ..stored("<think> is a tag") };
        let answer = Answer { text: "<think> is a tag".into(), ..answer };
        assert_eq!(serde_json::from_str::<Answer>(&serde_json::to_string(&answer).unwrap()).unwrap(), answer);
    }
}
