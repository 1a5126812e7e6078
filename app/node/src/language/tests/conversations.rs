//! Conversations with models that separate reasoning from answer: what is read of an answer goes into the next prompt as the
//! model's template wants it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_gguf::{Array, Value};
use potluck_plan::ReasoningEffort;

use super::*;

const GPT_OSS: &str = include_str!("../../../../model/tests/templates/gpt-oss.jinja");
const HARMONY: [&str; 7] =
    ["<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>"];
const QWEN: &str = include_str!("../../../../model/tests/templates/qwen3.jinja");

pub(super) fn model(template: &str, control: &[&str]) -> ModelLanguage {
    let mut metadata = Synthetic::default().header().unwrap().metadata;
    let mut tokens = metadata.strings("tokenizer.ggml.tokens").unwrap().to_vec();
    let Some(Value::Array(Array::I32(kinds))) = metadata.get("tokenizer.ggml.token_type") else { panic!("no kinds") };
    let kinds = kinds.iter().copied().chain(control.iter().map(|_| 3)).collect();
    tokens.extend(control.iter().map(|name| (*name).to_owned()));
    metadata.insert("tokenizer.ggml.tokens", tokens.into());
    metadata.insert("tokenizer.ggml.token_type", Value::Array(Array::I32(kinds)));
    metadata.insert("tokenizer.chat_template", template.into());
    ModelLanguage::read(&metadata, 4096, LocalTime::from_unix(0)).unwrap().0
}

/// The text of a question's prompt.
pub(super) fn prompt(language: &ModelLanguage, question: &PromptRequest) -> String {
    let tokens = language.render(question).unwrap();
    String::from_utf8(tokens.iter().flat_map(|token| language.piece(*token)).collect()).unwrap()
}

/// What the asker gets of the answer to a question whose prompt has these tokens, where the model writes this.
pub(super) fn answer(
    language: &ModelLanguage,
    question: &PromptRequest,
    prompt: &[u32],
    written: &str,
) -> Vec<ChannelText> {
    let mut decoder = language.decoder(question, prompt);
    let tokens = language.tokenizer.encode(written, SpecialText::Parse);
    let mut texts: Vec<ChannelText> = tokens.into_iter().flat_map(|token| decoder.push(token)).collect();
    texts.extend(decoder.finish());
    texts
}

/// The question, its answer as the asker keeps it, and another question.
fn turns(language: &ModelLanguage, written: &str) -> [Message; 3] {
    let asked = question(&[Message::new(Role::User, "Say hi")]);
    let texts = answer(language, &asked, &language.render(&asked).unwrap(), written);
    let of = |channel| texts.iter().filter(|text| text.channel == channel).map(|text| text.text.as_str()).collect();
    let (reasoning, content, tool_calls) = (of(Channel::Reasoning), of(Channel::Answer), of(Channel::ToolCall));
    let answered = Message { reasoning, tool_calls, ..Message::new(Role::Assistant, content) };
    [asked.messages[0].clone(), answered, Message::new(Role::User, "Again")]
}

/// Once, the next prompt had `…final<|message|>analysishmassistantfinalHi<|end|>`.
#[test]
fn gpt_oss_gets_its_final_message_back_and_nothing_else() {
    let language = model(GPT_OSS, &HARMONY);
    let text = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hi";
    let messages = turns(&language, text);
    assert_eq!((messages[1].reasoning.as_str(), messages[1].content.as_str()), ("hm", "Hi"));
    let next = prompt(&language, &question(&messages));
    let expected = "<|start|>user<|message|>Say hi<|end|><|start|>assistant<|channel|>final<|message|>Hi<|end|>\
        <|start|>user<|message|>Again<|end|><|start|>assistant";
    assert!(next.ends_with(expected), "{next}");
}

#[test]
fn a_call_goes_back_in_the_templates_own_form_or_as_text() {
    let language = model(GPT_OSS, &HARMONY);
    let text = "<|channel|>commentary to=functions.now <|constrain|>json<|message|>{\"zone\":\"UTC\"}";
    let next = prompt(&language, &question(&turns(&language, text)));
    let call = "<|start|>assistant to=functions.now<|channel|>commentary json<|message|>{\"zone\": \"UTC\"}<|call|>";
    assert!(next.contains(call), "{next}");
    let refuses = "{% for m in messages %}{% if m.tool_calls %}{{ raise_exception('a result is missing') }}{% endif %}\
        {{ m.role }}: {{ m.content }}\n{% endfor %}assistant: ";
    let language = model(refuses, &["<tool_call>", "</tool_call>"]);
    let next = prompt(&language, &question(&turns(&language, "So.<tool_call>{\"name\": \"now\"}</tool_call>")));
    assert_eq!(next, "user: Say hi\nassistant: So.\n\n{\"name\": \"now\"}\nuser: Again\nassistant: ");
}

