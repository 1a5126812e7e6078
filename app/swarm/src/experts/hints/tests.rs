//! What is hinted, to whom, and when.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_plan::{BlockRange, HolderPool, Stage, StageId};

use super::*;
use crate::examples;

const HOLDER: PeerId = PeerId([2; 16]);

pub(super) const TEXT: ConversationId = ConversationId(1);

/// A stage with this many blocks, whose experts all lie in the slots of one holder.
pub(super) fn plan(blocks: u16) -> Plan {
    let mut stage = Stage::new(StageId(0), PeerId([1; 16]), BlockRange::new(0, blocks));
    let remote = |block| RemoteExperts { block: BlockIndex(block), holders: vec![vec![ExpertHolder::Peer(HOLDER)]; 8] };
    stage.remote = (0..blocks).map(remote).collect();
    Plan { pools: vec![HolderPool { peer: HOLDER, slots: 4 }], ..examples::plan(vec![stage]) }
}

pub(super) fn chose(expert: u16) -> [ExpertRoute; 1] {
    [ExpertRoute { experts: vec![(ExpertId(expert), 1.0)] }]
}

/// A decoded batch in this block.
pub(super) fn decoded<'a>(
    block: u16,
    rows: &'a [(ConversationId, Position)],
    routes: &'a [ExpertRoute],
) -> RoutedBatch<'a> {
    RoutedBatch { block: BlockIndex(block), class: KernelClass::Decode, rows, routes }
}

/// Tokens that always use the same experts, which take less time after a hint if `helps`. What each hinted.
fn hints(tokens: u32, helps: bool) -> Vec<Hinted> {
    let (plan, options) = (plan(2), HintOptions::default());
    let (mut hints, mut all, mut now) = (Hints::default(), Vec::new(), 0.0);
    let mut was_hinted = false;
    for position in 0..tokens {
        let mut of_token = Vec::new();
        for (block, expert) in [(0, 3), (1, 5)] {
            let (row, routes) = ([(TEXT, Position(position))], chose(expert));
            let hinted = hints.routed(&plan, &options, decoded(block, &row, &routes), Millis(now));
            now += if was_hinted == helps { 5.0 } else { 10.0 };
            of_token.extend(hinted);
        }
        was_hinted = !of_token.is_empty();
        all.push(of_token);
    }
    all
}

#[test]
fn what_followed_before_is_hinted_to_its_holder_while_it_helps() {
    let all = hints(600, true);
    assert!(all[..48].iter().all(Vec::is_empty), "at first it is seen what tokens take");
    let expected = [(HOLDER, vec![(BlockIndex(1), ExpertId(5))]), (HOLDER, vec![(BlockIndex(0), ExpertId(3))])];
    assert!(all.iter().flatten().all(|hinted| expected.contains(hinted)), "{all:?}");
    let sent = all[400..].iter().filter(|hinted| !hinted.is_empty()).count();
    assert!(sent > 150, "of the last 200 tokens {sent} are hinted");
}

#[test]
fn hints_that_do_not_help_end() {
    let all = hints(260, false);
    let sent = |tokens: &[Hinted]| tokens.iter().filter(|hinted| !hinted.is_empty()).count();
    assert!(sent(&all[..200]) > 0, "it is tried");
    assert_eq!(sent(&all[200..]), 0, "off within 200 tokens");
}

/// A text of eight tokens in 12 blocks, computed three times: what each block hinted in the last round, by token and block.
fn recorded(lead: u16) -> BTreeMap<(u32, u16), Vec<(BlockIndex, ExpertId)>> {
    let options =
        HintOptions { predictor: PredictorKind::Recorded, recalls: vec![1.0], always: true, lead, shadow: false };
    let (plan, mut hints, mut sent) = (plan(12), Hints::default(), BTreeMap::new());
    for round in 0..3 {
        for position in 5..13 {
            for block in 0..12 {
                let row = [(ConversationId(round), Position(position))];
                let routes = chose(expert(position, block));
                let hinted = hints.routed(&plan, &options, decoded(block, &row, &routes), Millis(0.0));
                assert!(round > 0 || hinted.is_empty(), "nothing is known in the first round");
                if round == 2 {
                    sent.insert((position, block), hinted.into_iter().flat_map(|(_, experts)| experts).collect());
                }
            }
        }
    }
    sent
}

pub(super) fn expert(position: u32, block: u16) -> u16 {
    ((position + u32::from(block)) % 8) as u16
}

