//! Random rooms: devices, links, faults, forged frames and questions are drawn from a seed. Whatever happens, every
//! answer must end and be the undisturbed one, and no honest device may be blamed or put out.

use potluck_plan::Ends;
use potluck_protocol::{AnswerStop, DeputyChoice, Sharing};

use super::device::SimDevice;
use super::engine::SimModel;
use super::fault::Fault;
use super::network::Link;
use super::oracle::{undisturbed, undisturbed_follow_up};
use super::peer::device as device_of;
use super::random::Random;
use super::scenario::Run;
use super::world::World;

/// An answer that has not ended by then hangs. Every fault is over after a third of it.
const LIMIT_MILLIS: f64 = 600_000.0;
const LAST_FAULT_MILLIS: f64 = 60_000.0;
/// The whole dense model takes 1,070 bytes with overhead: any two of these devices hold it.
const BUDGET: u64 = 620;

/// What the log of a room says at its end if the host has found out who lies about passes.
pub const LIAR_NAMED: &str = "the device that lies about passes was named";

/// What the log of a room says at its end if a deputy has taken over.
pub const DEPUTY_HOSTS: &str = "a deputy hosts the room";

/// A question, and what its answer may be.
struct Question {
    asker: usize,
    request: u32,
    /// More than one: a follow-up is computed by other kernels where its conversation's KV cache was still there.
    allowed: Vec<Vec<u32>>,
}

/// One room drawn from a seed.
pub(crate) fn churn(seed: u64) -> Run {
    room(seed, Ends::Anywhere, Extra::Nothing)
}

/// The same, with both ends of the model on the host.
pub(crate) fn words_kept(seed: u64) -> Run {
    room(seed, Ends::OnHost, Extra::Nothing)
}

/// The same, with one more device, which lies about passes wherever it has a stage.
pub(crate) fn false_passes(seed: u64) -> Run {
    let ends = if seed.is_multiple_of(2) { Ends::Anywhere } else { Ends::OnHost };
    room(seed, ends, Extra::Liar)
}

/// The same, with a host that has a deputy and is lost, for a while or for good.
pub(crate) fn deputies(seed: u64) -> Run {
    room(seed, Ends::Anywhere, Extra::Deputy)
}

/// What else is in a room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extra {
    Nothing,
    /// A device that lies about passes.
    Liar,
    /// The host has a deputy, and is lost.
    Deputy,
}

fn room(seed: u64, ends: Ends, extra: Extra) -> Run {
    let lies = extra == Extra::Liar;
    let mut random = Random(seed);
    // Every fourth room has a model with recurrent state.
    let state_bytes = u64::from(seed % 4 == 3);
    let model = if random.below(3) == 0 {
        SimModel { blocks: 4, experts: 6, kv_bytes: 0, state_bytes }
    } else {
        SimModel { blocks: 6, experts: 0, kv_bytes: 0, state_bytes }
    };
    let share = if random.below(2) == 0 && !lies { Sharing::Fastest } else { Sharing::Everyone };
    let mut world = World::new(seed, model.clone(), share, device(&mut random, BUDGET));
    if ends == Ends::OnHost {
        world.keep_ends();
    }
    let workers = 2 + random.below(3) as usize;
    for _ in 0..workers {
        let device = device(&mut random, BUDGET);
        let at = if random.below(3) == 0 { 20_000.0 * random.unit() } else { 3_000.0 * random.unit() };
        world.add(device, at);
    }
    let mut event_log = vec![format!("{model:?}, {share:?}, {workers} devices besides the host")];
    let questions = questions(&mut world, &model, &mut random, &mut event_log);
    let mut faults = faults(workers, &questions, &mut random);
    if extra == Extra::Deputy {
        lose_host(&mut world, &mut faults, &mut random);
    }
    for fault in faults {
        event_log.push(format!("{:7.0} ms {:?}", fault.0, fault.1));
        world.fault(fault.1, fault.0);
    }
    // A deputy may say what it likes, so nobody who forges may become one.
    if world.deputy != DeputyChoice::Anyone {
        forgers(&mut world, &mut random, &mut event_log);
    }
    let liar = lies.then(|| liar(&mut world, &mut random, &mut event_log));
    if extra != Extra::Nothing {
        // Eleven devices fill the slowest lines with what they say of themselves, and then any token takes a minute.
        for link in world.peers.iter_mut().map(|peer| &mut peer.device.link) {
            (link.up, link.down) = (f64::INFINITY, f64::INFINITY);
        }
    }
    let ended = |world: &World| {
        questions
            .iter()
            .all(|question| world.answer(question.asker, question.request).is_some_and(|answer| answer.end.is_some()))
    };
    world.run(LIMIT_MILLIS, ended);
    let wrong = || questions.iter().find_map(|question| judge(&world, question));
    if liar.is_some_and(|liar| world.has_blamed(liar)) {
        event_log.push(LIAR_NAMED.to_owned());
    }
    if world.taken_over() > 0 {
        event_log.push(DEPUTY_HOSTS.to_owned());
    }
    let failure = world.violation().map(str::to_owned).or_else(|| world.is_wronged()).or_else(wrong);
    Run::new(seed, &world, event_log, failure)
}

