//! Messages of the node to the page, as JSON text and as JavaScript values: what each way costs is measured in a browser by
//! `e2e/bench/messages.mjs`.

use potluck_panel::{
    AnswerPart, Arithmetic, Bytes, Channel, Compared, CreditView, DeviceDecision, DeviceId, DeviceKind, DeviceReport,
    ExpertsView, HolderView, HopView, KeptReason, LayerChecksView, LeftOut, MemberStatus, MemberView, Part, PartReason,
    PeerId, Place, PlanDecision, PlanEpoch, PlanReport, PlanStatus, RequestId, RoomReport, Sharing, SpreadingCompared,
    StageId, StageReport, StandbyDecision, Status, ToPage, WhyPlan, Work,
};
use serde::Serialize;
use serde_wasm_bindgen::Serializer;
use wasm_bindgen::{JsError, JsValue, prelude::wasm_bindgen};

/// A message in the node's memory.
#[wasm_bindgen]
pub struct Sample(ToPage);

#[wasm_bindgen]
impl Sample {
    /// The snapshot of a room in which all devices have a stage and hold experts.
    pub fn status(devices: u8) -> Self {
        Self(ToPage::Status(Box::new(status(devices))))
    }

    /// A token of an answer.
    pub fn piece() -> Self {
        let event = AnswerPart::Text {
            index: 123,
            channel: Channel::Answer,
            delta: " soup".to_owned(),
            tokens: vec![18_377],
            logprobs: Vec::new(),
        };
        Self(ToPage::Answer { request: RequestId(7), event })
    }

    /// A trace, which is text.
    pub fn trace(characters: usize) -> Self {
        let entry = r#"{"millis":12345.678,"kind":"event","what":"Frame(Forward, pass 12)"},"#;
        Self(ToPage::Trace(entry.repeat(characters.div_ceil(entry.len()))))
    }

    /// As JSON.
    pub fn to_text(&self) -> Result<String, JsError> {
        Ok(serde_json::to_string(&self.0)?)
    }

    /// As a JavaScript value.
    pub fn to_value(&self) -> Result<JsValue, JsError> {
        Ok(self.0.serialize(&Serializer::new())?)
    }

    /// The same, exact above 2⁵³.
    pub fn to_exact_value(&self) -> Result<JsValue, JsError> {
        Ok(self.0.serialize(&Serializer::new().serialize_large_number_types_as_bigints(true))?)
    }

    /// As a JavaScript value like that of JSON.
    pub fn to_plain_value(&self) -> Result<JsValue, JsError> {
        Ok(self.0.serialize(&Serializer::json_compatible())?)
    }

    /// Whether the page reads this message.
    pub fn is_text(&self, text: &str) -> Result<bool, JsError> {
        Ok(serde_json::from_str::<ToPage>(text)? == self.0)
    }

    /// The same of a value.
    pub fn is_value(&self, value: JsValue) -> Result<bool, JsError> {
        Ok(serde_wasm_bindgen::from_value::<ToPage>(value)? == self.0)
    }
}

/// Reads a message.
#[wasm_bindgen]
pub fn read_text(text: &str) -> Result<(), JsError> {
    std::hint::black_box(serde_json::from_str::<ToPage>(text)?);
    Ok(())
}

/// Reads a message.
#[wasm_bindgen]
pub fn read_value(value: JsValue) -> Result<(), JsError> {
    std::hint::black_box(serde_wasm_bindgen::from_value::<ToPage>(value)?);
    Ok(())
}

fn peer(number: u8) -> PeerId {
    PeerId([number.wrapping_mul(31); 16])
}

fn status(devices: u8) -> Status {
    let numbers = || 0..devices;
    Status {
        build: "0123456789abcdef".to_owned(),
        peer: Some(peer(0)),
        room: Some(RoomReport {
            id: "ab".repeat(16),
            key: Some("cd".repeat(16)),
            link: format!("/r/{}#{}", "ab".repeat(16), "cd".repeat(16)),
            visible: true,
            chat_only: false,
        }),
        context: 4096,
        plan: Some(plan(devices)),
        why: Some(why(devices)),
        peers: numbers().map(member).collect(),
        words: numbers().map(|number| (peer(number), "kettle ladle spoon".to_owned())).collect(),
        device: DeviceReport {
            adapter: "nvidia hopper".to_owned(),
            max_binding: 1 << 31,
            max_buffer: 1 << 32,
            bandwidth: 1.234_567_8e12,
            sync_ms: 0.312_5,
            ..DeviceReport::default()
        },
        credits: numbers().map(credit).collect(),
        deputy: None,
        pending: vec![RequestId(7)],
        tokens_per_second: 23.456_789_012_345_678,
        ..Status::default()
    }
}

