//! Experts on other devices, over a real relay and a real GPU adapter: the same bits as one device, whoever answers.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use common::*;
use potluck_gguf::synthetic::Synthetic;
use potluck_node::platform::LocalFile;
use potluck_panel::{AnswerPart, HostChoice, ModelSource, PromptRequest, Sampling, Sharing, Status, ToNode, ToPage};
use potluck_plan::{Bytes, Hedging, Pooling, WireType};
use potluck_terminal::Session;

const TEXT: &str = "Once upon a time";

fn model() -> Synthetic {
    Synthetic { blocks: 3, experts: 16, seed: 3, ..Synthetic::default() }
}

/// The plan is up, and this many devices or more hold experts for a stage.
fn has_holders(status: &Status, devices: usize) -> bool {
    let plan = status.plan.as_ref().filter(|plan| plan.state == potluck_panel::PlanStatus::Up);
    plan.is_some_and(|plan| {
        let holders = plan.stages.iter().flat_map(|stage| &stage.expert_holders);
        holders.map(|holding| holding.peer).collect::<std::collections::BTreeSet<_>>().len() >= devices
    })
}

/// Every expert has as many holders as the host wants, or as there are devices.
fn has_copies(status: &Status) -> bool {
    let experts = status.plan.as_ref().and_then(|plan| plan.experts.as_ref());
    experts.is_some_and(|experts| experts.short == 0)
}

/// The page knows how holders answer, and what the host and at least one of them have computed.
fn is_measured(status: &Status) -> bool {
    let experts = status.plan.as_ref().and_then(|plan| plan.experts.as_ref());
    let has_worked = |work: potluck_panel::Work| work.tokens > 0 && work.gpu_millis > 0.0;
    let worked = status.credits.iter().filter(|credit| has_worked(credit.work)).count();
    experts.is_some_and(|experts| experts.round_trip_ms > 0.0) && worked >= 2
}

fn sampled(request: u32, max_tokens: u32) -> PromptRequest {
    PromptRequest {
        sampling: Sampling { temperature: 0.9, ..Sampling::default() },
        ..question(request, TEXT, max_tokens)
    }
}

/// What a phone lends, in bytes.
const SMALL: u64 = 300_000_000;

/// What a host chooses, and the files that it has for that.
type Hosted = (HostChoice, Vec<Rc<dyn LocalFile>>);

/// The relay's model, whose experts are spread.
fn of_relay() -> Hosted {
    let source = ModelSource::Relay { name: "model".into() };
    (HostChoice { sharing: Sharing::Experts, ..choice(source, 4_000_000_000) }, Vec::new())
}

/// The same with a file on the host's disk, which it protects: others get experts only, so the stage stays at the host whatever
/// is measured.
fn protected(path: &Path) -> Hosted {
    let files = potluck_node::native::open_model_files(path).unwrap();
    let source = ModelSource::File { name: files[0].name(), bytes: Bytes(files[0].len()) };
    let (choice, _) = of_relay();
    (HostChoice { model: source, protect: true, ..choice }, files)
}

/// A room with a stage on one device, mostly the host, and experts on these many others.
async fn spread(relay: &RunningRelay, hosted: Hosted, holders: usize, wire: WireType) -> (Session, Vec<Session>) {
    let (mut host, joiners, _) = spread_as(relay, hosted, holders, Pooling { wire, ..Pooling::default() }).await;
    until(&mut host, "experts on all other devices", |status| has_holders(status, holders)).await;
    (host, joiners)
}

/// The same with the room's link, and experts spread in this way. Some of the others may be spares.
async fn spread_as(
    relay: &RunningRelay,
    (choice, files): Hosted,
    holders: usize,
    pooling: Pooling,
) -> (Session, Vec<Session>, String) {
    let mut host = Session::start(setup("host", &relay.origin, &folder("cache")));
    let link = host_as(&mut host, &relay.origin, HostChoice { pooling, ..choice }, files).await;
    let mut joiners: Vec<Session> = (0..holders).map(|_| peer("joiner", &relay.origin, folder("cache"))).collect();
    joiners.iter().for_each(|joiner| join_room(joiner, &link, Some(SMALL)));
    until(&mut host, "experts on other devices", |status| has_holders(status, 1)).await;
    for joiner in &mut joiners {
        until(joiner, "a joiner's own id", |status| status.peer.is_some()).await;
    }
    (host, joiners, link)
}

