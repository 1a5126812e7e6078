//! The shape of a locale's table, and how a table answers for an enum.

use potluck_panel::{Arithmetic, Connection, KvCacheType, LoadPhase, MemberStatus, MemberView, PlanStatus, Sharing};

/// Every sentence of one language. `{}` stands for a value, in order: see [`fill`].
#[derive(Debug)]
pub struct Texts {
    /// BCP 47 tag, for the document's `lang`.
    pub language: &'static str,
    /// What a loading device does, as the start of a line.
    pub phase: PhaseTexts,
    /// The same as short steps of a list.
    pub step: PhaseTexts,
    /// How a member is.
    pub member: MemberTexts,
    /// What a member does in the room.
    pub role: RoleTexts,
    /// How far the room's plan is.
    pub plan: PlanTexts,
    /// How the connection to the room is.
    pub connection: ConnectionTexts,
    /// How the KV cache is stored.
    pub kv_cache: KvCacheTexts,
    /// How prompts are computed.
    pub arithmetic: ArithmeticTexts,
    /// How the room's work is shared.
    pub sharing: SharingTexts,
    /// Who guesses experts.
    pub guesser: GuesserTexts,
    /// How an answer of the chat goes.
    pub answer: AnswerTexts,
    /// What is wrong with the message in the composer.
    pub composer: ComposerTexts,
    /// What becomes of a room when its host leaves it.
    pub leave: LeaveTexts,
    /// A room without a model.
    pub failure: FailureTexts,
    /// Why a question cannot be sent yet.
    pub not_yet: NotYetTexts,
    /// What this device does for the room.
    pub own: OwnDeviceTexts,
    /// What the page has to say about itself.
    pub notice: NoticeTexts,
    /// The catalogue of well-known models.
    pub catalog: CatalogTexts,
}

/// The catalogue of well-known models in the host dialog.
#[derive(Debug)]
pub struct CatalogTexts {
    /// The heading.
    pub heading: &'static str,
    /// The list is fetched.
    pub loading: &'static str,
    /// The list is missing or broken.
    pub unreadable: &'static str,
    /// How many match, how many of them fit.
    pub found: &'static str,
    /// None matches.
    pub none: &'static str,
    /// An architecture that was tested.
    pub tested: &'static str,
    /// The file is examined before it is loaded.
    pub checking: &'static str,
    /// The address has no file.
    pub gone: &'static str,
    /// The server refuses.
    pub forbidden: &'static str,
    /// No answer, or a server that other sites' pages may not read from.
    pub unreachable: &'static str,
    /// The server does not send parts of files.
    pub no_ranges: &'static str,
    /// The file is of another kind.
    pub not_gguf: &'static str,
    /// Other bytes: found, listed.
    pub other_bytes: &'static str,
    /// Another licence: found, listed.
    pub other_licence: &'static str,
    /// Other bytes and another licence: found, listed, found, listed.
    pub other_both: &'static str,
}

/// A text for each [`LoadPhase`].
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are the enum's variants")]
pub struct PhaseTexts {
    pub find: &'static str,
    pub download: &'static str,
    pub check: &'static str,
    pub upload: &'static str,
    pub kernels: &'static str,
    pub self_test: &'static str,
    pub ready: &'static str,
}

/// A text for each [`MemberStatus`].
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are the enum's variants")]
pub struct MemberTexts {
    pub asking: &'static str,
    pub guest: &'static str,
    pub loading: &'static str,
    pub ready: &'static str,
    pub spare: &'static str,
    pub failed: &'static str,
    pub silent: &'static str,
    /// It is fine, but browsers slow hidden tabs down.
    pub hidden: &'static str,
}

/// A text for each combination of roles.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields name the roles")]
pub struct RoleTexts {
    pub host_and_worker: &'static str,
    pub host: &'static str,
    pub worker: &'static str,
    pub guest: &'static str,
}

/// A text for each [`PlanStatus`], and for a room without a plan.
#[derive(Debug)]
pub struct PlanTexts {
    /// Ready to answer.
    pub up: &'static str,
    /// The switch to a new plan is under way.
    pub committing: &'static str,
    /// Devices load; nothing is known of how far.
    pub preparing: &'static str,
    /// Devices load: percent.
    pub preparing_share: &'static str,
    /// Too little memory is lent.
    pub short_of_memory: &'static str,
    /// No plan yet, nothing missing.
    pub waiting: &'static str,
    /// This host opens its model.
    pub opening_model: &'static str,
    /// The model could not be opened.
    pub no_model: &'static str,
    /// This guest has not seen the room yet.
    pub joining: &'static str,
}

