//! Settings for generating answers.

use leptos::prelude::*;
use potluck_text::texts;

use super::answer_fields::{AnswerFields, AnswersOf};

/// Instructions and sampling of every conversation.
#[component]
pub fn Answers() -> impl IntoView {
    view! {
        <section class="settings-part" aria-label=texts().sampling.heading()>
            <h3>{texts().sampling.heading()}</h3>
            <AnswerFields of=AnswersOf::EveryConversation />
        </section>
    }
}