/// An answer in whose middle a device vanished.
struct Vanished {
    tokens: Vec<u32>,
    recoveries: Vec<String>,
    /// From then on until nobody is asked for the device's experts any more.
    replaced: Duration,
    /// Between two tokens.
    longest: Duration,
    median: Duration,
    /// For closing the device's GPU, which is not part of them.
    closing: Duration,
}

/// `after`: tokens before the device vanishes.
async fn answer_while_one_vanishes(
    host: &mut Session,
    prompt: PromptRequest,
    victim: &Session,
    after: usize,
) -> Vanished {
    host.page(ToNode::Prompt(prompt));
    let (mut tokens, mut recoveries, mut gaps, mut last) = (Vec::new(), Vec::new(), Vec::new(), None);
    let (mut vanished, mut replaced, mut has_ended, mut closing) = (None, None, false, Duration::ZERO);
    while !has_ended || replaced.is_none() {
        match host.next().await.unwrap() {
            ToPage::Answer { event: AnswerPart::Text { tokens: new, .. }, .. } => {
                tokens.extend(new);
                let now = Instant::now();
                gaps.extend(last.replace(now).map(|last| now - last));
                if tokens.len() >= after && vanished.is_none() {
                    victim.kill();
                    vanished = Some(now);
                    // All devices of this test share a thread. While the victim's GPU is closed on it, nobody can answer.
                    tokio::task::yield_now().await;
                    closing = now.elapsed();
                    last = Some(Instant::now());
                }
            }
            ToPage::Answer { event: AnswerPart::Recovering(why), .. } => recoveries.push(why),
            ToPage::Answer { event: AnswerPart::End { .. }, .. } => has_ended = true,
            ToPage::Status(status) => {
                let stages = status.plan.iter().flat_map(|plan| &plan.stages);
                let mut holders = stages.flat_map(|stage| &stage.expert_holders);
                let is_asked = holders.any(|holding| Some(holding.peer) == victim.status.peer);
                replaced = replaced.or(vanished.filter(|_| !is_asked).map(|vanished| vanished.elapsed()));
            }
            _ => {}
        }
    }
    gaps.sort();
    let (longest, median) = (*gaps.last().unwrap(), gaps[gaps.len() / 2]);
    Vanished { tokens, recoveries, replaced: replaced.unwrap(), longest, median, closing }
}

#[test]
fn spread_experts_answer_bit_for_bit_like_one_device() {
    test(async {
        let models = folder("models");
        let path = write(&model(), &models, "model");
        let greedy = alone(&path, TEXT, 16).await;
        let relay = relay(&models, 0).await;
        for holders in [2, 4] {
            let (mut host, joiners) = spread(&relay, of_relay(), holders, WireType::F32).await;
            assert_eq!(answer(&mut host, question(1, TEXT, 16), |_| {}).await, greedy, "{holders} holders");
            until(&mut host, "calls are measured and counted", is_measured).await;
            drop((host, joiners));
        }
        let mut halved = Vec::new();
        for holders in [2, 3] {
            let (mut host, joiners) = spread(&relay, of_relay(), holders, WireType::F16).await;
            halved.push(answer(&mut host, question(1, TEXT, 16), |_| {}).await);
            drop((host, joiners));
        }
        assert_eq!(halved[0], halved[1], "rounded alike, whoever computes");
        relay.stop().await;
    });
}