/// A text for each [`Connection`] that keeps a tab out of the room.
#[derive(Debug)]
pub struct ConnectionTexts {
    /// Dialling.
    pub connecting: &'static str,
    /// Lost: number of the try.
    pub reconnecting: &'static str,
    /// The host is asked.
    pub waiting_for_host: &'static str,
    /// It ended.
    pub closed: &'static str,
}

/// A text for each [`KvCacheType`].
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are the enum's variants")]
pub struct KvCacheTexts {
    pub f32: &'static str,
    pub f16: &'static str,
    pub q8_0: &'static str,
    pub q4_0: &'static str,
}

/// A name for each [`Arithmetic`].
#[derive(Debug)]
pub struct ArithmeticTexts {
    /// The default.
    pub exact: &'static str,
    /// Quantized vectors.
    pub packed: &'static str,
    /// Half floats, natively.
    pub matrix: &'static str,
}

/// A name for each [`Sharing`], and what it means.
#[derive(Debug)]
pub struct SharingTexts {
    /// The default.
    pub fastest: &'static str,
    /// What it means.
    pub fastest_hint: &'static str,
    /// No device stays a spare.
    pub everyone: &'static str,
    /// What it means.
    pub everyone_hint: &'static str,
    /// Experts lie on other devices.
    pub experts: &'static str,
    /// What it means for a model with experts: how many blocks.
    pub experts_hint: &'static str,
    /// What it means while the model is not known.
    pub experts_unknown: &'static str,
    /// What it means for a model without experts.
    pub no_experts: &'static str,
}

/// Who guesses which experts come next, where they load on demand.
#[derive(Debug)]
pub struct GuesserTexts {
    /// The choice's name.
    pub label: &'static str,
    /// The default.
    pub usual: &'static str,
    /// A shadow: about how many bytes.
    pub smaller_copy: &'static str,
    /// The same of a model that is not known.
    pub smaller_copy_unknown: &'static str,
    /// What it means.
    pub smaller_copy_hint: &'static str,
    /// It is being made: how many bytes it takes.
    pub making: &'static str,
    /// It is made, and has not spoken of any token.
    pub made: &'static str,
    /// Percent of the experts that it named, of how many tokens (with the noun), and how many bytes it takes.
    pub measured: &'static str,
    /// Draft tokens of it: those that the model chose, and all that were sent.
    pub drafts: &'static str,
}

/// How an answer of the chat goes.
#[derive(Debug)]
pub struct AnswerTexts {
    /// On its way to the host.
    pub sending: &'static str,
    /// Only one question is before it.
    pub next: &'static str,
    /// Place in the queue.
    pub queued: &'static str,
    /// Tokens read, of how many.
    pub reading: &'static str,
    /// Why the room recovers.
    pub recovering: &'static str,
    /// Somebody pressed Stop.
    pub stopped: &'static str,
    /// The limit was reached.
    pub length: &'static str,
    /// The conversation has no room for another token.
    pub context_full: &'static str,
    /// The page was reloaded meanwhile.
    pub interrupted: &'static str,
    /// An answer longer than the page keeps.
    pub too_long: &'static str,
    /// The host's page was reloaded and forgot it.
    pub question_lost: &'static str,
    /// This page's worker was replaced.
    pub worker_restarted: &'static str,
}

/// What is wrong with the message in the composer.
#[derive(Debug)]
pub struct ComposerTexts {
    /// Estimated tokens of the message, and how many fit.
    pub too_long: &'static str,
}

/// What becomes of a room when its host leaves it.
#[derive(Debug)]
pub struct LeaveTexts {
    /// What it is about, if nobody else is there.
    pub alone: &'static str,
    /// What it is about, with the number of others.
    pub with_others: &'static str,
    /// What closing it for now means.
    pub for_now: &'static str,
    /// What ending it means.
    pub for_good: &'static str,
    /// Asked before a room ends that no tab has open.
    pub end_own: &'static str,
}

impl LeaveTexts {
    /// What it is about, in a room with this many others.
    #[must_use]
    pub fn what(&self, others: usize) -> String {
        if others == 0 { self.alone.to_owned() } else { fill(self.with_others, &[&others.to_string()]) }
    }
}

/// A room without a model.
#[derive(Debug)]
pub struct FailureTexts {
    /// What happened.
    pub title: &'static str,
    /// What the host can do.
    pub host: &'static str,
    /// What a guest can expect.
    pub guest: &'static str,
}

