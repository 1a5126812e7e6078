//! Rooms with honest and lying stages, as hashes and rows: who is convicted, and after how many batches.

use std::collections::BTreeMap;

use potluck_plan::{
    BiasedTokens, BlockRange, Candidates, Input, KernelClass, LogitBias, LogitsRequest, Millis, Outcome, PlanEpoch,
    StageId, Task, Then, WireType,
};
use potluck_protocol::PassId;

use super::*;
use crate::examples;
use crate::row_hashes::Hashed;

const WIDTH: usize = 2;
const EPOCH: PlanEpoch = PlanEpoch(1);
const STAGES: usize = 3;
const CONVERSATION: ConversationId = ConversationId(7);

fn peer(place: usize) -> PeerId {
    PeerId([place as u8 + 2; 16])
}

fn hash(seed: u64) -> u64 {
    let value = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value ^ (value >> 32)
}

fn unit(seed: u64) -> f64 {
    hash(seed) as f64 / u64::MAX as f64
}

/// A device: what it computes of a position depends on all positions before.
#[derive(Default)]
struct Device {
    sums: BTreeMap<ConversationId, Vec<f32>>,
    /// The kernels are compiled in another way.
    rounds: bool,
}

impl Device {
    fn row(
        &mut self,
        place: usize,
        conversation: ConversationId,
        position: usize,
        class: KernelClass,
        row: [f32; 2],
    ) -> [f32; 2] {
        let sums = self.sums.entry(conversation).or_default();
        assert!(position <= sums.len(), "position {position} comes after {}", sums.len());
        sums.truncate(position);
        let kernel = if class == KernelClass::Decode { 0.125 } else { 0.1251 };
        let sum = sums.last().copied().unwrap_or_default() * 0.5 + row[0] + kernel * row[1];
        sums.push(sum);
        let sum = if self.rounds { sum * (1.0 + 4.0 * f32::EPSILON) } else { sum };
        [(sum + place as f32).sin(), (0.75 * row[1] - sum).cos()]
    }

    /// What the host's engine says to a piece of work.
    fn run(&mut self, task: &Task) -> Outcome {
        let Task::Forward { batch, class, input, blocks, then, .. } = task else { return Outcome::Cancelled };
        let place = usize::from(blocks.start);
        let rows: Vec<[f32; 2]> = match input {
            Input::Tokens(tokens) => tokens.iter().map(|token| embedded(*token)).collect(),
            Input::Hidden(values) => values.as_chunks().0.to_vec(),
            Input::Experts(_) => return Outcome::Cancelled,
        };
        let rows = batch.iter().zip(rows);
        let computed: Vec<[f32; 2]> =
            rows.map(|(at, row)| self.row(place, at.conversation, at.position.0 as usize, *class, row)).collect();
        match then {
            Then::Hidden => Outcome::Hidden(computed.into_flattened()),
            Then::LmHead(_) if *class == KernelClass::Prefill => {
                Outcome::Candidates(computed.last().map(best).into_iter().collect())
            }
            Then::LmHead(_) => Outcome::Candidates(computed.iter().map(best).collect()),
            _ => Outcome::Done,
        }
    }
}

fn embedded(token: u32) -> [f32; 2] {
    [token as f32 / 7.0, 1.0]
}

/// Two candidates, the better one first.
fn best(row: &[f32; 2]) -> Candidates {
    let (a, b) = ((3, row[0]), (9, row[1]));
    let (first, second) = if a.1 >= b.1 { (a, b) } else { (b, a) };
    Candidates { ids: vec![first.0, second.0], logits: vec![first.1, second.1], sampled: None, log_sum_exp: None }
}

/// An answer as three stages on three devices gave it, and what each of them has kept.
struct Answer {
    ended: EndedAnswer,
    inputs: Vec<Vec<f32>>,
    outputs: Vec<Vec<f32>>,
}

