//! `POST /v1/chat/completions`.

use potluck_model::ToolCall;
use potluck_panel::{Channel, LogitOptions, TokenLogprobs};
use serde_json::{Value, json};

use super::{
    Event, Head, Shape, Whole, forms, logprobs, messages, parameters, reply, tools, usage_event, usage_json, usage_of,
};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::question::{Finish, Question, Usage};

/// The question in a request's body.
pub(crate) fn question(body: &Value) -> Result<Question, ApiError> {
    let fields = &Fields::of(body)?;
    let tools = tools::tools(fields)?;
    let logits = parameters::logits_of_chat(fields)?;
    Ok(Question {
        model: fields.text("model")?.map(str::to_owned),
        messages: messages::with_joined_instructions(messages::messages(fields)?),
        raw: false,
        max_tokens: parameters::max_tokens(fields, &parameters::LIMITS)?,
        sampling: parameters::sampling(fields)?,
        seed: parameters::seed(fields)?,
        reasoning: parameters::reasoning(fields),
        stops: parameters::stops(fields, "stop")?,
        logits: LogitOptions { form: forms::with_calls(logits.form, &tools), ..logits },
        tools,
        answers: parameters::answers(fields)?,
        delivery: parameters::delivery(fields)?,
    })
}

/// How a chat's answer is written.
#[derive(Default)]
pub(crate) struct Chat {
    /// Which of several answers.
    index: u8,
    with_usage: bool,
    /// Calls so far.
    called: usize,
    with_logprobs: bool,
    /// Log-probabilities that are not sent yet.
    logprobs: Vec<TokenLogprobs>,
}

impl Chat {
    /// An answer to a question, which may have several.
    pub fn of(question: &Question, index: u8) -> Self {
        let with_logprobs = question.logits.top_logprobs.is_some();
        Self { index, with_usage: question.delivery.with_usage(), with_logprobs, ..Self::default() }
    }

    /// A chunk with one choice, and the log-probabilities so far.
    fn chunk(&mut self, head: &Head, delta: &Value, finish: Option<&Finish>) -> Event {
        let mut choice = json!({ "index": self.index, "delta": delta, "finish_reason": finish.map(Finish::name) });
        if self.with_logprobs && !self.logprobs.is_empty() {
            choice["logprobs"] = logprobs::of_chat(&std::mem::take(&mut self.logprobs));
        }
        Event::unnamed(reply(head, "chat.completion.chunk", &json!([choice])))
    }

    fn choice(&self, whole: &Whole, index: usize) -> Value {
        let mut message = json!({ "role": "assistant", "content": whole.text, "refusal": null });
        if !whole.calls.is_empty() {
            let call = |call: &ToolCall| {
                let function = json!({ "name": call.name, "arguments": call.arguments });
                json!({ "id": call.id, "type": "function", "function": function })
            };
            message["tool_calls"] = whole.calls.iter().map(call).collect();
            if whole.text.is_empty() {
                message["content"] = Value::Null;
            }
        }
        if !whole.reasoning.is_empty() {
            message["reasoning_content"] = json!(whole.reasoning);
        }
        let logprobs = if self.with_logprobs { logprobs::of_chat(&whole.logprobs) } else { Value::Null };
        json!({ "index": index, "message": message, "logprobs": logprobs, "finish_reason": whole.finish.name() })
    }
}

