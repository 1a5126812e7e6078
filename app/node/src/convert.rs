//! Between what peers say and what the page shows: two sets of types, so that either side can change alone.

use potluck_panel as panel;
use potluck_plan::{Bytes, KvCacheType};
use potluck_protocol as wire;

/// A prompt of the page.
pub fn prompt(prompt: panel::Prompt) -> wire::PromptRequest {
    let sampling = prompt.sampling;
    wire::PromptRequest {
        request: wire::RequestId(prompt.request.0),
        conversation: prompt.conversation,
        messages: prompt.messages.into_iter().map(message).collect(),
        raw: prompt.raw,
        max_tokens: prompt.max_tokens,
        sampling: wire::Sampling {
            temperature: sampling.temperature,
            top_k: sampling.top_k,
            top_p: sampling.top_p,
            min_p: sampling.min_p,
            repetition_penalty: sampling.repetition_penalty,
            seed: sampling.seed,
        },
    }
}

fn message(message: panel::Message) -> wire::Message {
    let role = match message.role {
        panel::Role::System => wire::Role::System,
        panel::Role::User => wire::Role::User,
        panel::Role::Assistant => wire::Role::Assistant,
    };
    wire::Message { role, content: message.content }
}

/// Part of an answer.
pub fn answer(part: wire::AnswerPart) -> panel::AnswerEvent {
    match part {
        wire::AnswerPart::Queued(position) => panel::AnswerEvent::Queued { position },
        wire::AnswerPart::Reading(done, total) => panel::AnswerEvent::Reading { done, total },
        wire::AnswerPart::Text { delta, tokens, .. } => panel::AnswerEvent::Text { delta, tokens },
        wire::AnswerPart::Recovering(reason) => panel::AnswerEvent::Recovering { reason },
        wire::AnswerPart::End { stop, timings, .. } => {
            panel::AnswerEvent::End { end: end(stop), timings: self::timings(timings) }
        }
        wire::AnswerPart::Unknown => {
            let sentence = "The host does not know this question any more, because its page was reloaded; ask again.";
            panel::AnswerEvent::End {
                end: panel::AnswerEnd::Failed(sentence.to_owned()),
                timings: panel::AnswerTimings::default(),
            }
        }
    }
}

fn end(stop: wire::AnswerStop) -> panel::AnswerEnd {
    match stop {
        wire::AnswerStop::Complete => panel::AnswerEnd::Complete,
        wire::AnswerStop::Length => panel::AnswerEnd::Length,
        wire::AnswerStop::Stopped => panel::AnswerEnd::Stopped,
        wire::AnswerStop::Failed(sentence) => panel::AnswerEnd::Failed(sentence),
    }
}

fn timings(timings: wire::Timings) -> panel::AnswerTimings {
    panel::AnswerTimings {
        prompt_tokens: timings.prompt_tokens,
        reused_tokens: timings.reused_tokens,
        answer_tokens: timings.answer_tokens,
        first_token_ms: timings.first_token_ms,
        expected_first_ms: timings.expected_first_ms,
        decode_ms: timings.decode_ms,
        context_used: timings.context_used,
        context: timings.context,
    }
}

/// The page's choice of a model.
pub fn source(source: panel::ModelSource) -> wire::ModelSource {
    match source {
        panel::ModelSource::Relay { name } => wire::ModelSource::Relay { name },
        panel::ModelSource::Link { url } => wire::ModelSource::Link { url },
        panel::ModelSource::File { name, bytes } => wire::ModelSource::Host { name, bytes: Bytes(bytes) },
    }
}

/// The room's model.
pub fn source_shown(source: &wire::ModelSource) -> panel::ModelSource {
    match source.clone() {
        wire::ModelSource::Relay { name } => panel::ModelSource::Relay { name },
        wire::ModelSource::Link { url } => panel::ModelSource::Link { url },
        wire::ModelSource::Host { name, bytes } => panel::ModelSource::File { name, bytes: bytes.0 },
    }
}

/// How keys and values are stored, from the page.
pub fn state(cache: panel::CacheType) -> KvCacheType {
    match cache {
        panel::CacheType::F32 => KvCacheType::F32,
        panel::CacheType::F16 => KvCacheType::F16,
        panel::CacheType::Q8 => KvCacheType::Q8_0,
        panel::CacheType::Q4 => KvCacheType::Q4_0,
    }
}

/// How keys and values are stored, for the page.
pub fn state_shown(state: KvCacheType) -> panel::CacheType {
    match state {
        KvCacheType::F32 => panel::CacheType::F32,
        KvCacheType::F16 => panel::CacheType::F16,
        KvCacheType::Q8_0 => panel::CacheType::Q8,
        KvCacheType::Q4_0 => panel::CacheType::Q4,
    }
}

/// An icon, from the page.
pub fn kind(kind: panel::DeviceKind) -> wire::DeviceKind {
    match kind {
        panel::DeviceKind::Computer => wire::DeviceKind::Computer,
        panel::DeviceKind::Phone => wire::DeviceKind::Phone,
        panel::DeviceKind::Tablet => wire::DeviceKind::Tablet,
        panel::DeviceKind::Native => wire::DeviceKind::Native,
    }
}

/// An icon, for the page.
pub fn kind_shown(kind: wire::DeviceKind) -> panel::DeviceKind {
    match kind {
        wire::DeviceKind::Computer => panel::DeviceKind::Computer,
        wire::DeviceKind::Phone => panel::DeviceKind::Phone,
        wire::DeviceKind::Tablet => panel::DeviceKind::Tablet,
        wire::DeviceKind::Native => panel::DeviceKind::Native,
    }
}

/// Loading, by phase.
pub fn loading(report: &wire::LoadReport) -> panel::Loading {
    let phase = match report.phase {
        wire::LoadPhase::Find => "find",
        wire::LoadPhase::Download => "download",
        wire::LoadPhase::Check => "check",
        wire::LoadPhase::Upload => "upload",
        wire::LoadPhase::Kernels => "prepare kernels",
        wire::LoadPhase::SelfTest => "self-test",
        wire::LoadPhase::Ready => "ready",
    };
    let left = report.total.saturating_sub(report.done).0 as f64;
    panel::Loading {
        phase: phase.to_owned(),
        done: report.done.0,
        total: report.total.0,
        rate: report.rate,
        seconds_left: (report.rate > 0.0 && report.total > Bytes::ZERO).then(|| left / report.rate),
        cached: report.cached.0,
    }
}

/// How bad a notice is.
pub fn level(severity: potluck_swarm::Severity) -> panel::NoticeLevel {
    match severity {
        potluck_swarm::Severity::Info => panel::NoticeLevel::Info,
        potluck_swarm::Severity::Warning => panel::NoticeLevel::Warning,
        potluck_swarm::Severity::Error => panel::NoticeLevel::Error,
    }
}
