//! Reasoning, answer and tool calls are told apart by the markers of each family, and no marker is ever shown.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "common/vocabulary.rs"]
mod vocabulary;

use std::path::Path;
use std::sync::Arc;

use potluck_model::{Channels, ChatTemplate, LocalTime, Message, RenderOptions, SpecialText, TokenKind, Tokenizer};
use potluck_plan::{Channel, ChannelText};
use potluck_testkit::read_golden;
use proptest::prelude::*;
use vocabulary::control;

const USER_DEFINED: TokenKind = TokenKind::UserDefined;

/// A vocabulary with these special tokens, and a template.
struct Model {
    tokenizer: Tokenizer,
    template: ChatTemplate,
    channels: Arc<Channels>,
}

impl Model {
    fn new(template: &str, special: &[(&str, TokenKind)]) -> Self {
        let tokenizer = Tokenizer::from_metadata(&vocabulary::metadata(special)).unwrap();
        let template = ChatTemplate::new(template, String::new(), String::new()).unwrap();
        let channels = Channels::new(&tokenizer, &template);
        Self { tokenizer, template, channels }
    }

    /// With a published template.
    fn published(name: &str, special: &[(&str, TokenKind)]) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/templates");
        Self::new(&read_golden(&folder.join(format!("{name}.jinja"))), special)
    }

    fn ids(&self, text: &str) -> Vec<u32> {
        self.tokenizer.encode(text, SpecialText::Parse)
    }

    fn prompt(&self, messages: &[Message], options: &RenderOptions) -> Vec<u32> {
        self.template.encode(&self.tokenizer, &self.channels, messages, options).unwrap()
    }

    /// The pieces of an answer to a question, with what comes in one after the other of one channel as one.
    fn read_after(&self, prompt: &[u32], answer: &[u32]) -> Vec<ChannelText> {
        let mut parser = self.channels.parser(&self.tokenizer, prompt);
        let mut pieces: Vec<ChannelText> = answer.iter().flat_map(|id| parser.push(&self.tokenizer, *id)).collect();
        pieces.extend(parser.finish());
        joined(pieces)
    }

    fn read(&self, answer: &str) -> Vec<(Channel, String)> {
        self.read_with(answer, &options())
    }

    fn read_with(&self, answer: &str, options: &RenderOptions) -> Vec<(Channel, String)> {
        let prompt = self.prompt(&[Message::new("user", "Say <think>hi</think> [THINK]")], options);
        let pieces = self.read_after(&prompt, &self.ids(answer));
        pieces.into_iter().map(|piece| (piece.channel, piece.text)).collect()
    }
}

fn options() -> RenderOptions {
    RenderOptions { now: Some(LocalTime::from_unix(0)), ..RenderOptions::default() }
}

fn joined(pieces: Vec<ChannelText>) -> Vec<ChannelText> {
    let mut all: Vec<ChannelText> = Vec::new();
    for piece in pieces {
        match all.last_mut() {
            Some(last) if last.channel == piece.channel => last.text += &piece.text,
            _ => all.push(piece),
        }
    }
    all
}

fn reasoning(text: &str) -> (Channel, String) {
    (Channel::Reasoning, text.to_owned())
}

fn answer(text: &str) -> (Channel, String) {
    (Channel::Answer, text.to_owned())
}

fn call(text: &str) -> (Channel, String) {
    (Channel::ToolCall, text.to_owned())
}

fn gpt_oss() -> Model {
    let names = ["<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>"];
    Model::published("gpt-oss", &control(&names))
}

fn gemma_4() -> Model {
    let names = ["<|turn>", "<turn|>", "<|channel>", "<channel|>", "<|think|>", "<|tool_call>", "<tool_call|>"];
    Model::published("gemma-4", &control(&names))
}

fn magistral() -> Model {
    let names = ["[INST]", "[/INST]", "[THINK]", "[/THINK]", "[TOOL_CALLS]", "[ARGS]"];
    Model::published("ministral-3", &control(&names))
}