/// `lies`: a stage sends another value of a position.
fn answer(number: u64, positions: usize, lies: impl Fn(usize, usize) -> bool, rounds: bool) -> Answer {
    let prompt = positions / 2;
    let tokens: Vec<u32> = (0..positions as u64).map(|at| (hash(number ^ at << 32) % 100) as u32).collect();
    let class = |at: usize| if at < prompt { KernelClass::Prefill } else { KernelClass::Decode };
    let classes: Vec<KernelClass> = (0..positions).map(class).collect();
    let mut rows: Vec<[f32; 2]> = tokens.iter().map(|token| embedded(*token)).collect();
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for place in 0..STAGES {
        inputs.push(if place == 0 { Vec::new() } else { rows.as_flattened().to_vec() });
        let mut device = Device { rounds: rounds && place == 1, ..Device::default() };
        for (at, row) in rows.iter_mut().enumerate() {
            *row = device.row(place, CONVERSATION, at, classes[at], *row);
            row[0] += if lies(place, at) { 0.5 } else { 0.0 };
        }
        outputs.push(rows.as_flattened().to_vec());
    }
    let results = (prompt.saturating_sub(1)..positions).map(|at| (at as u32, best(&rows[at]))).collect();
    let ended = EndedAnswer {
        conversation: CONVERSATION,
        through: PassId(number),
        tokens,
        classes,
        results,
        bias: LogitBias::default(),
    };
    Answer { ended, inputs, outputs }
}

fn plan() -> Plan {
    let stage =
        |place: usize| Stage::new(StageId(place as u16), peer(place), BlockRange::new(place as u16, place as u16 + 1));
    Plan { epoch: EPOCH, ..examples::plan((0..STAGES).map(stage).collect()) }
}

fn pages(rows: &[f32], positions: usize) -> Vec<[u8; 32]> {
    let mut hashed = Hashed::default();
    hashed.put(0, rows, WIDTH);
    hashed.pages(positions).unwrap_or_default()
}

/// The hashes of all stages, which agree.
fn agreed(committed: Committed) -> Vec<StageHashes> {
    assert!(committed.all_agree(), "neighbours agree: {committed:?}");
    committed.hashes.into_iter().flatten().collect()
}

/// What each stage commits to; `says`: the outputs that it says it sent.
fn commit(answer: &Answer, says: impl Fn(usize) -> Option<Vec<f32>>) -> (RowRange, Committed) {
    let (mut ledger, plan) = (Ledger::default(), plan());
    let positions = answer.ended.tokens.len();
    let mut last = None;
    for (place, (to, range)) in ledger.begin(answer.ended.clone(), &plan, Millis(0.0)).into_iter().enumerate() {
        let inputs = if place == 0 { Vec::new() } else { pages(&answer.inputs[place], positions) };
        let sent = says(place).unwrap_or_else(|| answer.outputs[place].clone());
        let outputs = if place + 1 == STAGES { Vec::new() } else { pages(&sent, positions) };
        let hashes = Some(StageHashes { inputs, outputs });
        assert!(last.is_none(), "nothing is known before all have committed");
        let nobody = RowHashes { range: RowRange { positions: 1, ..range }, hashes: None };
        assert!(ledger.answered(to, nobody).is_none(), "a range that nobody asked for");
        last = ledger.answered(to, RowHashes { range, hashes });
    }
    let Some((ended, range, committed)) = last else { panic!("all have committed") };
    assert_eq!(ended, answer.ended);
    (range, committed)
}