#[test]
fn groups_of_blocks_are_hinted_some_blocks_ahead_and_across_tokens() {
    for lead in [1, 2, 3, 4, 40] {
        let sent = recorded(lead);
        let group = u64::from(lead.min(3));
        let mut all = Vec::new();
        for ((position, block), hinted) in &sent {
            let here = u64::from(*position) * 12 + u64::from(*block);
            for (of, known) in hinted {
                // The next place of that block in the text.
                let ahead = (1..=12).find(|ahead| (here + ahead) % 12 == u64::from(of.0)).unwrap();
                let place = here + ahead;
                assert_eq!(known.0, expert((place / 12) as u32, of.0), "what is chosen there");
                assert!(ahead < 2 * group, "{ahead} blocks ahead with groups of {group}");
                assert!(ahead >= group || here == 60, "{ahead} blocks ahead at {here} with groups of {group}");
                all.push(place);
            }
        }
        assert_eq!(all, (61..13 * 12).collect::<Vec<u64>>(), "each block of the text once, in order");
        let messages = sent.values().filter(|hinted| !hinted.is_empty()).count() as u64;
        assert!(messages <= 96 / group + 2, "{messages} messages with groups of {group}");
    }
}

#[test]
fn the_tokens_of_a_draft_are_hinted_like_single_ones() {
    let (plan, options, mut hints) =
        (plan(12), HintOptions { always: true, ..HintOptions::default() }, Hints::default());
    let mut sent = |rows: &[(ConversationId, Position)]| {
        let routes = [chose(1), chose(2)].concat();
        let mut routed = |block| hints.routed(&plan, &options, decoded(block, rows, &routes), Millis(0.0)).len();
        (0..12).map(&mut routed).sum::<usize>().min(1)
    };
    sent(&[(TEXT, Position(1)), (TEXT, Position(2))]);
    assert_eq!(sent(&[(TEXT, Position(3)), (TEXT, Position(4))]), 1, "as the tokens before");
    assert_eq!(sent(&[(TEXT, Position(5)), (ConversationId(2), Position(9))]), 0, "tokens of two conversations");
    for strange in [u32::MAX, 5, 4] {
        assert_eq!(sent(&[(TEXT, Position(5)), (TEXT, Position(strange))]), 0, "{strange} does not follow");
    }
    sent(&[(TEXT, Position(u32::MAX - 1)), (TEXT, Position(u32::MAX))]);
    sent(&[(TEXT, Position(0))]);
}

#[test]
fn a_pass_counts_as_many_tokens_as_were_accepted() {
    // How many hints each of 400 passes sent, which take this many milliseconds with hints and 10 without.
    let sent = |rows: u32, accepted: u32, hinted: f64| {
        let (plan, mut hints) = (plan(2), Hints::default());
        let options = HintOptions { shadow: true, ..HintOptions::default() };
        let (mut now, mut sent, mut position) = (0.0, Vec::new(), 0);
        for _ in 0..400 {
            let tokens: Vec<_> = (position..position + rows).map(|position| (TEXT, Position(position))).collect();
            let mut of_pass = 0;
            for (block, expert) in [(0, 3), (1, 5)] {
                let routes: Vec<ExpertRoute> = tokens.iter().flat_map(|_| chose(expert)).collect();
                of_pass += hints.routed(&plan, &options, decoded(block, &tokens, &routes), Millis(now)).len();
                now += if of_pass > 0 { hinted } else { 10.0 };
            }
            position += accepted;
            sent.push(of_pass);
        }
        sent
    };
    let pays: usize = sent(4, 2, 5.0)[300..].iter().sum();
    assert!(pays > 100, "{pays} hints in the last 100 passes");
    // Two tokens a pass: off within 200 tokens, and not tried again for 256.
    assert_eq!(sent(4, 2, 12.0)[100..150].iter().sum::<usize>(), 0, "they do not pay");
}

#[test]
fn without_slots_or_if_nobody_guesses_nothing_is_hinted() {
    let (mut plan, mut hints, mut options) = (plan(2), Hints::default(), HintOptions::default());
    let mut hint = |plan: &Plan, options: &HintOptions| {
        let (row, routes) = ([(TEXT, Position(0))], chose(1));
        let hinted = hints.routed(plan, options, decoded(1, &row, &routes), Millis(0.0));
        assert!(hinted.is_empty() && hints.watched.is_none());
    };
    options.predictor = PredictorKind::None;
    hint(&plan, &options);
    plan.pools.clear();
    hint(&plan, &HintOptions::default());
}
