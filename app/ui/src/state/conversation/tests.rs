use potluck_panel::{Channel, Timings};

use super::*;

const FIRST: RequestId = RequestId(1);

fn text(delta: &str) -> AnswerPart {
    of(Channel::Answer, delta)
}

fn of(channel: Channel, delta: &str) -> AnswerPart {
    AnswerPart::Text { index: 0, channel, delta: delta.into(), tokens: vec![1], logprobs: Vec::new() }
}

fn end(stop: AnswerStop) -> AnswerPart {
    AnswerPart::End { pieces: 0, stop, timings: Timings::default() }
}

fn asked() -> Conversation {
    let mut conversation = Conversation::new("c".into());
    conversation.ask("Why is the sky blue?", FIRST, "tiny");
    conversation
}

#[test]
fn an_answer_grows_and_ends() {
    let mut conversation = asked();
    assert_eq!(conversation.running(), Some(FIRST));
    assert!(conversation.apply(FIRST, &AnswerPart::Reading(4, 9)));
    assert!(conversation.apply(FIRST, &text("Because ")));
    assert!(conversation.apply(FIRST, &AnswerPart::Recovering("Phone left.".into())));
    assert!(conversation.apply(FIRST, &text("of air.")));
    assert!(conversation.apply(FIRST, &end(AnswerStop::Complete)));
    assert_eq!(conversation.turns[0].answer.text, "Because of air.");
    assert_eq!(conversation.turns[0].answer.state, AnswerState::Complete);
    assert_eq!(conversation.running(), None);
}

#[test]
fn events_of_other_prompts_change_nothing() {
    let mut conversation = asked();
    let before = conversation.clone();
    assert!(!conversation.apply(RequestId(2), &text("x")));
    assert_eq!(conversation, before);
    conversation.apply(FIRST, &end(AnswerStop::Stopped));
    assert!(!conversation.apply(FIRST, &text("late")));
    assert_eq!(conversation.turns[0].answer.text, "");
}

#[test]
fn a_reload_keeps_what_was_written() {
    let mut conversation = asked();
    conversation.apply(FIRST, &text("Because"));
    assert!(conversation.break_off(&AnswerState::Interrupted));
    assert!(!conversation.break_off(&AnswerState::Interrupted));
    assert_eq!(conversation.turns[0].answer.state, AnswerState::Interrupted);
    assert!(conversation.turns[0].answer.can_continue(0));
    assert_eq!(conversation.turns[0].answer.text, "Because");
}

#[test]
fn going_on_sends_the_answer_so_far_last() {
    let mut conversation = asked();
    conversation.apply(FIRST, &text("Because"));
    conversation.apply(FIRST, &end(AnswerStop::Length));
    assert!(conversation.go_on(RequestId(2)));
    let messages = conversation.messages("Be brief.");
    assert_eq!(messages[0].role, Role::System);
    assert_eq!(messages[2], Message::new(Role::Assistant, "Because"));
    conversation.apply(RequestId(2), &text(" of air."));
    assert_eq!(conversation.turns[0].answer.text, "Because of air.");
}

#[test]
fn what_does_not_count_is_taken_back_up_to_where_its_request_began() {
    let mut conversation = asked();
    conversation.apply(FIRST, &of(Channel::Reasoning, "hm"));
    conversation.apply(FIRST, &text("Because"));
    conversation.apply(FIRST, &end(AnswerStop::Length));
    conversation.go_on(RequestId(2));
    conversation.apply(RequestId(2), &text(" of cheese."));
    conversation.apply(RequestId(2), &of(Channel::ToolCall, "moo"));
    assert!(conversation.apply(RequestId(2), &AnswerPart::Void { index: 2 }));
    conversation.apply(RequestId(2), &text(" of air."));
    let answer = &conversation.turns[0].answer;
    assert_eq!([&answer.reasoning, &answer.text, &answer.tool_calls], ["hm", "Because of air.", ""]);
}

