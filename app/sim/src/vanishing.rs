//! Rooms of three to five holders with little memory, two of each expert, one of which vanishes in the middle of an answer: with
//! a word of the relay's at once, or without any. What the asker sees of it, and who is asked afterwards.

use std::collections::BTreeMap;

use potluck_plan::{ExpertHolder, PeerId, PlanEpoch};
use potluck_protocol::{AnswerStop, Hedging, Sharing};

use super::device::{LogNormal, SimDevice};
use super::engine::SimModel;
use super::fault::Fault;
use super::network::Link;
use super::oracle::undisturbed;
use super::peer::Answer;
use super::random::Random;
use super::scenario::Run;
use super::world::World;

const TEXT: &str = "how do bees find home?";
/// The first answer teaches what is usual…
const FIRST: u32 = 120;
/// … and in the second one the holder vanishes. Both fit the context.
const SECOND: u32 = 225;
/// It vanishes after so many tokens of the second answer.
const BEFORE: u64 = 40;
const REPLICAS: u8 = 2;
const MODEL: SimModel = SimModel { blocks: 4, experts: 8, kv_bytes: 0, state_bytes: 0 };
/// Everything but experts, and what a device needs besides.
const PINNED: u64 = 10 + 100 + 4 * 105;
/// An expert of each block has 20.
const EXPERTS: u64 = 4 * 8 * 20;
/// A room has formed by then, each expert has its copies again by then, and an answer has ended by then.
const LIMIT_MILLIS: f64 = 120_000.0;
/// A device that says nothing is noticed after five seconds. The answer must last for longer.
const NOTICED_MILLIS: f64 = 6_000.0;
/// Nobody asks the vanished holder after this time.
const REPLACED_MILLIS: f64 = 1_000.0;
/// Another device comes after this time.
const NEWCOMER_MILLIS: f64 = 500.0;
/// The longest gap may be so many times the usual one.
const MAX_TIMES: f64 = 2.0;

/// What is drawn from a seed.
struct Setting {
    holders: u64,
    hedging: Hedging,
    /// How late messages are.
    late: Late,
    /// Nobody closes the connection.
    is_silent: bool,
    /// Another device comes after the loss: a plan in which it takes part is better.
    has_newcomer: bool,
    victim: u64,
}

#[derive(Clone, Copy, Debug)]
enum Late {
    Near,
    /// Each message by so many milliseconds.
    Far(f64),
    /// Each answer by another time.
    Answers(LogNormal),
}

impl Setting {
    fn draw(seed: u64, random: &mut Random) -> Self {
        let late = match seed / 3 % 3 {
            0 => Late::Near,
            1 => Late::Far(2.0 + 10.0 * random.unit()),
            _ => Late::Answers(LogNormal { median: 5.0, sigma: 0.5 }),
        };
        Self {
            holders: 3 + random.below(3),
            hedging: [Hedging::Off, Hedging::Adaptive, Hedging::Copies(2)][(seed % 3) as usize],
            late,
            is_silent: (seed / 9).is_multiple_of(2),
            has_newcomer: !(seed / 18).is_multiple_of(2),
            victim: random.below(60),
        }
    }

    fn device(&self, budget: u64) -> SimDevice {
        let device = SimDevice { noise: 0.05, ..SimDevice::with_budget(budget).at_speed(0.5) };
        let near = device.behind(Link { latency: 1.5, jitter: 0.2, ..Link::default() });
        match self.late {
            Late::Near => near,
            Late::Far(latency) => device.behind(Link { latency, jitter: 0.1 * latency, ..Link::default() }),
            Late::Answers(hesitation) if budget != PINNED => SimDevice { hesitation: Some(hesitation), ..near },
            Late::Answers(_) => near,
        }
    }

    /// Without one of them, the others can hold each expert twice, and three more.
    fn holder(&self) -> SimDevice {
        self.device(10 + 60 + (u64::from(REPLICAS) * EXPERTS).div_ceil(self.holders - 1))
    }
}