fn seed_oss() -> Model {
    let template = "{%- set think_begin_token = '<seed:think>' %}{%- set think_end_token = '</seed:think>' %}\
        {% for m in messages %}<seed:bos>{{ m.role }}\n\
        {% if m.reasoning_content %}{{ think_begin_token + m.reasoning_content + think_end_token }}\n{% endif %}\
        {{ m.content }}<seed:eos>{% endfor %}{% if add_generation_prompt %}<seed:bos>assistant\n{% endif %}";
    let names = ["<seed:bos>", "<seed:eos>", "<seed:think>", "</seed:think>", "<seed:tool_call>", "</seed:tool_call>"];
    Model::new(template, &control(&names))
}

fn qwen_3() -> Model {
    let user = ["<think>", "</think>", "<tool_call>", "</tool_call>"].map(|name| (name, USER_DEFINED));
    Model::published("qwen3", &[&control(&["<|im_start|>", "<|im_end|>"])[..], &user].concat())
}

#[test]
fn gpt_oss_thinks_in_one_channel_and_answers_in_another() {
    let model = gpt_oss();
    let text = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hi";
    assert_eq!(model.tokenizer.decode(&model.ids(text)), "analysishmassistantfinalHi", "the tokens' text alone");
    assert_eq!(model.read(text), [reasoning("hm"), answer("Hi")]);
}

#[test]
fn gpt_oss_calls_functions_and_says_why() {
    let model = gpt_oss();
    let text = "<|channel|>analysis<|message|>Look.<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|>\
        <|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{\"city\":\"Rome\"}";
    assert_eq!(model.read(text), [reasoning("Look."), answer("I look."), call("weather {\"city\":\"Rome\"}")]);
    let role_first = "<|channel|>analysis<|message|>a<|end|><|start|>assistant to=functions.now<|channel|>commentary json<|message|>{}";
    assert_eq!(model.read(role_first), [reasoning("a"), call("now {}")]);
    let twice = "<|channel|>commentary<|message|>One.<|end|><|start|>assistant<|channel|>final<|message|>Two.";
    assert_eq!(model.read(twice), [answer("One.\n\nTwo.")], "messages are paragraphs");
}

#[test]
fn gpt_oss_that_forgets_its_channels_is_still_heard() {
    let model = gpt_oss();
    assert_eq!(model.read("Hello there, how are you?"), [answer("Hello there, how are you?")]);
    assert_eq!(model.read("<|channel|>analysis<|message|>cut o"), [reasoning("cut o")]);
    assert_eq!(model.read("<|channel|>ana"), [], "a name that was cut off is no text");
    assert_eq!(model.read("<|channel|>analysis<|message|>a<|end|>Bare."), [reasoning("a"), answer("Bare.")]);
    // Each may be the beginning of a name.
    for bare in ["a", "x=5", "json", "final", "code"] {
        assert_eq!(model.read(bare), [answer(bare)]);
        assert_eq!(model.read(&format!("{bare}<|end|>")), [answer(bare)]);
    }
    assert_eq!(model.read("<|start|>assistant"), [], "a header of its own");
}

#[test]
fn gemma_4_thinks_in_a_channel() {
    let model = gemma_4();
    let thinking = RenderOptions { thinking: Some(true), ..options() };
    assert_eq!(model.read_with("<|channel>thought\nhm\n<channel|>Hi", &thinking), [reasoning("hm"), answer("Hi")]);
    assert_eq!(model.read("Hi"), [answer("Hi")], "its prompt has an empty channel");
    assert_eq!(model.read_with("<|channel>thought\n<channel|>Hi", &thinking), [answer("Hi")]);
    assert_eq!(
        model.read("<|channel>a name that is none\nx<channel|>Hi"),
        [reasoning("a name that is none\nx"), answer("Hi")]
    );
    assert_eq!(model.read("<|tool_call>call:now{}<tool_call|>"), [call("call:now{}")]);
}

#[test]
fn magistral_thinks_in_brackets() {
    let model = magistral();
    assert_eq!(model.read("[THINK]hm\n[/THINK]\nHi"), [reasoning("hm"), answer("Hi")]);
    assert_eq!(model.read("[TOOL_CALLS]now[ARGS]{\"a\": 1}"), [call("now {\"a\": 1}")]);
}