/// Why a question cannot be sent yet.
#[derive(Debug)]
pub struct NotYetTexts {
    /// The model could not be opened.
    pub no_model: &'static str,
    /// Dialling.
    pub connecting: &'static str,
    /// The connection is lost.
    pub reconnecting: &'static str,
    /// The host is asked.
    pub waiting_for_host: &'static str,
    /// This host opens its model.
    pub opening_model: &'static str,
    /// The room is not seen yet.
    pub joining: &'static str,
    /// Memory is missing, and the host has not said how much.
    pub waiting: &'static str,
    /// Devices load; nothing is known of how far.
    pub loading: &'static str,
    /// Devices load: percent.
    pub loading_share: &'static str,
}

/// What this device does for the room.
#[derive(Debug)]
pub struct OwnDeviceTexts {
    /// It lends nothing yet.
    pub only_chats: &'static str,
    /// Its invite is one to chat.
    pub invited_to_chat: &'static str,
    /// It cannot lend, and is about to host.
    pub hosts_without_gpu: &'static str,
    /// It cannot lend.
    pub no_webgpu: &'static str,
    /// It could lend before.
    pub gpu_lost: &'static str,
    /// Bytes lent; for whom it stands by.
    pub room_short: &'static str,
    /// Bytes lent; what it holds; for whom it stands by; what it loads besides.
    pub works: &'static str,
    /// It loads for another plan while it works.
    pub prepares: &'static str,
    /// Bytes lent; for whom it stands by; why it has no work.
    pub spare: &'static str,
    /// Nothing else is known of why it has no work.
    pub not_needed: &'static str,
    /// It failed.
    pub failed: &'static str,
    /// What it loads.
    pub loading: &'static str,
    /// Bytes lent.
    pub waiting: &'static str,
    /// Beside the slider.
    pub choose_memory: &'static str,
    /// Keep everything but experts of a file here.
    pub protect: &'static str,
    /// What that protects, and what not.
    pub protect_hint: &'static str,
    /// Layers that fit, of how many.
    pub layers: &'static str,
}

/// What the page has to say about itself.
#[derive(Debug)]
pub struct NoticeTexts {
    /// Page and worker come from two builds.
    pub versions_differ: &'static str,
    /// The worker was replaced in the middle of a benchmark.
    pub bench_interrupted: &'static str,
    /// A tool started another one.
    pub bench_replaced: &'static str,
    /// Somebody stopped it.
    pub bench_stopped: &'static str,
    /// The browser has no database for this page.
    pub no_storage: &'static str,
    /// The browser refused a write.
    pub not_stored: &'static str,
    /// The browser refused to delete.
    pub not_deleted: &'static str,
    /// The open conversation was deleted in another tab.
    pub deleted_elsewhere: &'static str,
    /// Two tabs went on in one conversation, and this one's is a copy now.
    pub parted: &'static str,
    /// The title of such a copy.
    pub copy: &'static str,
    /// The wanted room is hosted by another tab.
    pub hosted_elsewhere: &'static str,
    /// The room that was to be hosted again has ended, in another tab or by itself.
    pub room_ended: &'static str,
    /// The browser refused the clipboard.
    pub cannot_copy: &'static str,
}

impl PhaseTexts {
    /// The text of a phase.
    #[must_use]
    pub const fn of(&self, phase: LoadPhase) -> &'static str {
        match phase {
            LoadPhase::Find => self.find,
            LoadPhase::Download => self.download,
            LoadPhase::Check => self.check,
            LoadPhase::Upload => self.upload,
            LoadPhase::Kernels => self.kernels,
            LoadPhase::SelfTest => self.self_test,
            LoadPhase::Ready => self.ready,
        }
    }
}

impl MemberTexts {
    /// One or two words. A hidden tab is named unless something worse is.
    #[must_use]
    pub const fn of(&self, status: MemberStatus, hidden: bool) -> &'static str {
        match status {
            MemberStatus::Asking => self.asking,
            MemberStatus::Failed => self.failed,
            MemberStatus::Silent => self.silent,
            _ if hidden => self.hidden,
            MemberStatus::Guest => self.guest,
            MemberStatus::Loading => self.loading,
            MemberStatus::Ready => self.ready,
            MemberStatus::Spare => self.spare,
        }
    }
}

impl RoleTexts {
    /// The text of a member's roles.
    #[must_use]
    pub const fn of(&self, member: &MemberView) -> &'static str {
        match (member.coordinator, member.lent.is_some()) {
            (true, true) => self.host_and_worker,
            (true, false) => self.host,
            (false, true) => self.worker,
            (false, false) => self.guest,
        }
    }
}