fn device(random: &mut Random, budget: u64) -> SimDevice {
    let link = Link {
        latency: [0.0, 2.0, 10.0, 50.0][random.below(4) as usize],
        jitter: 20.0 * random.unit(),
        wake: 0.0,
        loss: [0.0, 0.0, 0.002, 0.02][random.below(4) as usize],
        up: [f64::INFINITY, 1e6, 2e4][random.below(3) as usize],
        down: [f64::INFINITY, 1e6, 5e4][random.below(3) as usize],
    };
    let speed = [1.0, 0.5, 0.25][random.below(3) as usize];
    let boast = if random.below(10) == 0 { 4.0 } else { 1.0 };
    SimDevice { noise: 0.2, boast, link, ..SimDevice::with_budget(budget) }.at_speed(speed)
}

/// Two askers: one asks twice in one conversation, the other in two.
fn questions(world: &mut World, model: &SimModel, random: &mut Random, event_log: &mut Vec<String>) -> Vec<Question> {
    let mut questions = Vec::new();
    for asker in 0..2u32 {
        let guest = SimDevice { budget: None, ..device(random, 0) };
        let index = world.add(guest, 100.0 * f64::from(asker));
        let text = words(random, 20, 60);
        let tokens = 8 + random.below(16) as u32;
        let first = undisturbed(model, &prompt(&text), tokens as usize);
        let at = 1_000.0 + 8_000.0 * random.unit();
        let later = at + 5_000.0 + 30_000.0 * random.unit();
        world.ask(index, 1, "a", &text, tokens, at);
        event_log.push(format!("{at:7.0} ms device {index} asks for {tokens} tokens after {}", text.len()));
        let again = words(random, 10, 20);
        let second = match asker {
            0 => {
                let whole = format!("{text}{}{again}", as_text(&first));
                world.ask(index, 2, "a", &whole, tokens, later);
                let kept = undisturbed_follow_up(model, &prompt(&text), &first, &prompt(&again), tokens as usize);
                vec![kept, undisturbed(model, &prompt(&whole), tokens as usize)]
            }
            _ => {
                world.ask(index, 2, "b", &again, tokens, later);
                vec![undisturbed(model, &prompt(&again), tokens as usize)]
            }
        };
        event_log.push(format!("{later:7.0} ms device {index} asks again"));
        questions.push(Question { asker: index, request: 1, allowed: vec![first] });
        questions.push(Question { asker: index, request: 2, allowed: second });
    }
    questions
}

/// Up to six faults; a device that goes for good leaves at least one worker that stays.
fn faults(workers: usize, questions: &[Question], random: &mut Random) -> Vec<(f64, Fault)> {
    let mut faults = Vec::new();
    let askers: Vec<usize> = questions.iter().map(|question| question.asker).collect();
    let stays = 1 + random.below(workers as u64) as usize;
    for _ in 0..1 + random.below(6) {
        let at = 500.0 + (LAST_FAULT_MILLIS - 500.0) * random.unit() * random.unit();
        let long = 50.0 + 30_000.0 * random.unit() * random.unit();
        let worker = 1 + random.below(workers as u64) as usize;
        let anyone = match random.below(4) {
            0 => 0,
            1 => askers[random.below(askers.len() as u64) as usize],
            _ => worker,
        };
        let fault = match random.below(12) {
            0 if worker != stays => Fault::Kill(worker),
            1 if worker != stays => Fault::Leave(worker),
            0..=2 => Fault::Reload(worker, long),
            3 => Fault::Outage(anyone, long),
            4 => Fault::RelayRestart(long / 4.0),
            5 => Fault::DeviceLost(worker),
            6 => Fault::Freeze(anyone, long),
            7 => Fault::Cut(anyone, long),
            8 => Fault::Slow(worker, 1.0 + 7.0 * random.unit()),
            9 => Fault::Sharing(Sharing::Everyone),
            10 => Fault::Sharing(Sharing::Fastest),
            _ => {
                faults.push((at + long, Fault::ContributeAgain(worker)));
                Fault::StopContributing(worker)
            }
        };
        faults.push((at, fault));
    }
    faults.sort_by(|a, b| a.0.total_cmp(&b.0));
    faults
}