#[test]
fn seed_oss_thinks_between_tags_of_its_own() {
    assert_eq!(seed_oss().read("<seed:think>\nhm</seed:think>\nHi"), [reasoning("hm"), answer("Hi")]);
}

#[test]
fn qwen_and_deepseek_think_between_tags_that_the_prompt_may_have_begun() {
    let model = qwen_3();
    assert_eq!(model.read("<think>\nhm\n</think>\n\nHi"), [reasoning("hm"), answer("Hi")]);
    assert_eq!(model.read("<think>\n\n</think>\n\nHi"), [answer("Hi")]);
    assert_eq!(model.read("<think>\nnot done\n"), [reasoning("not done\n")]);
    let off = RenderOptions { thinking: Some(false), ..options() };
    assert_eq!(model.read_with("Hi", &off), [answer("Hi")]);
    let tags = [("<think>", USER_DEFINED), ("</think>", USER_DEFINED)];
    let opens = Model::published("qwen-qwq", &[&control(&["<|im_start|>", "<|im_end|>"])[..], &tags].concat());
    let on = RenderOptions { thinking: Some(true), ..options() };
    assert_eq!(opens.read_with("hm\n</think>\n\nHi", &on), [reasoning("hm"), answer("Hi")]);
    assert_eq!(opens.read_with("<think>\nhm\n</think>\n\nHi", &on), [reasoning("hm"), answer("Hi")], "begun twice");
    assert_eq!(opens.read("Hi"), [answer("Hi")], "its prompt ends the reasoning as well");
}

#[test]
fn tags_of_letters_count_where_reasoning_may_begin_or_end() {
    let model = Model::new("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:\n", &[]);
    assert_eq!(model.read("<think>hm</think>Hi"), [reasoning("hm"), answer("Hi")]);
    assert_eq!(model.read("\n <think>\nhm"), [reasoning("hm")]);
    assert_eq!(
        model.read("The tag <think> begins it, </think> ends it."),
        [answer("The tag <think> begins it, </think> ends it.")]
    );
    assert_eq!(model.read(" <thin ice"), [answer(" <thin ice")]);
    let opens = Model::new("{% for m in messages %}{{ m.content }}\n{% endfor %}assistant: <think>\n", &[]);
    assert_eq!(opens.read("hm </thin> </think>\n\nHi"), [reasoning("hm </thin>"), answer("Hi")]);
}

#[test]
fn letters_of_a_marker_that_is_a_token_are_text() {
    let model = seed_oss();
    let letters = model.tokenizer.encode("<seed:think>x</seed:think>", SpecialText::Literal);
    let pieces = model.read_after(&model.ids("<seed:bos>assistant\n"), &letters);
    assert_eq!(pieces, [ChannelText { channel: Channel::Answer, text: "<seed:think>x</seed:think>".to_owned() }]);
}