#[test]
fn holders_that_vanish_change_no_token_and_stop_no_answer() {
    test(async {
        let models = folder("models");
        let path = write(&model(), &models, "model");
        let mut lone = open_alone(potluck_node::native::open_model_files(&path).unwrap(), 4_000_000_000);
        until(&mut lone, "alone", |status| is_up(status, 1)).await;
        let greedy = answer(&mut lone, question(1, TEXT, 40), |_| {}).await;
        let by_chance = answer(&mut lone, sampled(2, 40), |_| {}).await;
        drop(lone);
        let relay = relay(&models, 0).await;
        // A better plan may come in mid-answer, most of all on a busy machine. If the stage could move, it might by then lie on
        // the device that vanishes, and no room can spare a stage.
        let (mut host, mut joiners) = spread(&relay, protected(&path), 3, WireType::F32).await;
        for (prompt, expected) in [(question(1, TEXT, 40), greedy), (sampled(2, 40), by_chance)] {
            let holders = joiners.len();
            let is_ready = |status: &Status| has_copies(status) && has_holders(status, holders);
            until(&mut host, "copies of all experts, and some on each device", is_ready).await;
            let victim = joiners.pop().unwrap();
            let Vanished { tokens, recoveries, replaced, longest, median, closing } =
                answer_while_one_vanishes(&mut host, prompt, &victim, 10).await;
            println!(
                "replaced after {replaced:?}, longest pause {longest:?}, usually {median:?}; {closing:?} to close a GPU"
            );
            assert_eq!(tokens, expected, "with {} holders left", joiners.len());
            assert_eq!(recoveries, [""; 0], "with {} holders left nobody waits for another plan", joiners.len());
        }
        drop((host, joiners));
        relay.stop().await;
    });
}

/// Kills one of the holders every few tokens, and lets another device join in its place.
struct Churn<'a> {
    origin: &'a str,
    link: &'a str,
    joiners: Vec<Session>,
    /// At so many tokens of the present answer the next one is killed.
    due: usize,
    kills: usize,
}

impl Churn<'_> {
    /// Tokens between two kills: about two seconds.
    const TOKENS: usize = 40;

    fn answer_begins(&mut self) {
        self.due = Self::TOKENS;
    }

    fn written(&mut self, tokens: usize) {
        if tokens < self.due {
            return;
        }
        self.joiners.remove(0).kill();
        let joiner = peer("joiner", self.origin, folder("cache"));
        join_room(&joiner, self.link, Some(SMALL));
        self.joiners.push(joiner);
        (self.due, self.kills) = (self.due + Self::TOKENS, self.kills + 1);
    }
}

#[test]
#[ignore = "minutes: two to eight holders, with one and two copies, asked alone and at once"]
fn holders_that_die_every_forty_tokens_change_no_token() {
    test_within(Duration::from_secs(3600), async {
        let models = folder("models");
        let path = write(&model(), &models, "model");
        let prompts = || [question(1, TEXT, 100), sampled(2, 100)];
        let mut lone = open_alone(potluck_node::native::open_model_files(&path).unwrap(), 4_000_000_000);
        until(&mut lone, "alone", |status| is_up(status, 1)).await;
        let mut expected = Vec::new();
        for prompt in prompts() {
            expected.push(answer(&mut lone, prompt, |_| {}).await);
        }
        drop(lone);
        let relay = relay(&models, 0).await;
        for holders in [2, 4, 8] {
            for (replicas, copies) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
                let pooling = Pooling { replicas, hedging: Hedging::Copies(copies), ..Pooling::default() };
                let (mut host, joiners, link) = spread_as(&relay, of_relay(), holders, pooling).await;
                let mut churn = Churn { origin: &relay.origin, link: &link, joiners, due: 0, kills: 0 };
                let mut waits = 0;
                while churn.kills < 4 {
                    for (prompt, expected) in prompts().into_iter().zip(&expected) {
                        churn.answer_begins();
                        let (tokens, recoveries) =
                            answer_and_recoveries(&mut host, prompt, |tokens| churn.written(tokens)).await;
                        assert_eq!(tokens, *expected, "{holders} holders, r = {replicas}, h = {copies}");
                        waits += recoveries.len();
                    }
                }
                println!(
                    "{holders} holders, r = {replicas}, h = {copies}: {} killed, {waits} other plans",
                    churn.kills
                );
            }
        }
        relay.stop().await;
    });
}
