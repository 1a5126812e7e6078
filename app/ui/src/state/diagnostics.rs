//! What somebody may paste into an issue: versions, limits and numbers.
//!
//! Each field is chosen here, so that nothing slips in that a person wrote or that lets others in: no names, addresses, links, keys
//! or conversations. Of an error only the table's own words are given ([`Texts::own_words`](potluck_text::Texts::own_words)).

use potluck_model::Architecture;
use potluck_panel::{
    BUILD, Connection, DeviceKind, DeviceReport, LoadReport, MemberStatus, MemberView, Notice, NoticeLevel, PeerId,
    PlanReport, PlanStatus, Roles, SelfTestState, Sharing, Status,
};
use potluck_text::texts;
use serde::Serialize;

/// In place of a text that is not one of ours.
const OTHER: &str = "other";

#[derive(Serialize)]
struct Diagnostics<'a> {
    page: &'static str,
    node: &'a str,
    browser: &'a str,
    gpu: Gpu<'a>,
    roles: Roles,
    connection: &'static str,
    model: Option<Model>,
    context: u32,
    members: Vec<Member>,
    plan: Option<Plan>,
    loading: Option<LoadReport>,
    checking: Option<LoadReport>,
    bytes_loaded: u64,
    bytes_downloaded: u64,
    tokens: u64,
    tokens_per_second: f64,
    errors: Vec<Told>,
}

#[derive(Serialize)]
struct Gpu<'a> {
    webgpu: bool,
    trouble: Option<&'static str>,
    adapter: &'a str,
    software: bool,
    shader_f16: bool,
    subgroups: bool,
    max_binding: u64,
    max_buffer: u64,
    bandwidth: f64,
    sync_ms: f64,
    self_test: SelfTestState,
    kernels_tested: u32,
    kernels_replaced: &'a [String],
    kernels_failed: &'a [String],
}

#[derive(Serialize)]
struct Model {
    architecture: &'static str,
    bytes: u64,
    parameters: u64,
    active_parameters: u64,
    blocks: u16,
    experts: u16,
}

/// Members are numbered as in the list, from 0.
#[derive(Serialize)]
struct Member {
    this_device: bool,
    host: bool,
    kind: DeviceKind,
    status: MemberStatus,
    lent: Option<u64>,
    used: u64,
    loading: Option<LoadReport>,
    round_trip_ms: f64,
    hidden: bool,
}

#[derive(Serialize)]
struct Plan {
    epoch: u32,
    state: PlanStatus,
    sharing: Sharing,
    kv_cache: Option<String>,
    stages: Vec<Stage>,
    network_hops: u32,
    token_ms: f64,
    measured_token_ms: f64,
    needed: Option<u64>,
    lent: Option<u64>,
}

#[derive(Serialize)]
struct Stage {
    member: Option<usize>,
    blocks: [u16; 2],
    bytes: u64,
    kv_cache_bytes: u64,
    experts_elsewhere: u32,
    predicted_ms: f64,
    measured_ms: f64,
}

#[derive(Serialize)]
struct Told {
    level: NoticeLevel,
    sentence: &'static str,
}

/// The diagnostics as indented JSON.
#[must_use]
pub fn diagnostics(status: &Status, errors: &[Notice], browser: &str) -> String {
    let all = Diagnostics {
        page: BUILD,
        node: &status.build,
        browser,
        gpu: gpu(&status.device),
        roles: status.role,
        connection: match status.connection {
            Connection::Idle => "idle",
            Connection::Connecting => "connecting",
            Connection::Connected => "connected",
            Connection::Reconnecting { .. } => "reconnecting",
            Connection::SocketsRefused { .. } => "sockets refused",
            Connection::WaitingForHost => "waiting for the host",
            Connection::Closed { .. } => "closed",
        },
        model: status.model.as_ref().map(|model| Model {
            architecture: Architecture::from_name(&model.architecture).map_or(OTHER, Architecture::name),
            bytes: model.bytes.0,
            parameters: model.parameters,
            active_parameters: model.active_parameters,
            blocks: model.blocks,
            experts: model.experts,
        }),
        context: status.context,
        members: status.peers.iter().map(|member| self::member(member, status)).collect(),
        plan: status.plan.as_ref().map(|plan| self::plan(plan, &status.peers)),
        loading: status.loading,
        checking: status.checking,
        bytes_loaded: status.bytes_loaded,
        bytes_downloaded: status.bytes_downloaded,
        tokens: status.tokens,
        tokens_per_second: status.tokens_per_second,
        errors: errors.iter().map(|told| Told { level: told.level, sentence: ours(&told.sentence) }).collect(),
    };
    // Plain numbers and strings always serialize.
    serde_json::to_string_pretty(&all).unwrap_or_default()
}