fn member(number: u8) -> MemberView {
    MemberView {
        peer: peer(number),
        name: format!("Kitchen laptop {number}"),
        kind: DeviceKind::Computer,
        adapter: "nvidia hopper".to_owned(),
        coordinator: number == 0,
        lent: Some(Bytes(8 << 30)),
        used: Bytes(5_123_456_789),
        status: MemberStatus::Ready,
        spare: None,
        standby: Some("It can replace Kitchen laptop 3 within two seconds.".to_owned()),
        loading: None,
        round_trip_ms: 12.345_678_9,
        hidden: false,
    }
}

fn plan(devices: u8) -> PlanReport {
    let stage = |number: u8| StageReport {
        id: StageId(number.into()),
        peer: peer(number),
        first_block: u16::from(number) * 6,
        end_block: u16::from(number) * 6 + 6,
        embeds: number == 0,
        head: number + 1 == devices,
        expert_holders: vec![],
        bytes: 4_123_456_789,
        kv_cache_bytes: 268_435_456,
        predicted_ms: 12.345_678_901_234_5,
        measured_ms: 13.456_789_012_345_6,
    };
    let hop = |number: u8| HopView {
        from: peer(number),
        to: peer((number + 1) % devices),
        predicted_ms: 1.234_567_890_123_45,
        measured_ms: 1.345_678_901_234_56,
    };
    let holder = |number: u8| HolderView {
        peer: peer(number),
        experts: 512,
        bytes: Bytes(3_123_456_789),
        answers: 12_345,
        open: 1,
        hedges: 123,
        hedges_won: 45,
        timeouts: 0,
        is_unhealthy: false,
        median_ms: 3.456_789_012_345_67,
        slow_ms: 9.876_543_210_987_65,
        ordered: 0,
        loading: None,
    };
    PlanReport {
        epoch: PlanEpoch(12),
        state: PlanStatus::Up,
        stages: (0..devices).map(stage).collect(),
        hops: (0..devices).map(hop).collect(),
        cache: None,
        overhead: 123_456_789,
        network_hops: devices.into(),
        token_ms: 43.210_987_654_321,
        measured_token_ms: 45.678_901_234_567_8,
        forecast: None,
        sharing: Sharing::Everyone,
        ends: Default::default(),
        waiting: None,
        reason: "Each device has the blocks that it computes fastest; two of them could not hold the model.".to_owned(),
        help: vec![],
        experts: Some(ExpertsView {
            pooled: 4096,
            holders: (0..devices).map(holder).collect(),
            ..ExpertsView::default()
        }),
        spreading: None,
        checks: LayerChecksView::default(),
    }
}

/// Tagged and flattened fields are written and read in ways of their own.
fn why(devices: u8) -> WhyPlan {
    let has = |number: u8| {
        let why = PartReason::NeededForMemory { needed: Bytes(32 << 30), others_lend: Bytes(28 << 30) };
        let place = Place::Has(Part { blocks: 6, experts: 512, ms: 12.0, lends: Bytes(8 << 30), why });
        DeviceDecision { peer: peer(number), place }
    };
    let left_out = DeviceDecision { peer: peer(devices), place: Place::LeftOut(LeftOut::Protected) };
    let made = |number: u8| StandbyDecision::Made {
        lost: peer(number),
        helpers: vec![peer((number + 1) % devices)],
        ready: true,
    };
    WhyPlan {
        chosen: None,
        plan: PlanDecision::Kept {
            epoch: PlanEpoch(12),
            compared: Compared { active_ms: 43.25, best_ms: 42.0, needed_ms: 38.900_000_1 },
            reason: KeptReason::DoesNotPay { load_ms: 12_345.678_9, tokens: 1 << 40 },
        },
        arithmetic: Some(Arithmetic::Packed),
        devices: (0..devices).map(has).chain([left_out]).collect(),
        spreading: Some(SpreadingCompared { trips: 24, spread_ms: 61.5, whole_ms: None }),
        ends: None,
        standbys: (0..devices).map(made).collect(),
    }
}

fn credit(number: u8) -> CreditView {
    CreditView {
        device: DeviceId([number; 32]),
        peers: vec![peer(number)],
        name: format!("Kitchen laptop {number}"),
        work: Work { tokens: 12_345, gpu_millis: 123_456.789_012_345, bytes: Bytes(123_456_789) },
    }
}

fn main() {}