impl Shape for Chat {
    fn prefix(&self) -> &'static str {
        "chatcmpl-"
    }

    fn begin(&mut self, head: &Head) -> Vec<Event> {
        vec![self.chunk(head, &json!({ "role": "assistant", "content": "" }), None)]
    }

    fn scores(&mut self, logprobs: Vec<TokenLogprobs>) {
        self.logprobs.extend(logprobs);
    }

    fn void(&mut self) {
        self.logprobs.clear();
    }

    /// A call that cannot be read is text, without the model's markers.
    fn more(&mut self, head: &Head, channel: Channel, text: &str) -> Vec<Event> {
        let delta = match channel {
            Channel::Reasoning => json!({ "reasoning_content": text }),
            Channel::Answer | Channel::ToolCall => json!({ "content": text }),
        };
        vec![self.chunk(head, &delta, None)]
    }

    /// The name comes first, as programs expect it.
    fn call(&mut self, head: &Head, call: &ToolCall) -> Vec<Event> {
        let index = self.called;
        self.called += 1;
        let function = json!({ "name": call.name, "arguments": "" });
        let begin = json!({ "index": index, "id": call.id, "type": "function", "function": function });
        let rest = json!({ "index": index, "function": { "arguments": call.arguments } });
        [begin, rest].map(|call| self.chunk(head, &json!({ "tool_calls": [call] }), None)).into()
    }

    fn end(&mut self, head: &Head, finish: &Finish, _usage: Usage) -> Vec<Event> {
        vec![self.chunk(head, &json!({}), Some(finish))]
    }

    fn close(&mut self, head: &Head, usage: Usage) -> Vec<Event> {
        let usage = self.with_usage.then(|| usage_event(head, "chat.completion.chunk", usage));
        usage.into_iter().chain([Event::Done]).collect()
    }

    fn whole(&self, head: &Head, whole: &Whole) -> Value {
        self.all(head, std::slice::from_ref(whole))
    }

    fn all(&self, head: &Head, answers: &[Whole]) -> Value {
        let choices = answers.iter().enumerate().map(|(index, whole)| self.choice(whole, index));
        let mut reply = reply(head, "chat.completion", &choices.collect());
        reply["usage"] = usage_json(usage_of(answers));
        reply
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_panel::{Role, Sampling};

    use super::*;
    use crate::api::{test_call, test_head};
    use crate::question::Delivery;

    fn with(more: Value) -> Value {
        let mut body = json!({ "model": "tiny", "messages": [{ "role": "user", "content": "Hi" }] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    }

    #[test]
    fn a_request_becomes_a_question_and_unknown_fields_are_ignored() {
        let body = with(json!({
            "max_tokens": 9, "temperature": 0, "seed": 4, "stop": ["\n"], "stream": true,
            "stream_options": { "include_usage": true }, "reasoning_effort": "low", "prompt_cache_key": "k", "store": false,
            "tools": [{ "type": "function", "function": { "name": "f" } }, { "type": "web_search" }], "tool_choice": "auto",
            "parallel_tool_calls": true, "presence_penalty": 0.5, "response_format": { "type": "text" },
        }));
        let question = question(&body).unwrap();
        assert_eq!((question.model.as_deref(), question.messages.len()), (Some("tiny"), 1));
        assert_eq!((question.messages[0].role, question.messages[0].content.as_str()), (Role::User, "Hi"));
        assert_eq!((question.max_tokens, question.seed, question.raw), (Some(9), Some(4), false));
        assert_eq!((question.sampling, question.tools.offer.functions.len()), (Sampling::greedy(), 1));
        assert_eq!((question.stops, question.delivery), (vec!["\n".to_owned()], Delivery::Stream { with_usage: true }));
    }

    #[test]
    fn a_form_that_nobody_knows_is_refused() {
        for wrong in [json!({ "function_call": { "name": "f" } }), json!({ "response_format": { "type": "xml" } })] {
            let error = question(&with(wrong.clone())).unwrap_err();
            assert!(matches!(error, ApiError::Unsupported { .. }), "{wrong}: {error}");
        }
    }

    #[test]
    fn chunks_have_one_role_and_no_null_in_their_deltas() {
        let head = &test_head("chatcmpl-1");
        let mut chat = Chat { with_usage: true, ..Chat::default() };
        let usage = Usage { prompt: 5, cached: 3, answer: 2, reasoning: 1 };
        let mut events = chat.begin(head);
        events.extend(chat.more(head, Channel::Reasoning, "Hm."));
        events.extend(chat.more(head, Channel::Answer, "Hello"));
        events.extend(chat.end(head, &Finish::Stop, usage));
        events.extend(chat.close(head, usage));
        assert_eq!(events.pop(), Some(Event::Done));
        let chunks: Vec<&Value> = events.iter().map(Event::json).collect();
        let (usage, chunks) = chunks.split_last().unwrap();
        let deltas: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]).collect();
        let expected = [
            json!({ "role": "assistant", "content": "" }),
            json!({ "reasoning_content": "Hm." }),
            json!({ "content": "Hello" }),
            json!({}),
        ];
        assert_eq!(deltas, expected.iter().collect::<Vec<_>>());
        assert!(chunks.iter().all(|chunk| chunk["id"] == "chatcmpl-1" && chunk["object"] == "chat.completion.chunk"));
        let reasons: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]["finish_reason"]).collect();
        assert_eq!(reasons, [&Value::Null, &Value::Null, &Value::Null, &json!("stop")]);
        assert_eq!((&usage["choices"], &usage["usage"]["total_tokens"]), (&json!([]), &json!(7)));
        assert_eq!(usage["usage"]["prompt_tokens_details"]["cached_tokens"], 3);
    }

    #[test]
    fn calls_come_with_their_name_first_and_one_index_each() {
        let head = &test_head("chatcmpl-1");
        let mut chat = Chat::default();
        let mut events = chat.call(head, &test_call("a"));
        events.extend(chat.call(head, &test_call("b")));
        let mut calls = vec![json!({}), json!({})];
        for event in &events {
            let delta = &event.json()["choices"][0]["delta"]["tool_calls"][0];
            let call = &mut calls[delta["index"].as_u64().unwrap() as usize];
            if delta.get("id").is_some() {
                assert_eq!((&delta["type"], &delta["function"]["name"]), (&json!("function"), &json!("weather")));
                *call = delta.clone();
            } else {
                assert_eq!(call["function"]["arguments"], "", "the name first");
                call["function"]["arguments"] = delta["function"]["arguments"].clone();
            }
        }
        let arguments = test_call("a").arguments;
        assert!(calls.iter().all(|call| call["function"]["arguments"] == arguments), "{calls:?}");
        let end = chat.end(head, &Finish::ToolCalls, Usage::default());
        assert_eq!(end[0].json()["choices"][0]["finish_reason"], "tool_calls");

        let whole = Whole {
            text: String::new(),
            reasoning: String::new(),
            calls: vec![test_call("a"), test_call("b")],
            logprobs: Vec::new(),
            finish: Finish::ToolCalls,
            usage: Usage::default(),
        };
        let whole = chat.whole(head, &whole);
        let message = &whole["choices"][0]["message"];
        assert_eq!((&message["content"], &whole["choices"][0]["finish_reason"]), (&Value::Null, &json!("tool_calls")));
        for (mut streamed, whole) in calls.into_iter().zip(message["tool_calls"].as_array().unwrap()) {
            streamed.as_object_mut().unwrap().remove("index");
            assert_eq!(streamed, *whole);
        }
    }

    #[test]
    fn a_whole_answer_has_content_even_if_it_is_empty() {
        let whole = Whole {
            text: String::new(),
            reasoning: "Hm.".to_owned(),
            calls: Vec::new(),
            logprobs: Vec::new(),
            finish: Finish::Length,
            usage: Usage { prompt: 5, cached: 0, answer: 2, reasoning: 2 },
        };
        let reply = Chat::default().whole(&test_head("chatcmpl-1"), &whole);
        assert_eq!(reply["object"], "chat.completion");
        let choice = &reply["choices"][0];
        assert_eq!(
            choice["message"],
            json!({ "role": "assistant", "content": "", "refusal": null, "reasoning_content": "Hm." })
        );
        assert_eq!((&choice["finish_reason"], &reply["usage"]["prompt_tokens"]), (&json!("length"), &json!(5)));
    }

    #[test]
    fn several_answers_are_choices_and_log_probabilities_come_with_their_text() {
        let asked = question(&with(json!({ "n": 2, "logprobs": true, "stream": true }))).unwrap();
        assert_eq!((asked.answers, asked.logits.top_logprobs), (2, Some(0)));
        let head = &test_head("chatcmpl-1");
        let mut second = Chat::of(&asked, 1);
        second.scores(vec![logprobs::example(b"Hi", -0.5, &[])]);
        let events = [second.more(head, Channel::Answer, "Hi"), second.more(head, Channel::Answer, "!")].concat();
        let choices: Vec<&Value> = events.iter().map(|event| &event.json()["choices"][0]).collect();
        assert!(choices.iter().all(|choice| choice["index"] == 1), "{choices:?}");
        assert_eq!(choices[0]["logprobs"]["content"][0]["token"], "Hi");
        assert!(choices[1].get("logprobs").is_none(), "they come once");
        let whole = |text: &str| Whole {
            text: text.to_owned(),
            reasoning: String::new(),
            calls: Vec::new(),
            logprobs: vec![logprobs::example(text.as_bytes(), -0.5, &[])],
            finish: Finish::Stop,
            usage: Usage { prompt: 5, cached: 1, answer: 2, reasoning: 0 },
        };
        let reply = second.all(head, &[whole("a"), whole("b")]);
        let of = |index: usize| &reply["choices"][index];
        assert_eq!((&of(1)["index"], &of(1)["message"]["content"]), (&json!(1), &json!("b")));
        assert_eq!(of(0)["logprobs"]["content"][0]["logprob"], -0.5);
        assert_eq!(reply["usage"]["total_tokens"], 9, "the prompt counts once");
    }
}