/// Fetches the rows and computes a stage's part again on this device. `shows`: what a device shows instead.
fn check(
    answer: &Answer,
    range: RowRange,
    hashes: &[StageHashes],
    place: usize,
    host: &mut Device,
    shows: impl Fn(PeerId) -> Option<Vec<f32>>,
) -> Verdict {
    let target = Target {
        peer: peer(place),
        is_alike: true,
        is_routed: false,
        blocks: BlockRange::new(place as u16, place as u16 + 1),
        embeds: place == 0,
        next: (place + 1 < STAGES).then(|| (StageId(place as u16 + 1), peer(place + 1))),
        wire: WireType::F32,
        width: WIDTH,
    };
    let range = RowRange { stage: StageId(place as u16), ..range };
    let hashes = [hashes[place].inputs.clone(), hashes[place].outputs.clone()];
    let mut replay = Replay::new(target, answer.ended.clone(), range, hashes, Millis(0.0)).expect("it is short enough");
    let (mut next, mut conversation) = (replay.next(), 100);
    loop {
        next = match next {
            Next::Ask(to, request) => {
                let from = usize::from(request.range.stage.0);
                assert_eq!(to, peer(from), "rows are shown by their own stage");
                let page = request.range.page(request.page);
                let all = shows(to).unwrap_or_else(|| answer.inputs[from].clone());
                let values = all[page.start as usize * WIDTH..page.end as usize * WIDTH].to_vec();
                let rows = Rows { request, values };
                assert_eq!(replay.shown(peer(9), &rows), None, "only who was asked shows");
                replay.shown(to, &rows).expect("it was asked")
            }
            Next::Compute => {
                let outcome = host.run(&replay.task(ConversationId(conversation)));
                replay.computed(outcome)
            }
            Next::Restart => {
                conversation += 1;
                Next::Compute
            }
            Next::End(verdict) => return verdict,
        }
    }
}

/// The verdicts on all stages.
fn verdicts(answer: &Answer) -> Vec<Verdict> {
    let (range, committed) = commit(answer, |_| None);
    let hashes = agreed(committed);
    (0..STAGES).map(|place| check(answer, range, &hashes, place, &mut Device::default(), |_| None)).collect()
}

#[test]
fn honest_stages_agree_bit_by_bit_whatever_was_asked() {
    for seed in 0..300 {
        let positions = 2 + hash(seed) as usize % 200;
        assert_eq!(verdicts(&answer(seed, positions, |_, _| false, false)), [Verdict::Equal; STAGES], "seed {seed}");
    }
}

#[test]
fn one_wrong_position_convicts_its_stage_and_no_other() {
    for seed in 0..300 {
        let positions = 2 + hash(seed) as usize % 200;
        let (liar, second) = (hash(seed ^ 1) as usize % STAGES, hash(seed ^ 2) as usize % STAGES);
        // The last stage's results of a prompt's middle are not asked for.
        let at = positions / 2 + hash(seed ^ 3) as usize % (positions - positions / 2);
        let found = verdicts(&answer(
            seed,
            positions,
            |place, position| (place == liar || place == second) && position == at,
            false,
        ));
        for (place, verdict) in found.into_iter().enumerate() {
            let expected = if place == liar || place == second { Verdict::Wrong } else { Verdict::Equal };
            assert_eq!(verdict, expected, "seed {seed}: stages {liar} and {second} lie about {at}, stage {place}");
        }
    }
}

#[test]
fn who_commits_to_what_it_did_not_send_is_named_with_its_neighbour_and_nobody_is_convicted() {
    let honest = answer(5, 100, |_, _| false, false);
    let lied = answer(5, 100, |place, at| place == 0 && at == 70, false);
    let (_, committed) = commit(&lied, |place| (place == 0).then(|| honest.outputs[0].clone()));
    assert_eq!(committed.differ, [(peer(0), peer(1))]);
    assert!(committed.hashes[2].is_some(), "the third one is computed again all the same");
}

#[test]
fn who_shows_other_rows_than_it_committed_to_is_not_believed() {
    let answer = answer(5, 100, |_, _| false, false);
    let (range, committed) = commit(&answer, |_| None);
    let hashes = agreed(committed);
    for shown in [Vec::from([0.0; 200]), Vec::from([f32::NAN; 200])] {
        let shows = |from| (from == peer(1)).then(|| shown.clone());
        let verdict = check(&answer, range, &hashes, 1, &mut Device::default(), shows);
        assert_eq!(verdict, Verdict::Withheld(peer(1)));
    }
}