/// The host chooses a deputy and is lost a little later. Two more devices come and stay, so that the others hold the model. A room that
/// loses host and deputy at once is over, so while the host is lost for good no other device is lost.
fn lose_host(world: &mut World, faults: &mut Vec<(f64, Fault)>, random: &mut Random) {
    let [stays, _] = [0, 1].map(|_| {
        let device = device(random, BUDGET);
        world.add(device, 3_000.0 * random.unit())
    });
    let chosen = device_of(world.peers[stays].id);
    world.choose_deputy(if random.below(2) == 0 { DeputyChoice::Anyone } else { DeputyChoice::Device(chosen) });
    let (at, long) = (8_000.0 + 30_000.0 * random.unit(), 500.0 + 40_000.0 * random.unit() * random.unit());
    let (fault, is_final) = match random.below(7) {
        0 | 1 => (Fault::Kill(0), true),
        2 => (Fault::Vanish(0), true),
        3 => (Fault::Freeze(0, long), false),
        4 => (Fault::Cut(0, long), false),
        5 => (Fault::Outage(0, long), false),
        // One that is back sooner than its deputy takes over has forgotten its answers, as without a deputy.
        _ => (Fault::Reload(0, 8_000.0 + long), false),
    };
    const APART_MILLIS: f64 = 25_000.0;
    let is_loss = |fault: &Fault| {
        use Fault::{Cut, Freeze, Kill, KillHost, Leave, Outage, RelayRestart, Reload};
        matches!(
            fault,
            Kill(_) | KillHost | Leave(_) | Reload(..) | Outage(..) | Cut(..) | Freeze(..) | RelayRestart(_)
        )
    };
    faults.retain(|(other, fault)| !is_final || !is_loss(fault) || (other - at).abs() > APART_MILLIS + 30_000.0);
    if is_final && world.deputy == DeputyChoice::Anyone && random.below(2) == 0 {
        // So is the deputy, once it has one of its own.
        faults.push((at + APART_MILLIS, Fault::KillHost));
    }
    faults.push((at, fault));
    faults.sort_by(|a, b| a.0.total_cmp(&b.0));
}

/// A stranger, a guest and often one more worker send what they should not, from time to time. The room has enough
/// devices without them.
fn forgers(world: &mut World, random: &mut Random, event_log: &mut Vec<String>) {
    let (stranger, guest) = (SimDevice { invited: false, budget: None, ..device(random, 0) }, device(random, 0));
    let mut devices = vec![stranger, SimDevice { budget: None, ..guest }];
    if random.below(2) == 0 {
        devices.push(device(random, BUDGET));
    }
    for device in devices {
        let index = world.add(device, 2_000.0 * random.unit());
        world.forges(index);
        let (at, bursts) = (3_000.0 + 20_000.0 * random.unit(), 20 + random.below(80) as u32);
        world.fault(Fault::Forge(index, bursts), at);
        event_log.push(format!("{at:7.0} ms device {index} begins to forge {bursts} bursts"));
    }
}

/// A device that lies about passes. Returns its index.
fn liar(world: &mut World, random: &mut Random, event_log: &mut Vec<String>) -> usize {
    let device = device(random, BUDGET);
    let (at, one_in) = (3_000.0 * random.unit(), 1 + random.below(20));
    let index = world.add(device, at);
    world.lies_about_passes(index, one_in);
    event_log.push(format!("{at:7.0} ms device {index} enters, which lies about passes in one of {one_in} chunks"));
    index
}

fn judge(world: &World, question: &Question) -> Option<String> {
    let name = format!("question {} of device {}", question.request, question.asker);
    let answer = world.answer(question.asker, question.request)?;
    match &answer.end {
        None => {
            Some(format!("{name} hangs: {} tokens came, then nothing until {:.0} ms", answer.tokens.len(), world.now()))
        }
        Some(AnswerStop::Length) if question.allowed.contains(&answer.tokens) => None,
        Some(AnswerStop::Length) => {
            let same = |allowed: &Vec<u32>| allowed.iter().zip(&answer.tokens).take_while(|(a, b)| a == b).count();
            let right = question.allowed.iter().map(same).max().unwrap_or(0);
            Some(format!("{name}: wrong token {right}: {:?} is none of {:?}", answer.tokens, question.allowed))
        }
        Some(stop) => Some(format!("{name} is lost: {stop:?} after {} tokens", answer.tokens.len())),
    }
}

/// Letters: at least `min`, and fewer than `further` more.
fn words(random: &mut Random, min: u64, further: u64) -> String {
    let len = min + random.below(further);
    (0..len).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
}

fn prompt(text: &str) -> Vec<u32> {
    text.bytes().map(u32::from).collect()
}

/// The text of an answer: every token of the simulated model is a character.
fn as_text(tokens: &[u32]) -> String {
    tokens.iter().filter_map(|token| char::from_u32(*token)).collect()
}
