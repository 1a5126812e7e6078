//! Plans against the model they are for.

use potluck_plan::{
    Arithmetic, BlockIndex, BlockRange, Bytes, Cuts, ExpertHolder, ExpertId, ExpertPool, FeedForwardShape, HolderPool,
    KvCacheType, ModelId, ModelShape, PeerId, Plan, PlanEpoch, PlanError, RemoteExperts, Stage, StageId, WeightUnit,
    WireType,
};
use potluck_testkit::moe_shape;

const A: PeerId = PeerId([1; 16]);
const B: PeerId = PeerId([2; 16]);

/// Two blocks of four experts.
fn model() -> ModelShape {
    moe_shape(2)
}

fn plan(stages: Vec<Stage>) -> Plan {
    Plan {
        epoch: PlanEpoch(1),
        model: ModelId([0; 32]),
        stages,
        pools: Vec::new(),
        wire: WireType::F32,
        expert_wire: WireType::F32,
        arithmetic: Arithmetic::Exact,
        context: 64,
        kv_cache: KvCacheType::F32,
    }
}

#[test]
fn two_stages_cross_twice_and_share_the_units() {
    let plan =
        plan(vec![Stage::new(StageId(0), A, BlockRange::new(0, 1)), Stage::new(StageId(1), B, BlockRange::new(1, 2))]);
    assert_eq!(plan.validate(&model()), Ok(()));
    assert_eq!(plan.network_hops(A), 2, "one hop to the second stage, one back");
    assert_eq!(plan.units_for(A, &model())[0], WeightUnit::Embedding);
    assert_eq!(plan.units_for(B, &model()).last(), Some(&WeightUnit::LmHead));
}

#[test]
fn a_model_that_must_not_be_cut_is_one_stage() {
    let whole = ModelShape { cuts: Cuts::Nowhere, ..model() };
    assert_eq!(plan(vec![Stage::new(StageId(0), A, BlockRange::new(0, 2))]).validate(&whole), Ok(()));
    for at in 0..=2 {
        let stages =
            vec![Stage::new(StageId(0), A, BlockRange::new(0, at)), Stage::new(StageId(1), B, BlockRange::new(at, 2))];
        assert_eq!(plan(stages).validate(&whole), Err(PlanError::CutForbidden(at)));
    }
}

#[test]
fn remote_experts_cost_a_round_trip_a_block() {
    let mut stage = Stage::new(StageId(0), A, BlockRange::new(0, 2));
    stage.remote = vec![RemoteExperts { block: BlockIndex(1), holders: vec![vec![ExpertHolder::Peer(B)]; 4] }];
    let plan = plan(vec![stage]);
    assert_eq!(plan.validate(&model()), Ok(()));
    assert_eq!(plan.network_hops(A), 2);
    let experts: Vec<WeightUnit> = (0..4).map(|expert| WeightUnit::Expert(BlockIndex(1), ExpertId(expert))).collect();
    assert_eq!(plan.units_for(B, &model()), experts);
}

#[test]
fn a_gap_or_an_expert_without_holder_is_refused() {
    let gap = plan(vec![Stage::new(StageId(0), A, BlockRange::new(0, 1))]);
    assert_eq!(gap.validate(&model()), Err(PlanError::BlockNotCovered(1)));
    let mut stage = Stage::new(StageId(0), A, BlockRange::new(0, 2));
    let mut holders = vec![vec![ExpertHolder::Own]; 4];
    holders[1].clear();
    stage.remote = vec![RemoteExperts { block: BlockIndex(0), holders }];
    assert_eq!(plan(vec![stage]).validate(&model()), Err(PlanError::NoHolder { block: 0, expert: 1 }));
}

/// Row 13: a frame of a megabyte describes four billion experts.
#[test]
fn a_plan_for_more_experts_than_any_model_has_is_refused_before_they_are_listed() {
    let mut shape = moe_shape(1);
    if let FeedForwardShape::Experts { count, .. } = &mut shape.blocks[0].feed_forward {
        *count = u16::MAX;
    }
    let block = shape.blocks[0].clone();
    shape.blocks = vec![block; usize::from(u16::MAX)];
    let plan = plan(vec![Stage::new(StageId(0), A, BlockRange::new(0, u16::MAX))]);
    assert_eq!(plan.validate(&shape), Err(PlanError::TooLarge));
}