pub(crate) fn vanishing_holder(seed: u64) -> Run {
    let mut random = Random(seed ^ 0x7a6e);
    let setting = Setting::draw(seed, &mut random);
    let Setting { holders, hedging, late, is_silent, has_newcomer, .. } = setting;
    let mut world = World::new(seed, MODEL, Sharing::Experts, setting.device(PINNED));
    world.pool_experts(REPLICAS, hedging);
    (0..holders).for_each(|holder| _ = world.add(setting.holder(), 10.0 * holder as f64));
    let how = if is_silent { "silently" } else { "with a word" };
    let then = if has_newcomer { ", and another device comes" } else { "" };
    let mut event_log = vec![format!("{holders} holders, {hedging:?}, {late:?}, {how}{then}")];
    let outcome = vanish(&mut world, &setting, &mut event_log);
    let failure = world.violation().map(str::to_owned).or(outcome.err());
    Run::new(seed, &world, event_log, failure)
}

fn vanish(world: &mut World, setting: &Setting, log: &mut Vec<String>) -> Result<(), String> {
    let Setting { holders, is_silent, .. } = *setting;
    let has_formed =
        |world: &World| world.fewest_holders() >= REPLICAS.into() && lending(world).len() as u64 == holders;
    world.run(LIMIT_MILLIS, has_formed);
    if !has_formed(world) {
        return Err(format!("the room has not formed: {} of {holders} hold experts", lending(world).len()));
    }
    world.run(world.now() + 5_000.0, |_| false);
    let first = answered(world, 1, FIRST)?;
    let usual = Gaps::of(&first)?;
    world.run(world.now() + 1_000.0, |_| false);
    let Some(epoch) = epoch(world) else { return Err("the room is not up before the second question".to_owned()) };
    let lending = lending(world);
    let victim = lending[setting.victim as usize % lending.len()];
    let begin = world.now();
    world.prompt(0, 2, TEXT, SECOND, begin);
    let has_tokens = |world: &World| world.answer(0, 2).is_some_and(|answer| answer.tokens.len() as u64 >= BEFORE);
    world.run(begin + LIMIT_MILLIS, has_tokens);
    if !has_tokens(world) {
        return Err("the second answer did not get to the middle".to_owned());
    }
    // At any moment of a token.
    let vanishes = world.now() + usual.median * (victim as f64 * 0.37 + begin).fract();
    world.fault(if is_silent { Fault::Vanish(victim) } else { Fault::Kill(victim) }, vanishes);
    if setting.has_newcomer {
        world.add(setting.holder(), vanishes + NEWCOMER_MILLIS);
    }
    let second = answered(world, 2, SECOND)?;
    let gaps = Gaps::of(&second)?;
    let times = gaps.longest / usual.median;
    log.push(format!(
        "usual gap {:.1} ms (95th percentile {:.1}, longest {:.1}), longest of the second answer {:.1}: {times:.2} times",
        usual.median, usual.slow, usual.longest, gaps.longest
    ));
    let asked = world.last_called(victim) - vanishes;
    log.push(format!("device {victim} vanishes at {vanishes:.0} ms and is asked last {asked:.0} ms later"));
    let lasts = world.now() - vanishes;
    if is_silent && lasts < NOTICED_MILLIS {
        return Err(format!("the answer ends {lasts:.0} ms later, before anybody could have noticed"));
    }
    if asked > REPLACED_MILLIS {
        return Err(format!("the vanished holder is asked for {asked:.0} ms"));
    }
    if times > MAX_TIMES {
        let at = second.times.iter().zip(&second.times[1..]).map(|(a, b)| (b - a, a - vanishes));
        let at = at.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(0.0, |(_, at)| at);
        return Err(format!("the longest gap is {times:.2} times the usual one, {at:.0} ms after the loss"));
    }
    if self::epoch(world) != Some(epoch) {
        return Err("another plan took over in mid-answer".to_owned());
    }
    world.run(world.now() + LIMIT_MILLIS, |world| {
        world.fewest_holders() >= REPLICAS.into() && !self::lending(world).contains(&victim)
    });
    if self::lending(world).contains(&victim) {
        return Err("the vanished holder still counts as one".to_owned());
    }
    if world.fewest_holders() >= REPLICAS.into() {
        Ok(())
    } else {
        Err(format!("not each expert has {REPLICAS} holders again; held by each device: {:?}", held(world)))
    }
}

