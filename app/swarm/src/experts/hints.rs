//! Guesses for holders that load experts on demand: which experts the next token will probably call (od-moe.txt 3.2). They go
//! out only while they make tokens faster, and change no result.

use std::collections::BTreeMap;

use potluck_plan::{BlockIndex, ExpertHolder, ExpertId, KernelClass, Millis, PeerId, Plan, Position, Route};
use potluck_predict::{GivenLast, Next, Predictor, Switch, TraceShape};

use crate::limits::MAX_HINTS;

/// Experts that holders will probably be asked for.
pub(crate) type Hinted = Vec<(PeerId, Vec<(BlockIndex, ExpertId)>)>;

/// Watches what routers choose on this device, and says what comes next.
#[derive(Default)]
pub(crate) struct Hints(Option<Watched>);

struct Watched {
    predictor: GivenLast,
    switch: Switch,
    used: usize,
    guesses: BTreeMap<PeerId, Vec<(BlockIndex, ExpertId)>>,
    /// When the token's first choice came, and of which block.
    began: Option<(BlockIndex, Millis)>,
}

impl Hints {
    /// A router has chosen for a batch. What the next token will need, once its last block's choice is known. Only single
    /// tokens are watched: those of several conversations do not follow each other.
    pub fn routed(
        &mut self,
        plan: &Plan,
        (block, class): (BlockIndex, KernelClass),
        routes: &[Route],
        now: Millis,
    ) -> Hinted {
        let ([route], KernelClass::Decode) = (routes, class) else {
            self.restart();
            return Vec::new();
        };
        if plan.pools.is_empty() || route.experts.is_empty() {
            return Vec::new();
        }
        let stage = plan.stages.iter().find(|stage| stage.remote_experts(block).is_some());
        let Some((first, last, remote)) = stage.and_then(|stage| {
            let remote = stage.remote_experts(block)?;
            Some((stage.remote.first()?.block, stage.remote.last()?.block, remote))
        }) else {
            return Vec::new();
        };
        let watched = self.0.get_or_insert_with(|| Watched::new(plan, route.experts.len()));
        if block == first {
            watched.guesses.clear();
            watched.began = Some((block, now));
        }
        let chosen: Vec<ExpertId> = route.experts.iter().map(|(expert, _)| *expert).collect();
        watched.predictor.observe(Position(0), block, &chosen);
        if watched.switch.next() != Next::Without {
            for guess in watched.predictor.predict(Position(0), block).into_iter().take(watched.used) {
                let holders = remote.holders.get(usize::from(guess.expert.0));
                if let Some(ExpertHolder::Peer(peer)) = holders.and_then(|holders| holders.first())
                    && plan.holder_pool(*peer).is_some()
                {
                    watched.guesses.entry(*peer).or_default().push((block, guess.expert));
                }
            }
        }
        if block != last {
            return Vec::new();
        }
        if let Some((began, since)) = watched.began.take().filter(|(began, _)| *began == first && *began != block) {
            debug_assert!(began < block, "blocks come in order");
            watched.switch.token(now.0 - since.0);
        }
        let mut hinted: Hinted = std::mem::take(&mut watched.guesses).into_iter().collect();
        hinted.iter_mut().for_each(|(_, experts)| experts.truncate(MAX_HINTS));
        hinted
    }

    /// Another text, or several at once.
    fn restart(&mut self) {
        if let Some(watched) = &mut self.0 {
            watched.predictor.restart();
            watched.guesses.clear();
            watched.began = None;
        }
    }
}

impl Watched {
    fn new(plan: &Plan, used: usize) -> Self {
        let remote = || plan.stages.iter().flat_map(|stage| &stage.remote);
        let shape = TraceShape {
            blocks: remote().map(|remote| remote.block.0.saturating_add(1)).max().unwrap_or(0),
            experts: remote().map(|remote| remote.holders.len() as u16).max().unwrap_or(0),
            used: used.min(usize::from(u8::MAX)) as u8,
        };
        let (predictor, switch) = (GivenLast::new(shape), Switch::new());
        Self { predictor, switch, used, guesses: BTreeMap::new(), began: None }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use potluck_plan::{
        Arithmetic, BlockRange, HolderPool, KvCacheType, ModelId, PlanEpoch, RemoteExperts, Stage, StageId, WireType,
    };

    use super::*;

    const HOLDER: PeerId = PeerId([2; 16]);

    fn plan() -> Plan {
        let mut stage = Stage::new(StageId(0), PeerId([1; 16]), BlockRange::new(0, 2));
        let remote =
            |block| RemoteExperts { block: BlockIndex(block), holders: vec![vec![ExpertHolder::Peer(HOLDER)]; 8] };
        stage.remote = vec![remote(0), remote(1)];
        Plan {
            epoch: PlanEpoch(1),
            model: ModelId([0; 32]),
            stages: vec![stage],
            pools: vec![HolderPool { peer: HOLDER, slots: 4 }],
            wire: WireType::F32,
            expert_wire: WireType::F32,
            arithmetic: Arithmetic::Exact,
            context: 64,
            kv_cache: KvCacheType::F32,
        }
    }

    /// Tokens that always use the same experts, which take less time after a hint if `helps`. How many hints went out.
    fn hints(tokens: u32, helps: bool) -> Vec<Hinted> {
        let (plan, mut hints, mut all, mut now) = (plan(), Hints::default(), Vec::new(), 0.0);
        let mut was_hinted = false;
        for _ in 0..tokens {
            for (block, expert) in [(0, 3), (1, 5)] {
                let routes = [Route { experts: vec![(ExpertId(expert), 1.0)] }];
                let of = (BlockIndex(block), KernelClass::Decode);
                let hinted = hints.routed(&plan, of, &routes, Millis(now));
                now += if was_hinted == helps { 5.0 } else { 10.0 };
                if block == 1 {
                    was_hinted = !hinted.is_empty();
                    all.push(hinted);
                }
            }
        }
        all
    }

    #[test]
    fn what_followed_before_is_hinted_to_its_holder_while_it_helps() {
        let all = hints(600, true);
        assert!(all[..48].iter().all(Vec::is_empty), "at first it is seen what tokens take");
        let expected = vec![(HOLDER, vec![(BlockIndex(0), ExpertId(3)), (BlockIndex(1), ExpertId(5))])];
        assert!(all.iter().filter(|hinted| !hinted.is_empty()).all(|hinted| *hinted == expected), "{all:?}");
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

    #[test]
    fn without_slots_nothing_is_hinted() {
        let (mut plan, mut hints) = (plan(), Hints::default());
        plan.pools.clear();
        let routes = [Route { experts: vec![(ExpertId(1), 1.0)] }];
        assert!(hints.routed(&plan, (BlockIndex(1), KernelClass::Decode), &routes, Millis(0.0)).is_empty());
        assert!(hints.0.is_none());
    }
}