#[test]
fn sizes_that_overflow_are_refused() {
    let mut shape = moe_shape(1);
    if let FeedForwardShape::Experts { expert, .. } = &mut shape.blocks[0].feed_forward {
        *expert = Bytes(u64::MAX);
    }
    let plan = plan(vec![Stage::new(StageId(0), A, BlockRange::new(0, 1))]);
    assert_eq!(plan.validate(&shape), Err(PlanError::TooLarge));
}

#[test]
fn a_plan_can_spare_a_holder_whose_experts_others_have() {
    let (a, b) = (ExpertHolder::Own, ExpertHolder::Peer(B));
    let c = PeerId([3; 16]);
    let mut stage = Stage::new(StageId(0), A, BlockRange::new(0, 2));
    let holders = vec![vec![b, a], vec![b, ExpertHolder::Peer(c)], vec![a], vec![a]];
    stage.remote = vec![RemoteExperts { block: BlockIndex(1), holders }];
    let mut plan = plan(vec![stage]);
    assert!(plan.can_spare(B, |_| true));
    assert!(!plan.can_spare(B, |peer| peer != c), "nobody else has expert 1");
    assert!(!plan.can_spare(A, |_| true), "it has the stage");
    plan.drop_holder(B);
    let pooled: Vec<_> = plan.pooled().map(|(_, expert, holders)| (expert.0, holders.to_vec())).collect();
    assert_eq!(pooled, [(1, vec![ExpertHolder::Peer(c)])], "all others lie with the stage alone");
    assert!(!plan.can_spare(c, |_| true), "it is the last one with expert 1");
    plan.add_holder(BlockIndex(1), ExpertId(1), A);
    plan.add_holder(BlockIndex(1), ExpertId(1), A);
    plan.add_holder(BlockIndex(0), ExpertId(1), B);
    assert_eq!(plan.stages[0].remote[0].holders[1], [ExpertHolder::Peer(c), a], "the stage's own device, once");
    assert_eq!(plan.peers(), [A, c].into(), "the experts of block 0 are not pooled");
}

/// Experts of block 1 in slots of B and, if nobody else computes them, of A itself.
fn pooled(slots: u32) -> Plan {
    let mut stage = Stage::new(StageId(0), A, BlockRange::new(0, 2));
    let holders = vec![vec![ExpertHolder::Peer(B), ExpertHolder::Own]; 4];
    stage.remote = vec![RemoteExperts { block: BlockIndex(1), holders }];
    stage.pool = Some(ExpertPool { slots: 4 });
    Plan { pools: vec![HolderPool { peer: B, slots }], ..plan(vec![stage]) }
}

#[test]
fn a_holder_with_slots_loads_no_expert_in_advance() {
    let plan = pooled(2);
    assert_eq!(plan.validate(&model()), Ok(()));
    assert!(plan.is_on_demand());
    assert_eq!(plan.units_for(B, &model()), []);
    let of_b = plan.pool_for(B, &model());
    assert_eq!((of_b.slots, of_b.blocks), (2, [BlockIndex(1)].into()));
    let own = plan.pool_for(A, &model());
    assert_eq!((own.slots, own.blocks), (4, [BlockIndex(0), BlockIndex(1)].into()));
    assert!(plan.units_for(A, &model()).iter().all(|unit| !matches!(unit, WeightUnit::Expert(..))));
    assert_eq!((plan.experts_held(B), plan.experts_held(A)), (4, 0));
    assert_eq!(plan.pool_experts(B, &model()), 4, "what it is named for, not all experts of its blocks");
}

#[test]
fn a_holder_with_slots_can_be_spared_where_the_stage_has_slots_too() {
    let mut plan = pooled(2);
    assert!(plan.can_spare(B, |peer| peer == A));
    plan.drop_holder(B);
    assert_eq!((plan.pools.len(), plan.validate(&model())), (0, Ok(())));
    assert_eq!(plan.pooled().count(), 0, "the stage computes them all");
}

#[test]
fn slots_for_less_than_a_token_uses_or_for_nothing_are_refused() {
    assert_eq!(pooled(1).validate(&model()), Err(PlanError::PoolTooSmall { slots: 1, needed: 2 }));
    let mut stray = pooled(2);
    stray.pools.push(HolderPool { peer: PeerId([3; 16]), slots: 9 });
    assert_eq!(stray.validate(&model()), Err(PlanError::StrayPool));
    let mut twice = pooled(2);
    twice.pools.push(HolderPool { peer: B, slots: 3 });
    assert_eq!(twice.validate(&model()), Err(PlanError::StrayPool));
}
