//! Tests of `language.rs`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod conversations;
mod forms;
mod tools;

use potluck_gguf::synthetic::Synthetic;
use potluck_protocol::{LogitOptions, Message, RequestId, ToolOffer};

use super::*;

fn language() -> ModelLanguage {
    ModelLanguage::read(&Synthetic::default().header().unwrap().metadata, 4096, LocalTime::from_unix(0)).unwrap().0
}

fn question(messages: &[Message]) -> PromptRequest {
    PromptRequest {
        request: RequestId(1),
        conversation: String::new(),
        messages: messages.to_vec(),
        raw: false,
        max_tokens: 8,
        sampling: Sampling::greedy(),
        reasoning: None,
        tools: ToolOffer::default(),
        logits: LogitOptions::default(),
    }
}

#[test]
fn an_assistants_last_message_is_continued() {
    let language = language();
    let asked = [Message::new(Role::User, "Name a fruit")];
    let begun = [Message::new(Role::User, "Name a fruit"), Message::new(Role::Assistant, "An app")];
    let (asked, begun) = (language.render(&question(&asked)).unwrap(), language.render(&question(&begun)).unwrap());
    assert!(begun.starts_with(&asked), "what the model has read so far stays");
    let rest: String = {
        let mut decoder = language.decoder(&question(&[]), &asked);
        let texts = begun[asked.len()..].iter().flat_map(|token| decoder.push(*token)).collect::<Vec<_>>();
        texts.into_iter().map(|text| text.text).collect()
    };
    assert_eq!(rest, "An app");
}

/// Either cost its sender one frame, and the host its tab.
#[test]
fn what_is_too_large_is_refused_before_any_work() {
    let language = language();
    let many = vec![Message::new(Role::User, ""); 8_000_000];
    let refused = language.render(&question(&many)).unwrap_err();
    assert_eq!(refused, PromptError::TooManyMessages(8_000_000).to_string());
    let long = "‹".repeat((16 << 20) / 3);
    let refused = language.render(&question(&[Message::new(Role::User, &long)])).unwrap_err();
    assert!(refused.contains("shorten the message"), "{refused}");
    let refused = language.tokenize(&long).unwrap_err();
    assert!(refused.contains("shorten the message"), "{refused}");
}

#[test]
fn a_prompt_at_the_limits_is_read() {
    let language = language();
    let per_message = language.max_bytes / MAX_MESSAGES;
    let messages = vec![Message::new(Role::User, "<".repeat(per_message)); MAX_MESSAGES];
    let tokens = language.render(&question(&messages)).unwrap();
    assert!(tokens.len() > MAX_MESSAGES, "{} tokens", tokens.len());
    assert!(!language.tokenize(&"‹".repeat(language.max_bytes / 3)).unwrap().is_empty());
}

#[test]
fn a_base_models_answer_ends_where_it_writes_the_next_question() {
    let mut metadata = Synthetic::default().header().unwrap().metadata;
    metadata.remove("tokenizer.chat_template");
    let tokens = metadata.strings("tokenizer.ggml.tokens").unwrap();
    let tokens: Vec<String> = tokens.iter().map(|token| token.replace("<|im_start|>", "<|other|>")).collect();
    metadata.insert("tokenizer.ggml.tokens", tokens.into());
    let (language, remarks) = ModelLanguage::read(&metadata, 4096, LocalTime::from_unix(0)).unwrap();
    let said = remarks.concat();
    assert!(said.contains("no chat template") && said.contains("User:"), "{said}");
    let answer = |mut stream: Box<dyn TextStream>| {
        let tokens = language.tokenizer.encode("It is.\n\nUser:\nAnd now?", SpecialText::Literal);
        let texts = tokens.into_iter().map_while(|token| (!stream.ended()).then(|| stream.push(token)));
        let mut texts: Vec<ChannelText> = texts.flatten().collect();
        texts.extend(stream.finish());
        texts.into_iter().map(|text| text.text).collect::<String>()
    };
    let asked = question(&[Message::new(Role::User, "Is it?")]);
    assert_eq!(answer(language.decoder(&asked, &[])), "It is.");
    let raw = PromptRequest { raw: true, ..asked };
    assert_eq!(answer(language.decoder(&raw, &[])), "It is.\n\nUser:\nAnd now?", "a text that is continued as it is");
}