#[test]
fn an_answer_is_marked_whichever_of_its_requests_is_doubtful_and_stays_so_when_stored() {
    let mut conversation = asked();
    conversation.apply(FIRST, &text("Because"));
    conversation.apply(FIRST, &end(AnswerStop::Length));
    conversation.go_on(RequestId(2));
    conversation.apply(RequestId(2), &end(AnswerStop::Complete));
    conversation.ask("And moss?", RequestId(3), "tiny");
    assert!(conversation.doubt(FIRST));
    assert!(!conversation.doubt(FIRST), "it is marked");
    assert!(!conversation.doubt(RequestId(9)), "nothing here is of that request");
    let stored = serde_json::to_string(&conversation).unwrap_or_default();
    let read: Conversation = serde_json::from_str(&stored).unwrap_or_default();
    assert_eq!(read.turns.iter().map(|turn| turn.answer.doubtful).collect::<Vec<_>>(), [true, false]);
    conversation.regenerate(RequestId(4), "tiny");
    assert!(!conversation.turns[1].answer.doubtful, "it is another answer now");
}

#[test]
fn what_was_thought_is_kept_apart_and_goes_with_the_next_question() {
    let mut conversation = asked();
    conversation.apply(FIRST, &of(Channel::Reasoning, "hm"));
    assert!(conversation.take_back(FIRST).is_none(), "it has begun");
    let thought = Message { reasoning: "hm".into(), ..Message::new(Role::Assistant, "") };
    assert_eq!(conversation.messages("")[1], thought, "to go on with");
    conversation.apply(FIRST, &text("Because"));
    conversation.apply(FIRST, &of(Channel::ToolCall, "now {}"));
    conversation.apply(FIRST, &end(AnswerStop::Complete));
    conversation.ask("And moss?", RequestId(2), "tiny");
    let answer = &conversation.turns[0].answer;
    assert_eq!([&answer.reasoning, &answer.text, &answer.tool_calls], ["hm", "Because", "now {}"]);
    let whole = Message { tool_calls: "now {}".into(), content: "Because".into(), ..thought };
    assert_eq!(conversation.messages("")[1], whole);
}

/// Before, the call went into the prompt as a part of the answer, and what followed it was shown as reasoning or answer.
#[test]
fn an_answer_that_was_cut_within_a_call_is_not_continued() {
    let mut conversation = asked();
    conversation.apply(FIRST, &text("I look."));
    conversation.apply(FIRST, &of(Channel::ToolCall, "now {\"zone\""));
    conversation.apply(FIRST, &end(AnswerStop::Length));
    assert!(!conversation.turns[0].answer.can_continue(0));
}

#[test]
fn a_turn_that_was_only_thought_is_left_out_of_the_next_question() {
    let mut conversation = asked();
    conversation.apply(FIRST, &of(Channel::Reasoning, "hm"));
    conversation.apply(FIRST, &end(AnswerStop::Stopped));
    assert!(conversation.turns[0].answer.can_continue(0));
    conversation.ask("And moss?", RequestId(2), "tiny");
    assert_eq!(conversation.messages(""), [Message::new(Role::User, "And moss?")]);
}

#[test]
fn regenerating_asks_the_same_question_again() {
    let mut conversation = asked();
    conversation.apply(FIRST, &text("Wrong"));
    assert!(conversation.regenerate(RequestId(2), "tiny"));
    assert_eq!(conversation.messages(" "), vec![Message::new(Role::User, "Why is the sky blue?")]);
    assert!(!Conversation::default().regenerate(FIRST, "tiny"));
}

#[test]
fn a_question_without_an_answer_is_not_sent_again() {
    let mut conversation = asked();
    conversation.apply(FIRST, &end(AnswerStop::Stopped));
    conversation.ask("Why is grass green?", RequestId(2), "tiny");
    let question = |text: &str| Message::new(Role::User, text);
    assert_eq!(conversation.messages(""), [question("Why is grass green?")]);
    conversation.apply(RequestId(2), &end(AnswerStop::Failed("Too long.".into())));
    conversation.regenerate(RequestId(3), "tiny");
    assert_eq!(conversation.messages(""), [question("Why is grass green?")], "the last one may be asked again");
    conversation.apply(RequestId(3), &text("Because"));
    conversation.ask("And moss?", RequestId(4), "tiny");
    let answer = Message::new(Role::Assistant, "Because");
    assert_eq!(conversation.messages(""), [question("Why is grass green?"), answer, question("And moss?")]);
}

