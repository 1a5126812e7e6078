//! Whatever a file says about its chat template, a question is in its prompt, and the answer can end.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "common/vocabulary.rs"]
mod vocabulary;

use potluck_gguf::{Array, Metadata, Value};
use potluck_model::{
    Channels, ChatTemplate, Message, RenderOptions, StopTokens, TemplateError, TemplateFault, TemplateOrigin,
    Tokenizer, TurnFamily,
};
use potluck_plan::ReasoningEffort;

const CHATML: [&str; 2] = ["<|im_start|>", "<|im_end|>"];
const BASE: [&str; 0] = [];
const TEMPLATE: &str = "tokenizer.chat_template";

/// SmolVLM's, whose messages are lists of parts.
const SMOLVLM: &str = "<|im_start|>{% for message in messages %}{{message['role'] | capitalize}}\
    {% if message['content'][0]['type'] == 'image' %}{{':'}}{% else %}{{': '}}{% endif %}\
    {% for line in message['content'] %}{% if line['type'] == 'text' %}{{line['text']}}\
    {% elif line['type'] == 'image' %}{{ '<image>' }}{% endif %}{% endfor %}<end_of_utterance>\n{% endfor %}\
    {% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}";
const GOOD: &str = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant] ";

/// A vocabulary with the beginning and the end of a text and these control tokens.
fn metadata(control: &[&str], entries: &[(&str, Value)]) -> Metadata {
    let mut metadata = vocabulary::metadata(&vocabulary::control(&[&["<s>", "</s>"], control].concat()));
    metadata.insert("tokenizer.ggml.bos_token_id", Value::U32(256));
    metadata.insert("tokenizer.ggml.eos_token_id", Value::U32(257));
    for (key, value) in entries {
        metadata.insert(*key, value.clone());
    }
    metadata
}

fn open(control: &[&str], entries: &[(&str, Value)]) -> ChatTemplate {
    let metadata = metadata(control, entries);
    let tokenizer = Tokenizer::from_metadata(&metadata).unwrap();
    ChatTemplate::from_metadata(&metadata, &tokenizer).unwrap()
}

fn conversation() -> Vec<Message> {
    [("system", "Be brief."), ("user", "Why is the sky blue?"), ("assistant", "Air."), ("user", "And the sea?")]
        .map(|(role, text)| Message::new(role, text))
        .to_vec()
}

fn prompt(template: &ChatTemplate) -> String {
    template.render(&conversation(), &RenderOptions::default()).unwrap()
}

fn text(source: &str) -> Value {
    Value::from(source)
}

fn list(sources: &[&str]) -> Value {
    Value::Array(Array::String(sources.iter().map(|source| (*source).to_owned()).collect()))
}

/// Ways in which published files are made, and in which they are broken.
fn files() -> Vec<(&'static str, Vec<(&'static str, Value)>)> {
    let named = |name: &'static str| vec![("tokenizer.chat_templates", list(&["tool_use"])), (name, text(GOOD))];
    vec![
        ("no template", vec![]),
        ("a good one", vec![(TEMPLATE, text(GOOD))]),
        ("parts", vec![(TEMPLATE, text(SMOLVLM))]),
        ("empty", vec![(TEMPLATE, text(""))]),
        ("blank", vec![(TEMPLATE, text(" \n\t"))]),
        ("only a comment", vec![(TEMPLATE, text("{# soon #}"))]),
        ("only the beginning", vec![(TEMPLATE, text("{{ bos_token }}"))]),
        ("a syntax error", vec![(TEMPLATE, text("{% for m in messages %}{{ m.content }"))]),
        ("an unknown filter", vec![(TEMPLATE, text("{{ messages | frobnicate }}"))]),
        ("refuses everything", vec![(TEMPLATE, text("{{ raise_exception('No.') }}"))]),
        ("a number", vec![(TEMPLATE, Value::U32(7))]),
        ("named only", named("tokenizer.chat_template.tool_use")),
        ("an array", vec![(TEMPLATE, list(&["", GOOD]))]),
        ("an empty array", vec![(TEMPLATE, list(&[]))]),
        ("another key", vec![(TEMPLATE, text("{% for m in messages %}{{ m.role }}: {{ m.text }}\n{% endfor %}"))]),
        ("the first question only", vec![(TEMPLATE, text("{{ messages[0].content }} {{ messages[1].content }}"))]),
        ("the last message only", vec![(TEMPLATE, text("Q: {{ messages[-1].content }} A:"))]),
        (
            "no system",
            vec![(TEMPLATE, text(&GOOD.replace("[{{", "{% if m.role == 'system' %}{% continue %}{% endif %}[{{")))],
        ),
    ]
}