#[test]
fn devices_that_round_otherwise_are_close_and_not_wrong() {
    let found = verdicts(&answer(5, 150, |_, _| false, true));
    assert_eq!(found, [Verdict::Equal, Verdict::Close, Verdict::Equal]);
}

#[test]
fn a_host_that_computes_wrongly_convicts_nobody() {
    for seed in 0..100 {
        let answer = answer(seed, 150, |_, _| false, false);
        let (range, committed) = commit(&answer, |_| None);
        let hashes = agreed(committed);
        let target = Target {
            peer: peer(1),
            is_alike: true,
            is_routed: false,
            blocks: BlockRange::new(1, 2),
            embeds: false,
            next: Some((StageId(2), peer(2))),
            wire: WireType::F32,
            width: WIDTH,
        };
        let range = RowRange { stage: StageId(1), ..range };
        let of = [hashes[1].inputs.clone(), hashes[1].outputs.clone()];
        let mut replay = Replay::new(target, answer.ended.clone(), range, of, Millis(0.0)).expect("short");
        let (mut next, mut pieces, mut host) = (replay.next(), 0, Device::default());
        let wrong = hash(seed) % 5;
        let verdict = loop {
            next = match next {
                Next::Ask(to, request) => {
                    let page = request.range.page(request.page);
                    let rows = &answer.inputs[usize::from(request.range.stage.0)];
                    let values = rows[page.start as usize * WIDTH..page.end as usize * WIDTH].to_vec();
                    replay.shown(to, &Rows { request, values }).expect("asked")
                }
                Next::Compute => {
                    let mut outcome = host.run(&replay.task(ConversationId(1)));
                    if let (Outcome::Hidden(values), true) = (&mut outcome, pieces == wrong) {
                        values[0] += 1.0;
                    }
                    pieces += 1;
                    replay.computed(outcome)
                }
                Next::Restart => Next::Compute,
                Next::End(verdict) => break verdict,
            }
        };
        assert_eq!(verdict, Verdict::Unsteady, "seed {seed}: the wrong piece is number {wrong}");
    }
}

/// Batches that a stage computes until it is found, and how often an honest one was blamed.
fn until_found(room: u64, positions: usize, one_in: f64, under_load: bool, liars: &[usize]) -> (f64, u32) {
    let plan = plan();
    let (mut batches, mut wronged) = (0.0, 0);
    for number in 0u64.. {
        let secret = hash(room ^ 0x5eed);
        let has_load = !under_load || number.is_multiple_of(2);
        let lies = |place: usize, at: usize| {
            has_load && liars.contains(&place) && unit(hash(room) ^ hash(number) ^ hash(at as u64)) < 1.0 / one_in
        };
        batches += positions as f64;
        let range = RowRange {
            epoch: plan.epoch,
            stage: StageId(0),
            conversation: CONVERSATION,
            through: PassId(number),
            positions: 2 * positions as u32,
        };
        if !ledger::is_drawn(secret, 0.02, &range) {
            continue;
        }
        // Only decoded tokens are batches here: half of the positions.
        // Of the answers without a lie, some: that nobody is blamed is tested above as well.
        let has_lie = (positions..2 * positions).any(|at| liars.iter().any(|place| lies(*place, at)));
        if !has_lie && !number.is_multiple_of(16) {
            continue;
        }
        let answer = answer(number, 2 * positions, |place, at| at >= positions && lies(place, at), false);
        let found = verdicts(&answer);
        let is_found = |place: &usize| found[*place] == Verdict::Wrong;
        wronged += (0..STAGES).filter(|place| !liars.contains(place) && is_found(place)).count() as u32;
        if liars.iter().any(is_found) {
            return (batches, wronged);
        }
    }
    (f64::NAN, wronged)
}