fn ours(sentence: &str) -> &'static str {
    texts().own_words(sentence).unwrap_or(OTHER)
}

fn gpu(device: &DeviceReport) -> Gpu<'_> {
    Gpu {
        webgpu: device.webgpu,
        trouble: device.trouble.as_deref().map(ours),
        adapter: &device.adapter,
        software: device.software,
        shader_f16: device.shader_f16,
        subgroups: device.subgroups,
        max_binding: device.max_binding,
        max_buffer: device.max_buffer,
        bandwidth: device.bandwidth,
        sync_ms: device.sync_ms,
        self_test: device.self_test.state,
        kernels_tested: device.self_test.tested,
        kernels_replaced: &device.self_test.replaced,
        kernels_failed: &device.self_test.failed,
    }
}

fn member(member: &MemberView, status: &Status) -> Member {
    Member {
        this_device: status.is_self(member),
        host: member.coordinator,
        kind: member.kind,
        status: member.status,
        lent: member.lent.map(|bytes| bytes.0),
        used: member.used.0,
        loading: member.loading,
        round_trip_ms: member.round_trip_ms,
        hidden: member.hidden,
    }
}

fn plan(plan: &PlanReport, members: &[MemberView]) -> Plan {
    let number = |peer: PeerId| members.iter().position(|member| member.peer == peer);
    let stages = plan.stages.iter().map(|stage| Stage {
        member: number(stage.peer),
        blocks: [stage.first_block, stage.end_block],
        bytes: stage.bytes,
        kv_cache_bytes: stage.kv_cache_bytes,
        experts_elsewhere: stage.expert_holders.iter().map(|holding| holding.experts).sum(),
        predicted_ms: stage.predicted_ms,
        measured_ms: stage.measured_ms,
    });
    Plan {
        epoch: plan.epoch.0,
        state: plan.state,
        sharing: plan.sharing,
        kv_cache: plan.cache.map(|kind| format!("{kind:?}")),
        stages: stages.collect(),
        network_hops: plan.network_hops,
        token_ms: plan.token_ms,
        measured_token_ms: plan.measured_token_ms,
        needed: plan.waiting.as_ref().map(|waiting| waiting.needed),
        lent: plan.waiting.as_ref().map(|waiting| waiting.lent),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_panel::{
        Bytes, KvCacheType, ModelCard, ModelId, ModelSource, PlanEpoch, RoomReport, StageId, StageReport, Waiting,
    };

    use super::*;

    /// What stands for everything that must not be told. It is in every free text of [`told`].
    const SECRET: &str = "Annabel";

    fn secret(text: &str) -> String {
        format!("{SECRET} {text}")
    }

    fn notice(sentence: String) -> Notice {
        Notice { level: NoticeLevel::Error, sentence, details: secret("details"), condition: None }
    }

    /// A room in use.
    fn status() -> Status {
        let (host, worker) = (PeerId([0xab; 16]), PeerId([0xcd; 16]));
        let member = |peer, coordinator| MemberView {
            peer,
            name: secret("laptop"),
            kind: DeviceKind::Phone,
            adapter: secret("GPU"),
            coordinator,
            lent: Some(Bytes(4_000_000_001)),
            used: Bytes(3),
            status: MemberStatus::Ready,
            spare: Some(secret("is slow")),
            standby: Some(secret("stands by")),
            loading: None,
            round_trip_ms: 7.5,
            hidden: false,
        };
        let stage = StageReport {
            id: StageId(0),
            peer: worker,
            first_block: 3,
            end_block: 17,
            embeds: true,
            head: true,
            expert_holders: Vec::new(),
            bytes: 123_456_789,
            kv_cache_bytes: 5,
            predicted_ms: 1.25,
            measured_ms: 2.5,
        };
        Status {
            build: "abc1234".into(),
            peer: Some(worker),
            connection: Connection::Closed { reason: secret("has closed the room") },
            room: Some(RoomReport {
                id: secret("room"),
                key: Some(secret("key")),
                link: secret("/r/room#key"),
                visible: true,
                chat_only: false,
            }),
            model: Some(ModelCard {
                id: ModelId([0xef; 32]),
                source: ModelSource::Link { url: secret("https://models.example/a.gguf?token=1") },
                name: secret("fine-tune"),
                architecture: "qwen3".into(),
                quantization: secret("quantization"),
                bytes: Bytes(9),
                parameters: 8,
                active_parameters: 7,
                blocks: 36,
                experts: 0,
                context: 4096,
                licence: secret("licence"),
            }),
            plan: Some(PlanReport {
                epoch: PlanEpoch(4),
                state: PlanStatus::Up,
                stages: vec![stage],
                hops: Vec::new(),
                cache: Some(KvCacheType::Q8_0),
                overhead: 1,
                network_hops: 2,
                token_ms: 3.0,
                measured_token_ms: 4.0,
                forecast: None,
                sharing: Sharing::Fastest,
                ends: Default::default(),
                waiting: Some(Waiting { needed: 11, lent: 10, sentence: secret("1 byte more") }),
                reason: secret("reason"),
                help: vec![secret("help")],
                experts: None,
                spreading: Some(secret("spreading")),
                checks: Default::default(),
            }),
            peers: vec![member(host, true), member(worker, false)],
            words: vec![(host, secret("three words"))],
            host_words: Some(secret("three words")),
            device: DeviceReport { trouble: Some(secret("trouble")), ..DeviceReport::default() },
            tokens: 42,
            ..Status::default()
        }
    }

    #[test]
    fn nothing_is_told_that_a_person_wrote_or_that_lets_others_in() {
        let mut status = status();
        let errors = [
            notice(texts().device.failed(SECRET)),
            notice(secret("https://relay.example/r/room#key")),
            notice(texts().notice.cannot_copy().to_owned()),
        ];
        for _ in 0..2 {
            let told = diagnostics(&status, &errors, "Mozilla/5.0");
            let hex = ["ab", "cd", "ef"].map(|byte| byte.repeat(4));
            let forbidden = [SECRET, "example", "://", "/r/", "#", "token=", "three words"];
            for word in forbidden.into_iter().chain(hex.iter().map(String::as_str)) {
                assert!(!told.contains(word), "{word} is told:\n{told}");
            }
            // Neither if the file of a host has a name where others have an architecture.
            status.model.as_mut().unwrap().architecture = secret("architecture");
        }
    }

    #[test]
    fn numbers_and_errors_are_told() {
        let errors = [notice(texts().device.failed(SECRET)), notice(secret("does what nobody knows"))];
        let told: serde_json::Value = serde_json::from_str(&diagnostics(&status(), &errors, "Mozilla/5.0")).unwrap();
        assert_eq!((&told["node"], &told["browser"]), (&"abc1234".into(), &"Mozilla/5.0".into()));
        assert_eq!((&told["connection"], &told["model"]["architecture"]), (&"closed".into(), &"qwen3".into()));
        let members = &told["members"];
        assert_eq!((&members[0]["host"], &members[1]["this_device"]), (&true.into(), &true.into()));
        assert_eq!((&members[1]["kind"], &members[1]["lent"]), (&"Phone".into(), &4_000_000_001_u64.into()));
        let stage = &told["plan"]["stages"][0];
        assert_eq!(
            (&stage["member"], &stage["blocks"][1], &stage["bytes"]),
            (&1.into(), &17.into(), &123_456_789.into())
        );
        assert_eq!((&told["plan"]["needed"], &told["tokens"]), (&11.into(), &42.into()));
        assert_eq!(told["errors"][0]["sentence"], "wrong results from { $kernels }: this device cannot take part");
        assert_eq!(told["errors"][1]["sentence"], OTHER);
    }
}