#[test]
fn the_question_is_in_the_prompt() {
    for control in [&CHATML[..], &BASE[..]] {
        for (name, entries) in files() {
            let template = open(control, &entries);
            let prompt = prompt(&template);
            for said in ["Be brief.", "And the sea?"] {
                assert_eq!(prompt.matches(said).count(), 1, "{name}: {said:?} in {prompt:?}");
            }
            let own = template.choice().origin == TemplateOrigin::File;
            assert!(own || control == CHATML || !prompt.contains("<|im_"), "{name}: no such tokens, {prompt:?}");
        }
    }
}

#[test]
fn parts_are_what_some_templates_read() {
    let template = open(&CHATML, &[(TEMPLATE, text(SMOLVLM))]);
    assert_eq!(template.choice().origin, TemplateOrigin::File);
    assert_eq!(
        prompt(&template),
        "<|im_start|>System: Be brief.<end_of_utterance>\nUser: Why is the sky blue?<end_of_utterance>\n\
         Assistant: Air.<end_of_utterance>\nUser: And the sea?<end_of_utterance>\nAssistant:"
    );
}

#[test]
fn a_base_model_gets_turns_in_words_and_its_answer_ends_with_them() {
    let template = open(&BASE, &[]);
    assert_eq!(template.choice().origin, TemplateOrigin::Plain);
    assert_eq!(template.choice().fault, Some(TemplateFault::Missing));
    assert_eq!(
        prompt(&template),
        "Be brief.\n\nUser:\nWhy is the sky blue?\n\nAssistant:\nAir.\n\nUser:\nAnd the sea?\n\nAssistant:\n"
    );
    assert!(template.stop_strings().contains(&"\nUser:".to_owned()));
    assert!(open(&CHATML, &[]).stop_strings().is_empty(), "its answers end with a token");
}

#[test]
fn a_vocabulary_with_tokens_for_turns_gets_those() {
    let families: [(&[&str], TurnFamily); 5] = [
        (&CHATML, TurnFamily::ChatMl),
        (&["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"], TurnFamily::Llama3),
        (&["<start_of_turn>", "<end_of_turn>"], TurnFamily::Gemma),
        (&["[INST]", "[/INST]"], TurnFamily::Mistral),
        (&["<|user|>", "<|assistant|>", "<|end|>"], TurnFamily::Phi),
    ];
    for (control, family) in families {
        let metadata = metadata(control, &[]);
        let tokenizer = Tokenizer::from_metadata(&metadata).unwrap();
        let template = ChatTemplate::from_metadata(&metadata, &tokenizer).unwrap();
        assert_eq!(template.choice().origin, TemplateOrigin::Turns(family));
        let ids = template
            .encode(&tokenizer, &Channels::new(&tokenizer, &template), &conversation(), &RenderOptions::default())
            .unwrap();
        for name in &control[..2] {
            assert!(ids.contains(&tokenizer.special_id(name).unwrap()), "{family:?} writes {name}");
        }
        let stop = StopTokens::from_metadata(&metadata, &tokenizer).unwrap();
        assert!(stop.iter().next().is_some(), "{family:?} can end");
    }
}

#[test]
fn which_template_is_used_and_why_is_known() {
    let choice = |entries: &[(&str, Value)]| open(&BASE, entries).choice().clone();
    let named = choice(&[("tokenizer.chat_template.tool_use", text(GOOD))]);
    assert_eq!((named.origin, named.fault), (TemplateOrigin::Named("tool_use".into()), Some(TemplateFault::Missing)));
    let both =
        choice(&[("tokenizer.chat_template.rag", text("{{ 1 }}")), ("tokenizer.chat_template.default", text(GOOD))]);
    assert_eq!(both.origin, TemplateOrigin::Named("default".into()));
    let listed = choice(&[(TEMPLATE, list(&["", GOOD]))]);
    assert_eq!((listed.origin, listed.fault), (TemplateOrigin::Named("2".into()), Some(TemplateFault::Blank)));
    let fault = |source: &str| choice(&[(TEMPLATE, text(source))]).fault.unwrap();
    assert_eq!(fault(""), TemplateFault::Blank);
    assert_eq!(fault("{{ bos_token }}!"), TemplateFault::QuestionLost);
    assert!(matches!(fault("{% if %}"), TemplateFault::Failed(_)));
    assert!(matches!(fault("{{ raise_exception('No.') }}"), TemplateFault::Failed(_)));
    assert_eq!(choice(&[(TEMPLATE, Value::Bool(true))]).fault, Some(TemplateFault::NotText));
    assert_eq!(choice(&[(TEMPLATE, text(GOOD))]).fault, None);
}