#[test]
fn an_answer_that_fills_the_context_cannot_be_continued() {
    let ended = |stop, context_used| {
        let timings = Timings { context_used, context: 512, ..Timings::default() };
        AnswerPart::End { pieces: 1, stop, timings }
    };
    let mut conversation = asked();
    conversation.apply(FIRST, &text("Because"));
    conversation.apply(FIRST, &ended(AnswerStop::Length, 511));
    assert!(conversation.turns[0].answer.can_continue(0), "there is room for a token");
    conversation.go_on(RequestId(2));
    conversation.apply(RequestId(2), &ended(AnswerStop::Length, 512));
    let answer = &conversation.turns[0].answer;
    assert!(answer.fills_context(0) && !answer.can_continue(0));
    assert!(answer.can_continue(1024), "this room has a larger context");
    assert_eq!(answer.context(1024), Some((512, 1024)));
    assert!(answer.fills_context(256), "and this one a smaller one");
}

#[test]
fn only_a_question_without_an_answer_is_taken_back() {
    let mut conversation = asked();
    assert_eq!(conversation.take_back(RequestId(2)), None, "nobody asked that");
    assert_eq!(conversation.take_back(FIRST), Some(TakenBack::Question("Why is the sky blue?".into())));
    assert!(conversation.turns.is_empty());
    let mut conversation = asked();
    conversation.apply(FIRST, &text("Because"));
    assert_eq!(conversation.take_back(FIRST), None, "there is an answer to go on with");
    conversation.apply(FIRST, &end(AnswerStop::Stopped));
    let before = conversation.clone();
    conversation.regenerate(RequestId(2), "tiny");
    assert_eq!(conversation.take_back(RequestId(2)), Some(TakenBack::Regenerate));
    assert_eq!(conversation, before, "the former answer is back");
}

#[test]
fn an_answer_without_end_ends() {
    let mut conversation = asked();
    let kept = |conversation: &Conversation| conversation.turns[0].answer.text.len();
    conversation.apply(FIRST, &text(&"ä".repeat(LONGEST_ANSWER / 2)));
    assert_eq!((kept(&conversation), conversation.running()), (LONGEST_ANSWER, Some(FIRST)));
    assert!(conversation.apply(FIRST, &text("ä")));
    assert_eq!((kept(&conversation), conversation.running()), (LONGEST_ANSWER, None));
    let answer = &conversation.turns[0].answer;
    assert!(matches!(answer.state, AnswerState::Failed(_)) && !answer.can_continue(0));
}

#[test]
fn a_refusal_leaves_the_timings_of_the_text_that_is_there() {
    let mut conversation = asked();
    let timings = Timings { context_used: 9, context: 512, ..Timings::default() };
    conversation.apply(FIRST, &text("Because"));
    conversation.apply(FIRST, &AnswerPart::End { pieces: 1, stop: AnswerStop::Stopped, timings });
    conversation.go_on(RequestId(2));
    conversation.apply(RequestId(2), &end(AnswerStop::Failed("Too long.".into())));
    assert_eq!(conversation.turns[0].answer.timings, Some(timings));
}

#[test]
fn only_text_that_the_other_one_lacks_adds_to_it() {
    let answered = |delta: &str| {
        let mut conversation = asked();
        conversation.apply(FIRST, &text(delta));
        conversation
    };
    let whole = answered("Because of air.");
    assert!(!whole.adds_to(&whole));
    assert!(!answered("Because").adds_to(&whole), "the beginning of an answer is in it");
    assert!(!asked().adds_to(&whole), "and so is none");
    assert!(whole.adds_to(&answered("Because")), "it goes on");
    assert!(answered("It is not.").adds_to(&whole), "another answer");
    let mut longer = whole.clone();
    longer.ask("And moss?", RequestId(2), "tiny");
    assert!(longer.adds_to(&whole) && !whole.adds_to(&longer), "a question more");
    let mut other = whole.clone();
    other.ask("And grass?", RequestId(2), "tiny");
    assert!(longer.adds_to(&other), "another question");
}