#[test]
fn other_families() {
    let cohere =
        ["<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_ACTION|>"];
    let cohere = Model::published("command-r7b", &control(&cohere));
    let text = "<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Hi<|END_RESPONSE|>";
    assert_eq!(cohere.read(text), [reasoning("hm"), answer("Hi")]);
    let apertus =
        Model::new("{{ messages[-1].content }}<|a|>", &control(&["<|a|>", "<|inner_prefix|>", "<|inner_suffix|>"]));
    assert_eq!(apertus.read("<|inner_prefix|>hm<|inner_suffix|>Hi"), [reasoning("hm"), answer("Hi")]);
    let solar = Model::new(
        "{{ messages[-1].content }}<|begin|>assistant",
        &control(&["<|begin|>", "<|end|>", "<|think|>", "<|content|>", "<|tool_calls|>"]),
    );
    let text = "<|think|>hm<|end|><|begin|>assistant<|content|>Hi";
    assert_eq!(solar.read(text), [reasoning("hm"), answer("Hi")]);
    let kimi = Model::new(
        "{{ messages[-1].content }}<|open|>message role=\"assistant\"<|sep|><|open|>think<|sep|>",
        &control(&["<|open|>", "<|close|>", "<|sep|>"]),
    );
    let text = "hm<|close|>think<|sep|><|open|>response<|sep|>Hi<|close|>response<|sep|>";
    assert_eq!(kimi.read(text), [reasoning("hm"), answer("Hi")]);
    let hunyuan =
        "{% for m in messages %}{{ m.content.split('<answer>')[-1].split('</answer>')[0] }}{% endfor %}:<think>";
    assert_eq!(
        Model::new(hunyuan, &[]).read("\nhm\n</think>\n<answer>\nHi\n</answer>"),
        [reasoning("hm"), answer("Hi")]
    );
    let apriel = "{{ messages[-1].content }}\nHere are my reasoning steps:\n{# [BEGIN FINAL RESPONSE] #}";
    assert_eq!(Model::new(apriel, &[]).read("hm\n[BEGIN FINAL RESPONSE]\nHi"), [reasoning("hm"), answer("Hi")]);
    let granite = "{# Here is my thought process: #}{{ messages[-1].content }}:\n";
    let text = "Here is my thought process: hm\n\nHere is my response: Hi";
    assert_eq!(Model::new(granite, &[]).read(text), [reasoning("hm"), answer("Hi")]);
    assert_eq!(
        qwen_3().read("<tool_call>\n{\"name\": \"now\"}\n</tool_call>\n<tool_call>\n{}\n</tool_call>"),
        [call("{\"name\": \"now\"}\n{}")]
    );
}

/// Neither `.*?` is reasoning here, nor what follows a lone `<think>`.
#[test]
fn a_tag_that_a_model_quotes_is_text() {
    let model = qwen_3();
    for text in [
        "re.sub(r'<think>.*?</think>', '', s)",
        "The tag <think> begins it.",
        "A call is written as <tool_call>{}</tool_call> there.",
        "It ends with </think> or </tool_call>.\n\nNothing else.",
    ] {
        assert_eq!(model.read(text), [answer(text)]);
        let thought = format!("<think>\nhm\n</think>\n\n{text}");
        assert_eq!(model.read(&thought), [reasoning("hm"), answer(text)]);
    }
    let off = RenderOptions { thinking: Some(false), ..options() };
    assert_eq!(model.read_with("</think>\n\nHi", &off), [answer("Hi")], "what the prompt has ended may be ended again");
    let thought = "Is <think> or\n<tool_call> meant?";
    assert_eq!(model.read(&format!("<think>{thought}</think>Hi")), [reasoning(thought), answer("Hi")]);
    let call_of_line = [answer("I look.\n\n"), call("{\"name\": \"now\"}\n{}")];
    let text = "I look.\n\n<tool_call>\n{\"name\": \"now\"}\n</tool_call>\n<tool_call>\n{}\n</tool_call>";
    assert_eq!(model.read(text), call_of_line);
}

/// Files call such tokens text as well, and models write them in the middle of a line.
#[test]
fn markers_that_nobody_quotes_count_everywhere() {
    let names = ["<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"];
    let model = Model::new("{{ messages[-1].content }}:", &names.map(|name| (name, USER_DEFINED)));
    let text = "I look.<|tool_calls_section_begin|>now{}<|tool_calls_section_end|>";
    assert_eq!(model.read(text), [answer("I look."), call("now{}")]);
}