/// The law: a share of 2% of the answers is computed again. An answer of `length` batches has a wrong one with the probability
/// `1 - (1 - 1 / one_in) ^ length`, so that many batches pass on average.
fn law(length: f64, one_in: f64) -> f64 {
    length / (0.02 * (1.0 - (1.0 - 1.0 / one_in).powf(length)))
}

/// Prints a row of the table in docs/lab/trust.md; the mean must be near the law, and no honest stage is ever blamed.
fn rooms(count: u64, positions: usize, one_in: f64, under_load: bool, liars: &[usize]) {
    let all: Vec<(f64, u32)> = (0..count).map(|room| until_found(room, positions, one_in, under_load, liars)).collect();
    let mean = all.iter().map(|(batches, _)| batches).sum::<f64>() / count as f64;
    let mut sorted: Vec<f64> = all.iter().map(|(batches, _)| *batches).collect();
    sorted.sort_by(f64::total_cmp);
    let expected = law(positions as f64, one_in) * if under_load { 2.0 } else { 1.0 };
    println!(
        "{count} rooms, {liars:?} lie in 1 of {one_in} batches, under load only: {under_load}, answers of {positions}: mean {mean:.0}, law {expected:.0}, 99% {:.0}",
        sorted[sorted.len() * 99 / 100],
    );
    let wronged: u32 = all.iter().map(|(_, wronged)| wronged).sum();
    assert_eq!(wronged, 0, "honest stages were blamed");
    // The mean of so many geometric numbers is within five of its standard deviations.
    let apart = (mean - expected).abs() / expected;
    assert!(apart < 5.0 / (count as f64).sqrt(), "mean {mean:.0}, law {expected:.0}");
}

#[test]
fn liars_are_found_as_soon_as_the_law_says() {
    rooms(200, 32, 20.0, false, &[1]);
    rooms(100, 128, 1_000.0, false, &[0]);
    rooms(100, 32, 20.0, true, &[2]);
    rooms(100, 32, 20.0, false, &[0, 1]);
}

/// `cargo test -p potluck-swarm --lib ten_thousand_rooms -- --ignored --nocapture`.
#[test]
#[ignore = "takes a minute; what it prints is in docs/lab/trust.md"]
fn ten_thousand_rooms() {
    rooms(10_000, 1, 20.0, false, &[1]);
    rooms(10_000, 32, 20.0, false, &[1]);
    rooms(10_000, 32, 20.0, true, &[1]);
    rooms(10_000, 32, 20.0, false, &[0, 1]);
    rooms(10_000, 1, 1_000.0, false, &[1]);
    rooms(10_000, 32, 1_000.0, false, &[1]);
}

/// The last stage's part of a biased answer is computed again with its bias, and with the sums that were wanted.
#[test]
fn what_was_added_to_the_logits_is_added_again() {
    let honest = answer(1, 12, |_, _| false, false);
    let bias = LogitBias::new([(3, -100.0)]).expect("a bias within its limits");
    let mut ended = EndedAnswer { bias: bias.clone(), ..honest.ended };
    ended.results.values_mut().for_each(|best| best.log_sum_exp = Some(2.0));
    let target = Target {
        peer: peer(0),
        is_alike: true,
        is_routed: false,
        blocks: BlockRange::new(0, 1),
        embeds: true,
        next: None,
        wire: WireType::F32,
        width: WIDTH,
    };
    let (stage, through) = (StageId(0), PassId(1));
    let range = RowRange { epoch: EPOCH, stage, conversation: CONVERSATION, through, positions: 12 };
    let replay = Replay::new(target, ended, range, [Vec::new(), Vec::new()], Millis(0.0)).expect("it is short enough");
    let task = replay.task(CONVERSATION);
    let Task::Forward { batch, then: Then::LmHead(request), biases, .. } = task else { panic!("{task:?}") };
    assert_eq!(biases, BiasedTokens::all(batch.len(), &bias));
    assert_eq!(request.logits, LogitsRequest::TopWithSum(LogitsRequest::MAX_TOP));
}