#[test]
fn titles_are_the_first_line_cut_at_a_word() {
    assert_eq!(asked().title, "Why is the sky blue?");
    let long = "word ".repeat(40);
    let title = title_of(&long);
    assert!(title.ends_with("word…") && title.chars().count() <= TITLE + 1, "{title}");
    assert_eq!(title_of("\n  one\ntwo"), "one");
}

#[test]
fn how_long_a_model_thought_is_measured_to_its_first_word_and_stored() {
    let mut conversation = asked();
    conversation.apply_at(FIRST, &AnswerPart::Reading(1, 9), 500.0);
    conversation.apply_at(FIRST, &of(Channel::Reasoning, "h"), 1_000.0);
    conversation.apply_at(FIRST, &of(Channel::Reasoning, "m"), 2_000.0);
    assert_eq!(conversation.turns[0].answer.thought.took(), None, "it thinks");
    conversation.apply_at(FIRST, &text("Because"), 3_500.0);
    conversation.apply_at(FIRST, &end(AnswerStop::Complete), 9_000.0);
    let stored = serde_json::to_string(&conversation).unwrap_or_default();
    let read: Conversation = serde_json::from_str(&stored).unwrap_or_default();
    assert_eq!(read.turns[0].answer.thought.took(), Some(2_500.0));
}

#[test]
fn a_thought_that_was_stopped_took_as_long_as_it_went_on() {
    let mut conversation = asked();
    conversation.apply_at(FIRST, &of(Channel::Reasoning, "hm"), 1_000.0);
    conversation.apply_at(FIRST, &end(AnswerStop::Stopped), 1_400.0);
    assert!(conversation.go_on(RequestId(2)));
    conversation.apply_at(RequestId(2), &of(Channel::Reasoning, "hm"), 5_000.0);
    conversation.apply_at(RequestId(2), &text("Because"), 5_200.0);
    assert_eq!(conversation.turns[0].answer.thought.took(), Some(600.0), "without what was between");
}

#[test]
fn two_answers_to_a_question_are_written_at_once_and_either_is_chosen() {
    let mut conversation = asked();
    let Some(key) = conversation.answer_beside(RequestId(2), "tiny") else { panic!("there is a question") };
    assert_eq!(conversation.all_running().collect::<Vec<_>>(), [FIRST, RequestId(2)]);
    conversation.apply(RequestId(2), &text("Because of dust."));
    conversation.apply(FIRST, &text("Because of air."));
    let beside = |conversation: &Conversation| conversation.beside(0, key).map(|turn| turn.answer.text.clone());
    assert_eq!(beside(&conversation).as_deref(), Some("Because of dust."));
    let asked_anew = conversation.messages_beside("Be brief.");
    assert_eq!(asked_anew.iter().map(|message| message.role).collect::<Vec<_>>(), [Role::System, Role::User]);
    conversation.apply(FIRST, &end(AnswerStop::Complete));
    assert!(conversation.waits_for(RequestId(2)) && !conversation.waits_for(FIRST));
    conversation.apply(RequestId(2), &end(AnswerStop::Complete));
    assert!(conversation.choose_beside(0, key));
    assert_eq!(conversation.turns[0].answer.text, "Because of dust.");
    assert_eq!(beside(&conversation), None, "it is the one that is shown");
    assert!(!conversation.choose_beside(0, key));
    assert_eq!(conversation.versions(0, Versioned::Answer), Versions { shown: 1, count: 2 });
}

#[test]
fn an_answer_is_compared_with_the_version_before_it() {
    let mut conversation = asked();
    conversation.apply(FIRST, &text("Because"));
    conversation.apply(FIRST, &end(AnswerStop::Complete));
    assert_eq!(conversation.neighbour(0), None);
    conversation.regenerate(RequestId(2), "tiny");
    let first = conversation.neighbour(0);
    assert!(first.and_then(|key| conversation.beside(0, key)).is_some_and(|turn| turn.answer.text == "Because"));
    conversation.choose(0, Versioned::Answer, 0);
    assert_eq!(
        conversation.neighbour(0).map(|key| key > TurnKey(0)),
        Some(true),
        "the first one with the one after it"
    );
}
