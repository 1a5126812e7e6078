//! Sentences for people, by language. Plain functions of the panel's types, no I/O.
//!
//! Code passes reasons and states as enums; their wording is in a [`Texts`] table, one for each language. Page and terminal
//! read the same table, so one event never has two sentences.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod english;
mod texts;

pub use english::ENGLISH;
pub use texts::{
    AnswerTexts, ArithmeticTexts, CatalogTexts, ComposerTexts, ConnectionTexts, FailureTexts, GuesserTexts,
    KvCacheTexts, LeaveTexts, MemberTexts, NotYetTexts, NoticeTexts, OwnDeviceTexts, PhaseTexts, PlanTexts, RoleTexts,
    SharingTexts, Texts, fill,
};

/// The table in use. There is one language today.
#[must_use]
pub const fn texts() -> &'static Texts {
    &ENGLISH
}