/// A file may have any number of templates, and each may run until it is stopped.
#[test]
fn few_templates_of_a_file_are_tried() {
    let of = |unusable: usize| {
        let sources = [vec![""; unusable], vec![GOOD]].concat();
        open(&BASE, &[(TEMPLATE, list(&sources))]).choice().clone()
    };
    assert_eq!(of(7).origin, TemplateOrigin::Named("8".into()));
    assert_eq!((of(8).origin, of(8).fault), (TemplateOrigin::Plain, Some(TemplateFault::Blank)));
}

#[test]
fn a_template_that_runs_away_is_not_tried_in_another_form() {
    let source = format!("{{% if messages[0].content is string %}}{{{{ 'x' * 2000000 }}}}{{% endif %}}{SMOLVLM}");
    let choice = open(&BASE, &[(TEMPLATE, text(&source))]).choice().clone();
    assert_eq!(choice.fault, Some(TemplateFault::Failed(TemplateError::Runaway)));
    assert_eq!(choice.origin, TemplateOrigin::Plain);
}

/// Templates are rendered with the token's name, whatever it is, and never read it as a part of themselves.
#[test]
fn the_name_of_a_token_is_no_part_of_a_template() {
    let mut metadata = metadata(&["<|user|>", "<|assistant|>"], &[]);
    let tokens = metadata.strings("tokenizer.ggml.tokens").unwrap();
    let tokens: Vec<String> = tokens.iter().map(|token| token.replace("</s>", "{%")).collect();
    metadata.insert("tokenizer.ggml.tokens", tokens.into());
    let tokenizer = Tokenizer::from_metadata(&metadata).unwrap();
    let template = ChatTemplate::from_metadata(&metadata, &tokenizer).unwrap();
    assert_eq!(template.choice().origin, TemplateOrigin::Turns(TurnFamily::Phi));
    assert!(prompt(&template).ends_with("And the sea?{%\n<|assistant|>\n"), "{}", prompt(&template));
}

/// Templates read reasoning under one of these names.
#[test]
fn reasoning_has_every_name_that_templates_read() {
    for name in ["thinking", "reasoning_content"] {
        let source = format!("{{% for m in messages %}}{{{{ m.content }}}} ({{{{ m.{name} }}}}) {{% endfor %}}");
        let template = open(&CHATML, &[(TEMPLATE, text(&source))]);
        let answer = Message { reasoning: Some("hm".into()), ..Message::new("assistant", "Hi") };
        let rendered = template.render(&[answer], &RenderOptions::default()).unwrap();
        assert_eq!(rendered, "Hi (hm) ", "{name}");
    }
}

/// Templates know different words, and many refuse the others.
#[test]
fn a_chosen_effort_is_one_that_the_template_knows() {
    let of = |known: &[&str], effort: ReasoningEffort| {
        let source = format!(
            "{{% if reasoning_effort is defined and reasoning_effort not in {known:?} %}}{{{{ raise_exception('No such effort.') }}}}\
             {{% endif %}}{{{{ reasoning_effort | default('none chosen') }}}} {GOOD}"
        );
        let rendered = open(&BASE, &[(TEMPLATE, text(&source))])
            .render(&[Message::new("user", "Hi")], &RenderOptions::default().with_effort(Some(effort)))
            .unwrap();
        rendered.split_once(" [user] Hi").expect("the question").0.to_owned()
    };
    use ReasoningEffort::{High, Low, Medium, Off};
    let efforts = [Off, Low, Medium, High];
    assert_eq!(efforts.map(|effort| of(&["none", "high"], effort)), ["none", "high", "high", "high"]);
    assert_eq!(efforts.map(|effort| of(&["no_think", "high"], effort)), ["no_think", "high", "high", "high"]);
    assert_eq!(efforts.map(|effort| of(&["low", "medium", "xhigh"], effort)), ["low", "low", "medium", "xhigh"]);
    assert_eq!(efforts.map(|effort| of(&["low", "medium", "high"], effort)), ["low", "low", "medium", "high"]);
    assert_eq!(efforts.map(|effort| of(&["17"], effort)), ["none chosen"; 4]);
}

#[test]
fn what_a_template_refuses_with_every_effort_is_said_once() {
    let source = format!("{{% if messages | length > 4 %}}{{{{ raise_exception('Too long.') }}}}{{% endif %}}{GOOD}");
    let template = open(&BASE, &[(TEMPLATE, text(&source))]);
    let messages = [conversation(), conversation()].concat();
    let refused = template.render(&messages, &RenderOptions::default().with_effort(Some(ReasoningEffort::High)));
    assert_eq!(refused, Err(TemplateError::Refused("Too long.".into())));
}
