//! Questions that cost the host time before they are answered, or refused.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use potluck_plan::{BlockRange, Bytes, Candidates, ChannelText, KernelClass, Stage, StageId};
use potluck_protocol::{
    Followed, LoggedTokens, LogitOptions, Message, ModelCard, ModelSource, Role, Sampling, ToolOffer,
};

use super::*;
use crate::event::HintOptions;
use crate::examples;
use crate::experts::Holders;
use crate::inherited::Inherited;
use crate::language::{Language, TextStream};
use crate::members::Members;
use crate::outbox::Outbox;

const HOST: PeerId = PeerId([1; 16]);
const A: PeerId = PeerId([2; 16]);
const B: PeerId = PeerId([3; 16]);
const CONTEXT: u32 = 640;

/// A byte is a token. Counts what it renders.
#[derive(Default)]
struct Counting(AtomicUsize);

struct Nothing;

impl TextStream for Nothing {
    fn push(&mut self, _: u32) -> Vec<ChannelText> {
        Vec::new()
    }

    fn finish(&mut self) -> Vec<ChannelText> {
        Vec::new()
    }
}

impl Language for Counting {
    fn render(&self, question: &PromptRequest) -> Result<Vec<u32>, String> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(question.messages.iter().flat_map(|message| message.content.bytes().map(u32::from)).collect())
    }

    fn tokenize(&self, text: &str) -> Result<Vec<u32>, String> {
        Ok(text.bytes().map(u32::from).collect())
    }

    fn piece(&self, token: u32) -> Vec<u8> {
        vec![token as u8]
    }

    fn decoder(&self, _: &PromptRequest, _: &[u32]) -> Box<dyn TextStream> {
        Box::new(Nothing)
    }

    fn is_end(&self, _: u32) -> bool {
        false
    }

    fn choose(&self, candidates: &Candidates, _: &Sampling, _: u32, _: &[u32]) -> u32 {
        candidates.ids[0]
    }
}

struct Room {
    answers: Answers,
    language: Arc<Counting>,
    model: OpenedModel,
    plan: Plan,
    cx: EventContext,
}

fn room() -> Room {
    let (language, shape) = (Arc::new(Counting::default()), examples::shape(1, 0));
    let model = OpenedModel {
        card: ModelCard {
            id: shape.model,
            source: ModelSource::Relay { name: "model".into() },
            name: String::new(),
            architecture: String::new(),
            quantization: String::new(),
            bytes: Bytes(1),
            parameters: 1,
            active_parameters: 1,
            blocks: 1,
            experts: 0,
            context: CONTEXT,
            licence: String::new(),
        },
        shapes: vec![shape.clone()],
        shape,
        overhead: Bytes(0),
        language: language.clone(),
        parts: None,
    };
    let plan = examples::plan(vec![Stage::new(StageId(0), HOST, BlockRange::new(0, 1))]);
    let cx = EventContext {
        now: Millis(0.0),
        members: Members::new(HOST),
        holders: Holders::default(),
        hints: HintOptions::default(),
        kv_cache: Default::default(),
        biases: Default::default(),
        out: Outbox::new(HOST),
    };
    Room { answers: Answers::default(), language, model, plan, cx }
}

fn question(request: u32, bytes: usize) -> PromptRequest {
    PromptRequest {
        request: RequestId(request),
        conversation: request.to_string(),
        messages: vec![Message::new(Role::User, "x".repeat(bytes))],
        raw: false,
        max_tokens: 4,
        sampling: Sampling::greedy(),
        reasoning: None,
        tools: ToolOffer::default(),
        logits: LogitOptions::default(),
    }
}

impl Room {
    fn ask(&mut self, asker: PeerId, request: u32, bytes: usize) {
        self.answers.ask(asker, question(request, bytes), &mut self.cx);
    }