/// `</think>` stays in a call, and `<think>` does not end it. Where these are control tokens, each is a space.
#[test]
fn tags_within_a_call_are_its_text() {
    let quotes = "{\"code\": \"'<think>', '</think>'\"}";
    assert_eq!(qwen_3().read(&format!("<tool_call>\n{quotes}\n</tool_call>\nDone")), [call(quotes), answer("Done")]);
    let deepseek = control(&["<think>", "</think>", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"]);
    let model = Model::new("{{ messages[-1].content }}:", &deepseek);
    let text = "<｜tool▁calls▁begin｜>f{\"a\"</think>:<think>1}<｜tool▁calls▁end｜>Hi";
    assert_eq!(model.read(text), [call("f{\"a\" : 1}"), answer("Hi")]);
}

#[test]
fn a_marker_that_ends_reasoning_may_begin_an_answer_that_has_an_end() {
    let source =
        "{{ messages[-1].content }}\nHere are my reasoning steps:\n{# [BEGIN FINAL RESPONSE] [END FINAL RESPONSE] #}";
    let text = "hm\n[BEGIN FINAL RESPONSE]\nHi\n[END FINAL RESPONSE]";
    assert_eq!(Model::new(source, &[]).read(text), [reasoning("hm"), answer("Hi")]);
}

/// A template that nobody has put into a table says by itself how it writes reasoning.
#[test]
fn markers_of_an_unknown_template_are_found_by_rendering_it() {
    let source = "{% for m in messages %}[{{ m.role }}]{% if m.reasoning_content %}<ponder:7>\n{{ m.reasoning_content }}\n</ponder:7>\n{% endif %}\
        {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";
    let model = Model::new(source, &[]);
    assert_eq!(model.read("<ponder:7>\nhm\n</ponder:7>\nHi"), [reasoning("hm"), answer("Hi")]);
    let opens = source.replace("%}[assistant]{%", "%}[assistant]<ponder:7>\n{%");
    assert_eq!(Model::new(&opens, &[]).read("hm\n</ponder:7>\nHi"), [reasoning("hm"), answer("Hi")]);
}

/// A begun answer is written as its model wrote it, so that what the model has read of it stays.
#[test]
fn an_answer_goes_on_where_it_stopped() {
    let thinking = RenderOptions { thinking: Some(true), ..options() };
    let harmony = [
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
        "<|channel|>final<|message|>",
    ];
    let tags = ["<think>\n", "\n</think>\n\n", ""];
    let cases = [
        (gpt_oss(), harmony),
        (gemma_4(), ["<|channel>thought\n", "\n<channel|>", ""]),
        (qwen_3(), tags),
        (seed_oss(), ["<seed:think>\n", "\n</seed:think>\n\n", ""]),
    ];
    for (model, [open, between, bare]) in cases {
        let asked = Message::new("user", "Say hi");
        let prompt = model.prompt(std::slice::from_ref(&asked), &thinking);
        let go_on = |reasoning: Option<&str>, content: &str| {
            let begun = Message { reasoning: reasoning.map(str::to_owned), ..Message::new("assistant", content) };
            let whole = model.prompt(&[asked.clone(), begun], &thinking);
            whole.strip_prefix(&prompt[..]).expect("what the model has read stays").to_vec()
        };
        assert_eq!(go_on(Some("hm"), ""), model.ids(&format!("{open}hm")));
        assert_eq!(go_on(Some("hm"), "Hi"), model.ids(&format!("{open}hm{between}Hi")));
        assert_eq!(go_on(None, "Hi"), model.ids(&format!("{bare}Hi")));
        assert!(go_on(None, "").is_empty());
    }
    let opens = "{% for m in messages %}{{ m.content }}\n{% endfor %}{% if true %}assistant: <think>\n{% endif %}";
    let opens = Model::new(opens, &[]);
    let begun = |reasoning: Option<&str>| Message {
        reasoning: reasoning.map(str::to_owned),
        ..Message::new("assistant", "Hi")
    };
    let asked = Message::new("user", "?");
    for (reasoning, expected) in [(Some("hm"), "hm\n</think>\n\nHi"), (None, "</think>\n\nHi")] {
        let whole = opens.prompt(&[asked.clone(), begun(reasoning)], &options());
        assert!(whole.ends_with(&opens.ids(&format!("assistant: <think>\n{expected}"))), "{reasoning:?}");
    }
}

/// What comes after the first answer of a conversation: gpt-oss gets the final message only, as its template wants it.
#[test]
fn the_next_prompt_is_what_the_template_expects() {
    let model = gpt_oss();
    let first = Message { reasoning: Some("hm".to_owned()), ..Message::new("assistant", "Hi") };
    let messages = [Message::new("user", "Say hi"), first, Message::new("user", "Again")];
    let text: Vec<u8> =
        model.prompt(&messages, &options()).iter().flat_map(|id| model.tokenizer.piece(*id).to_vec()).collect();
    let text = String::from_utf8(text).unwrap();
    assert!(text.ends_with("<|start|>user<|message|>Say hi<|end|><|start|>assistant<|channel|>final<|message|>Hi<|end|><|start|>user<|message|>Again<|end|><|start|>assistant"), "{text}");
}

/// Texts and markers in any order, as tokens of a family.
fn scrambled() -> impl Strategy<Value = Vec<String>> {
    let word = prop_oneof![
        "[a-z <\\[/]{1,6}",
        Just("é\n".to_owned()),
        Just("<think>".to_owned()),
        Just("</think>".to_owned()),
        Just("<|channel|>".to_owned()),
        Just("<|message|>".to_owned()),
        Just("<|start|>assistant".to_owned()),
        Just("<|end|>".to_owned()),
        Just("analysis".to_owned()),
        Just("commentary to=functions.f".to_owned()),
        Just("<|channel>thought\n".to_owned()),
        Just("<channel|>".to_owned()),
        Just("[THINK]".to_owned()),
        Just("[/THINK]".to_owned()),
        Just("<tool_call>".to_owned()),
        Just("</tool_call>".to_owned()),
    ];
    prop::collection::vec(word, 0..16)
}

fn all_models() -> [Model; 6] {
    let letters = Model::new("{# [THINK] <tool_call> #}{{ messages[-1].content }}:\n", &[]);
    [gpt_oss(), gemma_4(), magistral(), seed_oss(), qwen_3(), letters]
}

/// The letters and digits of a text, without which no word is.
fn letters(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// How text is cut into tokens changes nothing: a token of many letters does what its letters do one by one.
    #[test]
    fn cuts_change_nothing(words in scrambled()) {
        let text: String = words.concat();
        let source = "{# [THINK] <tool_call> <answer> #}{{ messages[-1].content }}:\n";
        let bytes = Model::new(source, &[]);
        // Tokens of several letters that do not match the markers' borders.
        let merged = Model::new(source, &["k>a", "<th", "ink", "</t", " <", "AL", "]"].map(|name| (name, USER_DEFINED)));
        let read = |model: &Model| model.read_after(&[], &model.ids(&text));
        prop_assert_eq!(read(&bytes), read(&merged));
    }

    /// An answer that has begun is shown as it is written, whatever tags it quotes.
    #[test]
    fn quoted_tags_are_text(words in scrambled()) {
        let text = format!("So: {}", words.concat().replace('\n', " "));
        for model in [qwen_3(), Model::new("{# [THINK] <tool_call> #}{{ messages[-1].content }}:\n", &[])] {
            prop_assert_eq!(model.read(&text), [answer(&text)]);
            let thought = model.read(&format!("<think>\nhm\n</think>\n\n{text}"));
            prop_assert_eq!(thought, [reasoning("hm"), answer(&text)]);
        }
    }

    /// Nothing but markers and white space beside them is lost, and no marker that is a token is shown.
    #[test]
    fn nothing_but_markers_is_lost(words in scrambled()) {
        for model in all_models() {
            let ids = model.ids(&words.concat());
            let pieces = model.read_after(&[], &ids);
            let shown: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
            let mut at = 0;
            let said = letters(&model.tokenizer.decode(&ids));
            for c in letters(&shown).chars() {
                at += said[at..].find(c).expect("what is shown was said, in this order") + c.len_utf8();
            }
            // Without the names of channels and the tags, all is there.
            let named = ["analysis", "assistant", "commentaryto=functions.f", "thought", "<think>", "</think>", "[THINK]", "[/THINK]", "<tool_call>", "</tool_call>"];
            let bare = |text: &str| named.iter().fold(letters(text), |text, name| text.replace(name, ""));
            // Formats that name their channels lose what stands where a name is.
            let has_names = ["<|start|>", "<|channel>"].iter().any(|name| model.tokenizer.special_id(name).is_some());
            if !has_names || !words.iter().any(|word| word.starts_with('<') || word.starts_with('[')) {
                prop_assert_eq!(bare(&shown), bare(&said));
            }
            for pieces in pieces.windows(2) {
                prop_assert!(pieces[0].channel != pieces[1].channel);
            }
        }
    }
}
