//! `POST /v1/completions`: text that goes on, without a chat template.

use potluck_panel::{Channel, Message, Role, TokenLogprobs};
use serde_json::{Value, json};

use super::{Event, Head, Shape, Whole, logprobs, parameters, reply, usage_event, usage_json, usage_of};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::question::{Finish, Question, Tools, Usage};

/// Tokens of an answer unless told otherwise, as in OpenAI's API.
const USUAL_TOKENS: u32 = 16;

/// The question in a request's body.
pub(crate) fn question(body: &Value) -> Result<Question, ApiError> {
    let fields = &Fields::of(body)?;
    if fields.boolean("echo")? == Some(true) {
        return Err(ApiError::unsupported("echo", "the prompt is not repeated in the answer"));
    }
    let suffix = fields.text("suffix")?.filter(|suffix| !suffix.is_empty());
    let limit = parameters::max_tokens(fields, &parameters::LIMITS)?;
    let is_given = parameters::LIMITS.iter().any(|name| fields.get(name).is_some());
    Ok(Question {
        model: fields.text("model")?.map(str::to_owned),
        // A raw question of two messages asks for what belongs between them.
        messages: [Some(prompt(fields)?), suffix.map(str::to_owned)]
            .into_iter()
            .flatten()
            .map(|text| Message::new(Role::User, text))
            .collect(),
        raw: true,
        max_tokens: if is_given { limit } else { Some(USUAL_TOKENS) },
        sampling: parameters::sampling(fields)?,
        seed: parameters::seed(fields)?,
        reasoning: None,
        tools: Tools::default(),
        stops: parameters::stops(fields, "stop")?,
        logits: parameters::logits_of_completion(fields)?,
        answers: parameters::answers(fields)?,
        delivery: parameters::delivery(fields)?,
    })
}

/// The text of the prompt. Some libraries send a list of one.
fn prompt(fields: &Fields<'_>) -> Result<String, ApiError> {
    let expected = || ApiError::invalid("prompt", "expected a string");
    match fields.get("prompt").ok_or_else(expected)? {
        Value::String(text) if text.is_empty() => {
            Err(ApiError::invalid("prompt", "expected a string that is not empty"))
        }
        Value::String(text) => Ok(text.clone()),
        Value::Array(prompts) => match &prompts[..] {
            [Value::String(text)] if !text.is_empty() => Ok(text.clone()),
            [Value::String(_), _, ..] => {
                Err(ApiError::unsupported("prompt", "only one prompt per request is answered"))
            }
            [Value::Number(_), ..] => Err(ApiError::unsupported("prompt", "prompts are text, not tokens")),
            _ => Err(expected()),
        },
        _ => Err(expected()),
    }
}

/// How a completion is written.
#[derive(Default)]
pub(crate) struct Completion {
    /// Which of several answers.
    index: u8,
    with_usage: bool,
    with_logprobs: bool,
    /// Log-probabilities that are not sent yet, and characters of the tokens before.
    logprobs: (Vec<TokenLogprobs>, usize),
}

impl Completion {
    /// An answer to a question, which may have several.
    pub fn of(question: &Question, index: u8) -> Self {
        let with_logprobs = question.logits.top_logprobs.is_some();
        Self { index, with_usage: question.delivery.with_usage(), with_logprobs, ..Self::default() }
    }

    /// A part of the text, and the log-probabilities so far.
    fn part(&mut self, head: &Head, text: &str, finish: Option<&Finish>) -> Event {
        let mut logprobs = Value::Null;
        if self.with_logprobs {
            let (some, offset) = (std::mem::take(&mut self.logprobs.0), self.logprobs.1);
            (logprobs, self.logprobs.1) = logprobs::of_completion(&some, offset);
        }
        let choice = choice(self.index.into(), text, &logprobs, finish);
        Event::unnamed(reply(head, "text_completion", &json!([choice])))
    }
}

fn choice(index: usize, text: &str, logprobs: &Value, finish: Option<&Finish>) -> Value {
    json!({ "index": index, "text": text, "logprobs": logprobs, "finish_reason": finish.map(Finish::name) })
}