/// Asks, unless that was done, and waits for the end of the answer, which must be the undisturbed one.
fn answered(world: &mut World, request: u32, tokens: u32) -> Result<Answer, String> {
    if world.answer(0, request).is_none() {
        world.prompt(0, request, TEXT, tokens, world.now());
    }
    let ended = |world: &World| world.answer(0, request).is_some_and(|answer| answer.end.is_some());
    world.run(world.now() + LIMIT_MILLIS, ended);
    let prompt: Vec<u32> = TEXT.bytes().map(u32::from).collect();
    let expected = undisturbed(&MODEL, &prompt, tokens as usize);
    match world.answer(0, request) {
        None => Err(format!("answer {request} never came")),
        Some(answer) => match &answer.end {
            Some(AnswerStop::Length) if answer.tokens == expected => Ok(answer.clone()),
            Some(AnswerStop::Length) => Err(format!("answer {request} is another one: {:?}", answer.tokens)),
            Some(other) => Err(format!("answer {request} ended with {other:?}: {:?}", answer.sentences)),
            None => Err(format!("answer {request} has not ended after {} tokens", answer.tokens.len())),
        },
    }
}

/// Milliseconds between two pieces of an answer.
struct Gaps {
    median: f64,
    /// The 95th percentile.
    slow: f64,
    longest: f64,
}

impl Gaps {
    /// Tokens that come together are one piece.
    fn of(answer: &Answer) -> Result<Self, String> {
        let mut gaps: Vec<f64> =
            answer.times.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0.0).collect();
        gaps.sort_by(f64::total_cmp);
        match gaps.last() {
            None => Err(format!("an answer of {} tokens came in one piece: it has no gaps", answer.tokens.len())),
            Some(longest) => {
                Ok(Self { median: gaps[gaps.len() / 2], slow: gaps[gaps.len() * 95 / 100], longest: *longest })
            }
        }
    }
}

fn epoch(world: &World) -> Option<PlanEpoch> {
    world.plan_up().map(|plan| plan.epoch)
}

/// How many experts each device holds for others, by index.
fn held(world: &World) -> BTreeMap<usize, usize> {
    let mut held = BTreeMap::new();
    let plan = world.plan_up();
    for holder in plan.iter().flat_map(|plan| plan.pooled()).flat_map(|(.., holders)| holders) {
        if let ExpertHolder::Peer(PeerId(id)) = holder {
            *held.entry(usize::from(id[0]) - 1).or_default() += 1;
        }
    }
    held
}

/// Devices that hold experts for others, by index.
fn lending(world: &World) -> Vec<usize> {
    let Some(plan) = world.plan_up() else { return Vec::new() };
    let holders = plan.peers().into_iter().filter(|peer| !plan.has_stage(*peer));
    holders.map(|PeerId(id)| usize::from(id[0]) - 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(times: &[f64]) -> Answer {
        Answer { tokens: vec![7; times.len()], times: times.to_vec(), ..Answer::default() }
    }

    #[test]
    fn an_answer_of_fewer_than_two_pieces_is_a_failure_and_no_panic() {
        for times in [&[][..], &[5.0], &[5.0, 5.0, 5.0]] {
            assert!(Gaps::of(&answer(times)).is_err(), "{times:?}");
        }
        let gaps = Gaps::of(&answer(&[0.0, 10.0, 10.0, 22.0, 29.0])).ok().map(|gaps| (gaps.median, gaps.longest));
        assert_eq!(gaps, Some((10.0, 12.0)));
    }

    #[test]
    fn an_answer_that_never_comes_is_a_failure() {
        let mut world = World::new(1, MODEL, Sharing::Experts, SimDevice::with_budget(PINNED));
        let failure = answered(&mut world, 2, SECOND).err();
        assert_eq!(failure.as_deref(), Some("answer 2 has not ended after 0 tokens"), "nobody holds the experts");
    }
}