#[test]
fn qwen_gets_no_reasoning_of_earlier_turns() {
    let language = model(QWEN, &["<think>", "</think>"]);
    let messages = turns(&language, "<think>\nhm\n</think>\n\nHi");
    assert_eq!((messages[1].reasoning.as_str(), messages[1].content.as_str()), ("hm", "Hi"));
    let next = prompt(&language, &question(&messages));
    assert!(next.contains("assistant\nHi<|im_end|>") && !next.contains("hm"), "{next}");
}

/// Each template has its own variable.
#[test]
fn reasoning_is_asked_for_where_the_template_knows_it() {
    let asked = [Message::new(Role::User, "Say hi")];
    let with =
        |language: &ModelLanguage, effort| prompt(language, &PromptRequest { reasoning: effort, ..question(&asked) });
    let harmony = model(GPT_OSS, &HARMONY);
    for (effort, expected) in [
        (None, "Reasoning: medium"),
        (Some(ReasoningEffort::Off), "Reasoning: low"),
        (Some(ReasoningEffort::High), "Reasoning: high"),
    ] {
        let text = with(&harmony, effort);
        assert!(text.contains(expected), "{text}");
    }
    let qwen = model(QWEN, &["<think>", "</think>"]);
    assert!(with(&qwen, Some(ReasoningEffort::Off)).ends_with("<think>\n\n</think>\n\n"));
    assert_eq!(with(&qwen, Some(ReasoningEffort::Low)), with(&qwen, None));
    let granite = "{% if thinking %}Think.{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}";
    let granite = model(granite, &[]);
    assert_eq!([None, Some(ReasoningEffort::Low)].map(|effort| with(&granite, effort)), ["Say hi", "Think.Say hi"]);
}

/// Before, reasoning was cut off a text that is continued as it is.
#[test]
fn a_text_that_is_continued_as_it_is_has_no_channels() {
    let language = model(QWEN, &["<think>", "</think>"]);
    let letters = model("{{ messages[-1].content }}:", &[]);
    let read = |language: &ModelLanguage, begun: &str, written: &str| {
        let asked = PromptRequest { raw: true, ..question(&[Message::new(Role::User, begun)]) };
        let texts = answer(language, &asked, &language.tokenize(begun).unwrap(), written);
        assert!(texts.iter().all(|text| text.channel == Channel::Answer), "{texts:?}");
        texts.into_iter().map(|text| text.text).collect::<String>()
    };
    for begun in ["", "It is"] {
        let written = "<think>\nhm\n</think>\n\nHi";
        assert_eq!(read(&letters, begun, written), written);
        assert_eq!(read(&language, begun, written), written);
    }
}

/// SentencePiece puts a space in front of a text, and it is no part of it: but it is one of a text that goes on.
#[test]
fn a_space_belongs_to_a_text_that_goes_on() {
    let mut metadata = Synthetic::default().header().unwrap().metadata;
    let tokens = ["<unk>", "<s>", "</s>", "\u{2581}small", "\u{2581}boy"];
    let scores = vec![0.0, 0.0, 0.0, -1.0, -2.0];
    metadata.insert("tokenizer.ggml.model", "llama".into());
    metadata.insert("tokenizer.ggml.tokens", tokens.map(str::to_owned).to_vec().into());
    metadata.insert("tokenizer.ggml.token_type", Value::Array(Array::I32(vec![2, 3, 3, 1, 1])));
    metadata.insert("tokenizer.ggml.scores", Value::Array(Array::F32(scores)));
    metadata.insert("tokenizer.ggml.bos_token_id", Value::U32(1));
    metadata.insert("tokenizer.ggml.eos_token_id", Value::U32(2));
    metadata.remove("tokenizer.ggml.padding_token_id");
    let (language, _) = ModelLanguage::read(&metadata, 4096, LocalTime::from_unix(0)).unwrap();
    let after = |raw: bool, role: Role, content: &str| {
        let asked = PromptRequest { raw, ..question(&[Message::new(role, content)]) };
        let mut decoder = language.decoder(&asked, &[]);
        let texts = [decoder.push(4), decoder.finish()].concat();
        texts.into_iter().map(|text| text.text).collect::<String>()
    };
    assert_eq!(after(true, Role::User, "There was a small"), " boy");
    assert_eq!(after(false, Role::Assistant, "There was a small"), " boy");
    assert_eq!(after(false, Role::User, "Tell me a story"), "boy");
    assert_eq!(after(true, Role::User, ""), "boy", "nothing but the beginning of a text");
}
