//! English.

use crate::{ConnectionTexts, KvCacheTexts, MemberTexts, PhaseTexts, PlanTexts, RoleTexts, Texts};

/// English.
pub const ENGLISH: Texts = Texts {
    language: "en",
    phase: PhaseTexts {
        find: "Finding the parts",
        download: "Downloading",
        check: "Checking",
        upload: "Moving to the GPU",
        kernels: "Preparing kernels",
        self_test: "Testing kernels",
        ready: "Ready",
    },
    step: PhaseTexts {
        find: "find",
        download: "download",
        check: "check",
        upload: "upload",
        kernels: "prepare kernels",
        self_test: "self-test",
        ready: "ready",
    },
    member: MemberTexts {
        asking: "wants to join",
        guest: "guest",
        loading: "loading",
        ready: "ready",
        spare: "spare",
        failed: "failed",
        silent: "no answer",
        hidden: "tab hidden, slower",
    },
    role: RoleTexts { host_and_worker: "host, lends its GPU", host: "host", worker: "lends its GPU", guest: "guest" },
    plan: PlanTexts {
        up: "ready",
        committing: "almost ready",
        preparing: "loading",
        preparing_share: "loading {}%",
        short_of_memory: "waiting for more memory",
        waiting: "getting ready",
        opening_model: "opening the model",
        joining: "joining",
    },
    connection: ConnectionTexts {
        connecting: "connecting",
        reconnecting: "reconnecting, attempt {}",
        waiting_for_host: "waiting for the host",
        closed: "closed",
    },
    kv_cache: KvCacheTexts {
        f32: "Exact (f32)",
        f16: "Half the memory (f16)",
        q8_0: "A quarter (q8_0)",
        q4_0: "An eighth (q4_0), less exact answers",
    },
    question_lost: "The host's page was reloaded and lost this question. Ask again.",
};
