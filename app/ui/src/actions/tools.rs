//! `window.potluck`: functions for tools (`status()`, `chat()`, `trace()`, `bench()`).

use std::collections::HashMap;

use js_sys::{Function, JSON, Object, Promise, Reflect};
use leptos::prelude::*;
use potluck_panel::{
    AnswerPart, AnswerStop, Arithmetic, BenchChoice, BenchReport, BenchWorkload, Channel, KvCacheType, LogitOptions,
    Message, ModelSource, PromptRequest, ReasoningEffort, RequestId, Role, Sampling, Timings, ToNode, ToolOffer,
};
use potluck_text::texts;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use wasm_bindgen::{JsCast, JsValue, prelude::Closure};

use crate::{browser, state::Store};

/// Pending calls of `potluck.chat()`, `potluck.trace()` and `potluck.bench()`.
#[derive(Default)]
pub struct ToolCalls {
    chats: HashMap<RequestId, Chat>,
    traces: Vec<Function>,
    bench: Option<(Function, Function)>,
}

struct Chat {
    resolve: Function,
    reject: Function,
    reasoning: String,
    text: String,
    tool_calls: String,
    tokens: Vec<u32>,
}

/// The second argument of `potluck.chat()`, besides the sampling parameters.
#[derive(Serialize, Deserialize)]
struct Options {
    max_tokens: u32,
    raw: bool,
    reasoning: Option<ReasoningEffort>,
}

/// `usual` with the fields that are given. `None` if one is of another type.
fn with_given<T: Serialize + DeserializeOwned>(usual: &T, given: &Map<String, Value>) -> Option<T> {
    let mut value = serde_json::to_value(usual).ok()?;
    value.as_object_mut()?.extend(given.clone());
    serde_json::from_value(value).ok()
}

/// What `potluck.chat()` resolves to.
#[derive(Serialize)]
struct ChatResult<'a> {
    text: &'a str,
    reasoning: &'a str,
    tool_calls: &'a str,
    tokens: &'a [u32],
    end: &'a AnswerStop,
    timings: Timings,
}

impl ToolCalls {
    /// Handles a part of an answer; `false` if no tool requested it.
    pub fn take(&mut self, request: RequestId, event: &AnswerPart) -> bool {
        let Some(chat) = self.chats.get_mut(&request) else { return false };
        match event {
            AnswerPart::Text { channel, delta, tokens, .. } => {
                let text = match channel {
                    Channel::Reasoning => &mut chat.reasoning,
                    Channel::Answer => &mut chat.text,
                    Channel::ToolCall => &mut chat.tool_calls,
                };
                text.push_str(delta);
                chat.tokens.extend(tokens);
            }
            AnswerPart::End { stop, timings, .. } => self.finish(request, stop, *timings),
            AnswerPart::Unknown => {
                self.finish(
                    request,
                    &AnswerStop::Failed(texts().answer.question_lost().to_owned()),
                    Timings::default(),
                );
            }
            AnswerPart::Void { .. } => {
                for text in [&mut chat.reasoning, &mut chat.text, &mut chat.tool_calls] {
                    text.clear();
                }
                chat.tokens.clear();
            }
            AnswerPart::Queued(_)
            | AnswerPart::Reading(..)
            | AnswerPart::Recovering(_)
            | AnswerPart::Doubtful { .. } => {}
        }
        true
    }

    fn finish(&mut self, request: RequestId, end: &AnswerStop, timings: Timings) {
        if let Some(chat) = self.chats.remove(&request) {
            chat.finish(end, timings);
        }
    }

    /// Fails all pending answers.
    pub fn give_up(&mut self, reason: &str) {
        for (_, chat) in self.chats.drain() {
            chat.finish(&AnswerStop::Failed(reason.to_owned()), Timings::default());
        }
    }

    /// Tokens received for unfinished answers.
    fn tokens_under_way(&self) -> usize {
        self.chats.values().map(|chat| chat.tokens.len()).sum()
    }

    /// Resolves or rejects a pending `potluck.bench()`.
    pub fn end_bench(&mut self, result: Result<&BenchReport, &str>) {
        let Some((resolve, reject)) = self.bench.take() else { return };
        // A promise's own functions do not throw.
        let _done = match result {
            Ok(report) => resolve.call1(&JsValue::NULL, &as_js(report)),
            Err(why) => reject.call1(&JsValue::NULL, &js_sys::Error::new(why)),
        };
    }

    /// Resolves all pending `potluck.trace()` calls.
    pub fn answer_traces(&mut self, text: &str) {
        let value = JSON::parse(text).unwrap_or_else(|_| JsValue::from_str(text));
        for resolve in self.traces.drain(..) {
            // A promise's own resolve function does not throw.
            let _done = resolve.call1(&JsValue::NULL, &value);
        }
    }
}

impl Chat {
    fn finish(self, end: &AnswerStop, timings: Timings) {
        let Self { reasoning, text, tool_calls, tokens, .. } = &self;
        let result = ChatResult { text, reasoning, tool_calls, tokens, end, timings };
        let _done = match end {
            AnswerStop::Failed(why) | AnswerStop::Refused(why) => {
                self.reject.call1(&JsValue::NULL, &js_sys::Error::new(why))
            }
            _ => self.resolve.call1(&JsValue::NULL, &as_js(&result)),
        };
    }
}

