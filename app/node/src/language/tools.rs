//! Functions, their calls and results, as the template of a model reads them.

use std::collections::HashMap;

use potluck_model::{Message as TemplateMessage, ToolCall, plain_call, plain_offer, plain_result};
use potluck_protocol::{Message, Role};

/// How a template gets calls and their results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// By name and arguments, if their form is known; ids as they are.
    Calls,
    /// The same with ids of nine letters and digits: Mistral's templates refuse others.
    ShortIds,
    /// As a part of what is said.
    Text,
    /// The same in the form in which [`plain_offer`] asks for calls.
    Tagged,
}

/// Messages as templates see them. The last one is a question, or an answer that goes on with what its model wrote.
pub(super) fn in_template(messages: &[Message], form: Form) -> Vec<TemplateMessage> {
    let last = messages.len().saturating_sub(1);
    let mut calls = Calls { form, names: HashMap::new(), count: 0 };
    let mut all: Vec<TemplateMessage> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let next = match message.role {
            Role::Assistant => calls.assistant(message, index == last),
            Role::Tool => calls.result(message),
            Role::System | Role::User => TemplateMessage::new(role_name(message.role), message.content.clone()),
        };
        match all.last_mut() {
            // Results that are said by the user make one message with what else the user says: templates insist on turns.
            Some(before) if form == Form::Tagged && before.role == "user" && next.role == "user" => {
                before.content = format!("{}\n{}", before.content, next.content);
            }
            _ => all.push(next),
        }
    }
    all
}

/// The calls so far.
struct Calls {
    form: Form,
    /// The id that the template gets, and the function, by the id of the conversation.
    names: HashMap<String, (String, String)>,
    count: usize,
}

impl Calls {
    fn assistant(&mut self, message: &Message, is_begun: bool) -> TemplateMessage {
        let Message { role, content, reasoning, tool_calls, .. } = message;
        let mut said = TemplateMessage::new(role_name(*role), content.clone());
        said.reasoning = Some(reasoning.clone()).filter(|reasoning| !reasoning.is_empty());
        let written = match self.form {
            Form::Calls | Form::ShortIds if !is_begun => {
                said.tool_calls = ToolCall::read(tool_calls).into_iter().map(|call| self.numbered(call)).collect();
                if said.tool_calls.is_empty() { tool_calls.clone() } else { String::new() }
            }
            Form::Tagged => match &ToolCall::read(tool_calls)[..] {
                [] => tool_calls.clone(),
                calls => calls.iter().map(plain_call).collect::<Vec<_>>().join("\n"),
            },
            Form::Calls | Form::ShortIds | Form::Text => tool_calls.clone(),
        };
        if !written.is_empty() {
            let gap = if content.is_empty() { "" } else { "\n\n" };
            said.content = format!("{content}{gap}{written}");
        }
        said
    }

    fn numbered(&mut self, call: ToolCall) -> ToolCall {
        let given = call.id.clone();
        let id = if self.form == Form::ShortIds { format!("call{:05}", self.count) } else { call.id };
        self.count += 1;
        self.names.insert(given, (id.clone(), call.name.clone()));
        ToolCall { id, ..call }
    }

    fn result(&self, message: &Message) -> TemplateMessage {
        if matches!(self.form, Form::Text | Form::Tagged) {
            return TemplateMessage::new("user", plain_result(&message.content));
        }
        let known = self.names.get(&message.tool_call_id);
        let id = known.map_or_else(|| message.tool_call_id.clone(), |(id, _)| id.clone());
        let name = known.map(|(_, name)| name.clone());
        TemplateMessage { tool_call_id: Some(id), name, ..TemplateMessage::new("tool", message.content.clone()) }
    }
}

/// The same with functions offered in the instructions, where the template does not offer them.
pub(super) fn with_plain_offer(mut messages: Vec<TemplateMessage>, functions: &[String]) -> Vec<TemplateMessage> {
    let offer = plain_offer(functions);
    match messages.first_mut() {
        Some(first) if first.role == "system" => first.content = format!("{}\n\n{offer}", first.content.trim_end()),
        _ => messages.insert(0, TemplateMessage::new("system", offer)),
    }
    messages
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}