impl PlanTexts {
    /// How far a plan is. `short`: memory is missing; `percent` of what the devices load.
    #[must_use]
    pub fn of(&self, status: PlanStatus, short: bool, percent: Option<u64>) -> String {
        match (status, percent) {
            (PlanStatus::Up, _) => self.up.to_owned(),
            (PlanStatus::Committing, _) => self.committing.to_owned(),
            (PlanStatus::Preparing, Some(percent)) => fill(self.preparing_share, &[&percent.to_string()]),
            (PlanStatus::Preparing, None) => self.preparing.to_owned(),
            (PlanStatus::Waiting, _) if short => self.short_of_memory.to_owned(),
            (PlanStatus::Waiting, _) => self.waiting.to_owned(),
            (PlanStatus::Failed, _) => self.no_model.to_owned(),
        }
    }
}

impl ConnectionTexts {
    /// What keeps a tab out of the room; nothing if nothing does.
    #[must_use]
    pub fn of(&self, connection: &Connection) -> Option<String> {
        match connection {
            Connection::Connecting => Some(self.connecting.to_owned()),
            Connection::Reconnecting { attempt } => Some(fill(self.reconnecting, &[&attempt.to_string()])),
            Connection::WaitingForHost => Some(self.waiting_for_host.to_owned()),
            Connection::Closed { .. } => Some(self.closed.to_owned()),
            Connection::Idle | Connection::Connected => None,
        }
    }
}

impl KvCacheTexts {
    /// The text of a type.
    #[must_use]
    pub const fn of(&self, kind: KvCacheType) -> &'static str {
        match kind {
            KvCacheType::F32 => self.f32,
            KvCacheType::F16 => self.f16,
            KvCacheType::Q8_0 => self.q8_0,
            KvCacheType::Q4_0 => self.q4_0,
        }
    }
}

impl ArithmeticTexts {
    /// The text of an arithmetic.
    #[must_use]
    pub const fn of(&self, how: Arithmetic) -> &'static str {
        match how {
            Arithmetic::Exact => self.exact,
            Arithmetic::Packed => self.packed,
            Arithmetic::Matrix => self.matrix,
        }
    }
}

impl SharingTexts {
    /// The name of a choice.
    #[must_use]
    pub const fn of(&self, sharing: Sharing) -> &'static str {
        match sharing {
            Sharing::Fastest => self.fastest,
            Sharing::Everyone => self.everyone,
            Sharing::Experts => self.experts,
        }
    }

    /// What a choice means for a model with so many experts a block and so many blocks, as far as they are known.
    #[must_use]
    pub fn hint(&self, sharing: Sharing, experts: Option<u32>, blocks: Option<u32>) -> String {
        match (sharing, experts, blocks) {
            (Sharing::Fastest, ..) => self.fastest_hint.to_owned(),
            (Sharing::Everyone, ..) => self.everyone_hint.to_owned(),
            (Sharing::Experts, Some(0), _) => self.no_experts.to_owned(),
            (Sharing::Experts, Some(_), Some(blocks)) if blocks > 1 => fill(self.experts_hint, &[&blocks.to_string()]),
            (Sharing::Experts, ..) => self.experts_unknown.to_owned(),
        }
    }
}

/// Puts values in the place of each `{}`, in order. What has no value stays as it is.
#[must_use]
pub fn fill(template: &str, values: &[&str]) -> String {
    let mut pieces = template.split("{}");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    let mut values = values.iter();
    for piece in pieces {
        text.push_str(values.next().copied().unwrap_or("{}"));
        text.push_str(piece);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ENGLISH;

    #[test]
    fn values_take_their_places_in_order() {
        assert_eq!(fill("{} of {}", &["1", "2"]), "1 of 2");
        assert_eq!(fill("nothing", &["1"]), "nothing");
        assert_eq!(fill("{} and {}", &["1"]), "1 and {}", "a missing value is visible, not a panic");
    }

    #[test]
    fn a_hidden_tab_is_named_unless_something_worse_is() {
        assert_eq!(ENGLISH.member.of(MemberStatus::Ready, true), "tab hidden, slower");
        assert_eq!(ENGLISH.member.of(MemberStatus::Failed, true), "failed");
    }

    #[test]
    fn loading_names_its_share_once_it_is_known() {
        assert_eq!(ENGLISH.plan.of(PlanStatus::Preparing, false, Some(41)), "loading 41%");
        assert_eq!(ENGLISH.plan.of(PlanStatus::Preparing, false, None), "loading");
        assert_eq!(ENGLISH.plan.of(PlanStatus::Waiting, true, None), "waiting for more memory");
    }

    #[test]
    fn what_spreading_experts_costs_depends_on_the_model() {
        let hint = |experts, blocks| crate::texts().sharing.hint(Sharing::Experts, experts, blocks);
        assert!(hint(Some(128), Some(48)).ends_with("Up to 48 round trips per token."));
        assert!(hint(None, None).ends_with("Up to one round trip per block and token."));
        assert_eq!(hint(Some(0), Some(48)), "This model has no experts: it gets the fastest plan.");
    }
}