    /// Another host had begun an answer with two tokens of prompt and none of its own. Its asker has this much of it.
    fn take_over(&mut self, received: &Received) {
        let mut inherited = Inherited::default();
        inherited.follow(Followed::Asked { asker: A, start: None, prompt: Box::new(question(1, 2)) });
        let prompt = LoggedTokens::new(&[1, 2], &[KernelClass::Prefill; 2]);
        inherited.follow(Followed::Began { asker: A, request: RequestId(1), prompt });
        self.answers.inherit(inherited, &self.model, CONTEXT as usize, &mut self.cx);
        self.answers.resume(A, RequestId(1), received, Some(&self.model), &mut self.cx);
    }

    fn advance(&mut self) {
        self.answers.advance(&self.model, &self.plan, CONTEXT, &mut self.cx);
    }

    fn rendered(&self) -> usize {
        self.language.0.load(Ordering::Relaxed)
    }

    fn answers(&self, asker: PeerId) -> usize {
        self.answers.active.iter().filter(|active| active.transcript.asker == asker).count()
    }
}

/// The host has one thread for everything: while it renders, no answer makes progress.
#[test]
fn one_prompt_is_rendered_a_turn_and_a_flood_waits_behind_others() {
    let mut room = room();
    (0..8).for_each(|request| room.ask(A, request, 1_000));
    room.ask(B, 1, 10);
    room.advance();
    assert_eq!(room.rendered(), 1, "others' tokens go on before the next one");
    room.advance();
    assert_eq!((room.rendered(), room.answers(B)), (2, 1), "B comes before A's second");
}

#[test]
fn questions_rendered_in_vain_are_counted_by_their_bytes() {
    let mut room = room();
    let spent = |room: &mut Room, asker| {
        let now = room.cx.now;
        room.cx.members.standing(asker, now).in_vain.is_spent(limits::IN_VAIN, now)
    };
    for request in 0..4 {
        assert!(!spent(&mut room, A), "after {request} of a megabyte each");
        room.ask(A, request, 1 << 20);
        room.advance();
    }
    assert!(spent(&mut room, A) && !spent(&mut room, B));
    room.cx.now = Millis(60_000.0);
    assert!(!spent(&mut room, A), "a minute later it may ask again");
}

#[test]
fn the_next_question_is_rendered_in_a_turn_of_its_own_which_is_asked_for() {
    let mut room = room();
    (0..3).for_each(|request| room.ask(A, request, 10));
    room.advance();
    assert_eq!((room.answers(A), room.answers.next_turn), (1, Some(Millis(0.0))));
    (0..2).for_each(|_| room.advance());
    assert_eq!((room.answers(A), room.rendered()), (3, 3), "each is rendered once");
}

#[test]
fn an_answer_of_another_host_goes_on_behind_what_its_asker_has() {
    let mut room = room();
    room.take_over(&Received { pieces: 3, tokens: 3, last: vec![3, 4, 5] });
    let [active] = &room.answers.active[..] else { panic!("it does not go on") };
    assert_eq!((active.conversation.log.tokens(), active.transcript.pieces()), (&[1, 2, 3, 4, 5][..], 3));
}

#[test]
fn an_answer_begins_again_if_its_asker_has_too_many_tokens_to_name() {
    let mut room = room();
    room.take_over(&Received { pieces: 80, tokens: 80, last: vec![3; 64] });
    let [active] = &room.answers.active[..] else { panic!("it does not go on") };
    assert_eq!((active.answer_tokens(), active.transcript.pieces()), (0, 81), "the last piece voids those before it");
}

/// Each of them would take memory of the host.
#[test]
fn an_asker_that_has_more_pieces_than_were_ever_sent_gets_an_end() {
    let mut room = room();
    room.take_over(&Received { pieces: u32::MAX, tokens: 3, last: vec![3, 4, 5] });
    let ended = room.answers.ended(A, RequestId(1)).expect("the answer ends");
    assert!(!room.answers.is_answering());
    assert_eq!(ended.pieces(), 0);
    assert!(matches!(ended.parts_from(0)[..], [AnswerPart::End { stop: AnswerStop::Failed(_), .. }]));
}