impl Shape for Completion {
    fn prefix(&self) -> &'static str {
        "cmpl-"
    }

    fn begin(&mut self, _head: &Head) -> Vec<Event> {
        Vec::new()
    }

    fn void(&mut self) {
        self.logprobs = Default::default();
    }

    fn scores(&mut self, logprobs: Vec<TokenLogprobs>) {
        self.logprobs.0.extend(logprobs);
    }

    fn more(&mut self, head: &Head, _channel: Channel, text: &str) -> Vec<Event> {
        vec![self.part(head, text, None)]
    }

    fn end(&mut self, head: &Head, finish: &Finish, _usage: Usage) -> Vec<Event> {
        vec![self.part(head, "", Some(finish))]
    }

    fn close(&mut self, head: &Head, usage: Usage) -> Vec<Event> {
        let usage = self.with_usage.then(|| usage_event(head, "text_completion", usage));
        usage.into_iter().chain([Event::Done]).collect()
    }

    fn whole(&self, head: &Head, whole: &Whole) -> Value {
        self.all(head, std::slice::from_ref(whole))
    }

    fn all(&self, head: &Head, answers: &[Whole]) -> Value {
        let choices = answers.iter().enumerate().map(|(index, whole)| {
            let logprobs = self.with_logprobs.then(|| logprobs::of_completion(&whole.logprobs, 0).0);
            choice(index, &whole.text, &logprobs.unwrap_or_default(), Some(&whole.finish))
        });
        let mut reply = reply(head, "text_completion", &choices.collect());
        reply["usage"] = usage_json(usage_of(answers));
        reply
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::api::test_head;

    #[test]
    fn a_prompt_goes_on_as_it_is() {
        let asked = question(&json!({ "prompt": ["Once"], "temperature": 0 })).unwrap();
        assert_eq!((asked.raw, asked.messages[0].content.as_str(), asked.max_tokens), (true, "Once", Some(16)));
        assert_eq!(question(&json!({ "prompt": "Once", "max_tokens": -1 })).unwrap().max_tokens, None);
        assert_eq!(question(&json!({ "prompt": "Once", "max_tokens": 3 })).unwrap().max_tokens, Some(3));
        let between = question(&json!({ "prompt": "fn a() {", "suffix": "}" })).unwrap();
        assert_eq!(
            between.messages.iter().map(|message| message.content.as_str()).collect::<Vec<_>>(),
            ["fn a() {", "}"]
        );
    }

    #[test]
    fn other_prompts_are_refused() {
        for wrong in [
            json!({}),
            json!({ "prompt": "" }),
            json!({ "prompt": 5 }),
            json!({ "prompt": [] }),
            json!({ "prompt": [1, 2] }),
            json!({ "prompt": ["a", "b"] }),
            json!({ "prompt": "a", "echo": true }),
        ] {
            assert!(question(&wrong).is_err(), "{wrong}");
        }
        assert!(question(&json!({ "prompt": "a", "echo": false, "suffix": null })).is_ok());
    }

    #[test]
    fn an_answer_is_text_with_its_end() {
        let head = &test_head("cmpl-1");
        let usage = Usage { prompt: 1, answer: 2, ..Usage::default() };
        let mut completion = Completion::default();
        assert_eq!(completion.begin(head), []);
        let more = completion.more(head, Channel::Answer, " upon");
        let more = more[0].json();
        assert_eq!((&more["object"], &more["choices"][0]["text"]), (&json!("text_completion"), &json!(" upon")));
        let end = [completion.end(head, &Finish::Length, usage), completion.close(head, usage)].concat();
        assert_eq!((&end[0].json()["choices"][0]["finish_reason"], &end[1..]), (&json!("length"), &[Event::Done][..]));
        let whole = Whole {
            text: " upon".to_owned(),
            reasoning: String::new(),
            calls: Vec::new(),
            logprobs: Vec::new(),
            finish: Finish::Stop,
            usage,
        };
        let reply = completion.whole(head, &whole);
        assert_eq!((&reply["id"], &reply["usage"]["total_tokens"]), (&json!("cmpl-1"), &json!(3)));
    }
}