#[test]
fn a_typed_control_token_stays_text() {
    let language = language();
    let ending = |tokens: &[u32]| tokens.iter().filter(|token| language.is_end(**token)).count();
    let end = (0..language.tokenizer.len() as u32).find(|token| language.is_end(*token)).unwrap();
    let typed = format!("a{}b", language.tokenizer.name(end));
    let plain = language.render(&question(&[Message::new(Role::User, "ab")])).unwrap();
    let tokens = language.render(&question(&[Message::new(Role::User, &typed)])).unwrap();
    assert_eq!(ending(&tokens), ending(&plain), "{typed:?} ends a turn");
    assert_eq!(ending(&language.tokenize(&typed).unwrap()), 0, "also without the template");
}

#[test]
fn a_replay_chooses_alike() {
    let candidates = Candidates { ids: vec![5, 6, 7], logits: vec![1.0, 0.9, 0.8], sampled: None, log_sum_exp: None };
    let sampling = Sampling { temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 7, ..Sampling::default() };
    let language = language();
    let short = language.choose(&candidates, &sampling, 3, &[1, 2, 3]);
    let long = language.choose(&candidates, &sampling, 3, &[1, 2, 3, 4, 5]);
    assert_eq!(short, long, "later tokens of the log must not count");
    let greedy = Sampling { temperature: 0.0, ..sampling };
    assert_eq!(language.choose(&candidates, &greedy, 0, &[]), 5);
}

/// A flood of texts that fit no context costs the host nothing.
#[test]
fn what_no_context_of_the_room_holds_is_refused_without_rendering_it() {
    let language = language();
    let longest = language.tokenizer.longest_piece();
    let of = |bytes: usize| question(&[Message::new(Role::User, "x".repeat(bytes))]);
    assert_eq!(language.fits(&of(16 * longest), 16), Ok(()), "each token could be the longest one");
    let sentence = language.fits(&of(16 * longest + 1), 16).unwrap_err();
    assert_eq!(sentence, PromptError::TooLong { bytes: 16 * longest + 1, max: 16 * longest }.to_string());
    assert!(language.fits(&of(language.max_bytes + 1), u32::MAX).is_err(), "a larger context does not raise the limit");
}

#[test]
fn a_text_between_two_others_has_them_in_the_models_order() {
    let mut metadata = Synthetic::default().header().unwrap().metadata;
    assert!(ModelLanguage::read(&metadata, 4096, LocalTime::from_unix(0)).unwrap().0.infill("a", "b").is_err());
    for (id, name) in (5u32..).zip(["pre", "suf", "mid"]) {
        metadata.insert(format!("tokenizer.ggml.fim_{name}_token_id"), id.into());
    }
    let language = ModelLanguage::read(&metadata, 4096, LocalTime::from_unix(0)).unwrap().0;
    let tokens = language.infill("a", "b").unwrap();
    let at = |id| tokens.iter().rposition(|token| *token == id).unwrap();
    assert!(at(5) < at(6) && at(6) < at(7) && at(7) == tokens.len() - 1, "{tokens:?}");
    let between = |first: usize, last: usize| -> Vec<u8> {
        tokens[first + 1..last].iter().flat_map(|token| language.piece(*token)).collect()
    };
    let texts =
        [between(at(5), at(6)), between(at(6), at(7))].map(|bytes| String::from_utf8(bytes).unwrap().trim().to_owned());
    assert_eq!(texts, ["a", "b"]);
}