/// Puts `potluck` on the window.
pub fn install_tools(store: Store) {
    let potluck = Object::new();
    let status = Closure::<dyn Fn() -> JsValue>::new(move || status(store));
    let chat = Closure::<dyn Fn(String, JsValue) -> Promise>::new(move |text, options| chat(store, text, &options));
    let trace = Closure::<dyn Fn() -> Promise>::new(move || trace(store));
    let bench = Closure::<dyn Fn(JsValue) -> Promise>::new(move |options| bench(store, &options));
    for (name, function) in [
        ("status", status.into_js_value()),
        ("chat", chat.into_js_value()),
        ("trace", trace.into_js_value()),
        ("bench", bench.into_js_value()),
    ] {
        // Setting a property of a fresh object cannot fail.
        let _set = Reflect::set(&potluck, &name.into(), &function);
    }
    let _set = Reflect::set(&browser::window(), &"potluck".into(), &potluck);
}

fn status(store: Store) -> JsValue {
    let mut value = store.room.status.with_untracked(|status| serde_json::to_value(status)).unwrap_or_default();
    let link = store
        .room
        .status
        .with_untracked(|status| status.room.as_ref().map(|room| format!("{}{}", browser::home(), room.link)));
    if let Some(fields) = value.as_object_mut() {
        fields.insert("link".into(), link.into());
        let timings = serde_json::to_value(store.room.last_timings.get_untracked()).unwrap_or_default();
        fields.insert("timings".into(), timings);
        let tokens = store.node.tools.with_value(ToolCalls::tokens_under_way);
        fields.insert("answering".into(), serde_json::json!({ "tokens": tokens }));
        fields.insert("tokens_received".into(), store.room.tokens.get_untracked().into());
    }
    as_js(&value)
}

fn chat(store: Store, text: String, options: &JsValue) -> Promise {
    let given = JSON::stringify(options).ok().and_then(|text| text.as_string());
    let given: Map<String, Value> = given.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let usual = (Options { max_tokens: 256, raw: false, reasoning: None }, Sampling::greedy());
    let options = with_given(&usual.0, &given).zip(with_given(&usual.1, &given));
    let (options, sampling) = options.unwrap_or(usual);
    let request = store.next_request();
    Promise::new(&mut |resolve, reject| {
        store.node.tools.update_value(|calls| {
            let [reasoning, text, tool_calls] = [(); 3].map(|()| String::new());
            calls.chats.insert(request, Chat { resolve, reject, reasoning, text, tool_calls, tokens: Vec::new() });
        });
        store.send(ToNode::Prompt(PromptRequest {
            request,
            conversation: format!("tool-{}", request.0),
            messages: vec![Message::new(Role::User, text.clone())],
            raw: options.raw,
            max_tokens: options.max_tokens.max(1),
            sampling,
            reasoning: options.reasoning,
            tools: ToolOffer::default(),
            logits: LogitOptions::default(),
        }));
    })
}

/// The argument of `potluck.bench()`: a model of the relay or a link, and changes to the default short workload.
#[derive(Deserialize)]
#[serde(default)]
struct BenchOptions {
    model: Option<String>,
    link: Option<String>,
    workloads: Vec<(u32, u32)>,
    depths: Vec<u32>,
    repeats: u32,
    cache: KvCacheType,
    arithmetic: Arithmetic,
    kernels: bool,
    tuned: bool,
}

impl Default for BenchOptions {
    fn default() -> Self {
        Self {
            model: None,
            link: None,
            workloads: vec![(25, 128)],
            depths: vec![0],
            repeats: 5,
            cache: KvCacheType::F32,
            arithmetic: Arithmetic::Exact,
            kernels: true,
            tuned: true,
        }
    }
}

impl BenchOptions {
    fn choice(self) -> Option<BenchChoice> {
        let Self { model, link, workloads, depths, repeats, cache, arithmetic, kernels, tuned } = self;
        let model = match (model, link) {
            (Some(name), _) => ModelSource::Relay { name },
            (None, Some(url)) => ModelSource::Link { url },
            (None, None) => return None,
        };
        let workloads = workloads.into_iter().map(|(prompt, answer)| BenchWorkload { prompt, answer }).collect();
        Some(BenchChoice { model, workloads, depths, repeats, cache, arithmetic, kernels, tuned, sampled: false })
    }
}

fn bench(store: Store, options: &JsValue) -> Promise {
    let given = JSON::stringify(options).ok().and_then(|text| text.as_string());
    let options = given.and_then(|text| serde_json::from_str::<BenchOptions>(&text).ok());
    let Some(choice) = options.and_then(BenchOptions::choice) else {
        let why = "potluck.bench() needs { model } or { link }, and understands workloads, depths, repeats, cache, arithmetic, kernels, tuned.";
        return Promise::reject(&js_sys::Error::new(why));
    };
    Promise::new(&mut |resolve, reject| {
        store.node.tools.update_value(|calls| {
            calls.end_bench(Err(texts().notice.bench_replaced()));
            calls.bench = Some((resolve, reject));
        });
        store.start_bench(choice.clone(), None);
    })
}

fn trace(store: Store) -> Promise {
    Promise::new(&mut |resolve, _reject| {
        store.node.tools.update_value(|calls| calls.traces.push(resolve.unchecked_into()));
        store.send(ToNode::Trace);
    })
}

/// Goes through JSON text, so that large numbers become numbers instead of `BigInt`s.
fn as_js<T: Serialize>(value: &T) -> JsValue {
    serde_json::to_string(value).ok().and_then(|text| JSON::parse(&text).ok()).unwrap_or(JsValue::NULL)
}
