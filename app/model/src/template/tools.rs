//! What a template makes of functions and their calls, and what a model reads in its place where the template makes nothing of them.

use super::{ChatTemplate, LocalTime, Message, RenderOptions, ToolCall};

const NAME: &str = "function_7f3a";
const KEY: &str = "key_7f3a";
const ARGUMENT: &str = "argument_7f3a";
const RESULT: &str = "result_7f3a";
/// Nine letters and digits, as Mistral's templates want it.
const ID: &str = "call07f3a";

/// What a template makes of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolSupport {
    /// It tells the model which functions are offered.
    pub offers: bool,
    /// It writes calls and their results.
    pub calls: bool,
}

fn function() -> String {
    format!(
        r#"{{"type": "function", "function": {{"name": "{NAME}", "description": "A function.", "parameters": {{"type": "object", "properties": {{"{KEY}": {{"type": "string", "description": "A text."}}}}, "required": ["{KEY}"]}}}}}}"#
    )
}

fn question() -> Message {
    Message::new("user", "Hi")
}

fn call() -> Message {
    let arguments = format!(r#"{{"{KEY}": "{ARGUMENT}"}}"#);
    let call = ToolCall { id: ID.to_owned(), name: NAME.to_owned(), arguments };
    Message { tool_calls: vec![call], ..Message::new("assistant", "") }
}

fn result() -> Message {
    let (id, name) = (Some(ID.to_owned()), Some(NAME.to_owned()));
    Message { tool_call_id: id, name, ..Message::new("tool", RESULT) }
}

impl ChatTemplate {
    /// What this template makes of functions.
    pub fn tool_support(&self) -> ToolSupport {
        let now = Some(LocalTime::from_unix(0));
        let has = |messages: &[Message], tools: Vec<String>, marks: &[&str]| {
            let options = RenderOptions { tools, now, ..RenderOptions::default() };
            self.render(messages, &options).is_ok_and(|text| marks.iter().all(|mark| text.contains(mark)))
        };
        ToolSupport {
            offers: has(&[question()], vec![function()], &[NAME, KEY]),
            calls: has(&[question(), call(), result()], Vec::new(), &[NAME, ARGUMENT, RESULT]),
        }
    }

    /// What follows the prompt where an answer begins with a call, up to the name of the function: `<tool_call>\n{"name": "` of Qwen.
    /// `None`: it is not clear from this template.
    pub fn call_opening(&self, options: &RenderOptions) -> Option<String> {
        self.written_call(options).map(|(opening, _)| opening)
    }

    /// How a call is written whose arguments are JSON. `None`: it is not clear from this template, or its calls have another form.
    pub fn call_form(&self, options: &RenderOptions) -> Option<CallForm> {
        let (opening, rest) = self.written_call(options)?;
        let at = rest[..rest.find(KEY)?].rfind('{')?;
        let mut arguments = serde_json::Deserializer::from_str(&rest[at..]).into_iter::<serde_json::Value>();
        let read = arguments.next()?.ok()?;
        let closing = &rest[at + arguments.byte_offset()..];
        // What a call has of its own cannot be written for it.
        let has_own = |text: &str| text.contains(ID) || text.contains(NAME);
        let is_whole = read == serde_json::json!({ KEY: ARGUMENT }) && !has_own(&rest[..at]) && !has_own(closing);
        is_whole.then(|| CallForm { opening, between: rest[..at].to_owned(), closing: closing.to_owned() })
    }

    /// A call in place of an answer: up to the name of the function, and from there on.
    fn written_call(&self, options: &RenderOptions) -> Option<(String, String)> {
        let options =
            |add_generation_prompt| RenderOptions { tools: vec![function()], add_generation_prompt, ..options.clone() };
        let prompt = self.render(&[question()], &options(true)).ok()?;
        let whole = self.render(&[question(), call()], &options(false)).ok()?;
        // The prompt has the name once, where it offers the function.
        let (opening, rest) = whole.strip_prefix(&prompt)?.split_once(NAME)?;
        (!opening.trim().is_empty()).then(|| (opening.to_owned(), rest.to_owned()))
    }
}

/// How calls are written whose arguments are JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallForm {
    /// Up to the name of the function.
    pub opening: String,
    /// From the name to the arguments.
    pub between: String,
    /// Behind the arguments, with what ends the answer.
    pub closing: String,
}

impl CallForm {
    /// As [`plain_offer`] asks for calls.
    pub fn plain() -> Self {
        let (between, closing) = ("\", \"arguments\": ".to_owned(), "}\n</tool_call>".to_owned());
        Self { opening: PLAIN_CALL_OPENING.to_owned(), between, closing }
    }
}

/// How a call begins where the template says nothing of calls, up to the name of the function.
pub const PLAIN_CALL_OPENING: &str = "<tool_call>\n{\"name\": \"";

/// Tells a model of functions, each a JSON text, where its template does not.
pub fn plain_offer(functions: &[String]) -> String {
    format!(
        "You may call functions. These are the functions:\n<tools>\n{}\n</tools>\n\nTo call one, write its name and its arguments \
         as JSON between <tool_call> and </tool_call>, like this:\n<tool_call>\n{{\"name\": \"NAME\", \"arguments\": {{}}}}\n\
         </tool_call>\n\nYou then get the result between <tool_response> and </tool_response>. If no function helps, answer without \
         a call.",
        functions.join("\n")
    )
}

/// A call as [`plain_offer`] asks for it.
pub fn plain_call(call: &ToolCall) -> String {
    let name = serde_json::Value::from(call.name.as_str());
    format!("<tool_call>\n{{\"name\": {name}, \"arguments\": {}}}\n</tool_call>", call.arguments)
}

/// A result as [`plain_offer`] announces it.
pub fn plain_result(result: &str) -> String {
    format!("<tool_response>\n{result}\n</tool_response>")
}
