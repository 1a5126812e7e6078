//! Short phrases about members and models.

use potluck_panel::{ModelCard, PeerId, PlanReport};
use potluck_text::texts;

/// "30.5 B parameters, 3.3 B active" or "1.2 B parameters".
#[must_use]
pub fn model_size(all: u64, active: u64) -> String {
    if active > 0 && active < all { texts().model.size_active(all, active) } else { texts().model.size(all) }
}

/// Blocks `first..end`: "block 12", "blocks 0–5".
#[must_use]
pub fn blocks(first: u16, end: u16) -> Option<String> {
    match end.saturating_sub(first) {
        0 => None,
        1 => Some(texts().part.block(first)),
        _ => Some(texts().part.blocks(first, end - 1)),
    }
}

/// All blocks of a peer's stages: "blocks 0–5", "blocks 0–1, 5" of a host that keeps both ends; `None` if it has none.
#[must_use]
pub fn blocks_of(peer: PeerId, plan: &PlanReport) -> Option<String> {
    let stages = plan.stages.iter().filter(|stage| stage.peer == peer && stage.end_block > stage.first_block);
    let ranges: Vec<(u16, u16)> = stages.map(|stage| (stage.first_block, stage.end_block)).collect();
    match ranges[..] {
        [] => None,
        [(first, end)] => blocks(first, end),
        _ => {
            let range = |(first, end): &(u16, u16)| match end - first {
                1 => texts().part.single(*first),
                _ => texts().part.range(*first, end - 1),
            };
            Some(texts().part.ranges(ranges.iter().map(range).collect::<Vec<_>>().join(", ")))
        }
    }
}

/// What a peer holds in a plan: "input layer", "blocks 0–11", "output layer", "5 of 128 experts"; "96 experts, no blocks" if
/// nothing else.
#[must_use]
pub fn held_by(peer: PeerId, plan: &PlanReport, model: Option<&ModelCard>) -> Vec<String> {
    let mut parts = Vec::new();
    for stage in plan.stages.iter().filter(|stage| stage.peer == peer) {
        parts.extend(stage.embeds.then(|| texts().part.embedding().to_owned()));
        parts.extend(blocks(stage.first_block, stage.end_block));
        parts.extend(stage.head.then(|| texts().part.head().to_owned()));
    }
    let holdings = plan.stages.iter().flat_map(|stage| &stage.expert_holders);
    let held = holdings.filter(|held| held.peer == peer);
    let experts = held.fold(0_u32, |experts, held| experts.saturating_add(held.experts));
    if experts > 0 && parts.is_empty() {
        parts.push(texts().part.experts_alone(experts));
    } else if experts > 0 {
        let all = model.map_or(0, |model| u32::from(model.experts) * u32::from(model.blocks));
        parts.push(texts().part.experts(experts, all));
    }
    parts
}

#[cfg(test)]
mod tests {
    use potluck_panel::{ExpertHolding, StageReport};

    use super::*;
    use crate::table::fixtures::{peer, plan_of, stage};

    #[test]
    fn active_parameters_are_shown_only_when_they_differ() {
        assert_eq!(model_size(30_500_000_000, 3_300_000_000), "30.5 B parameters, 3.3 B active");
        assert_eq!(model_size(1_200_000_000, 1_200_000_000), "1.2 B parameters");
    }

    #[test]
    fn the_parts_a_peer_holds_read_in_the_order_of_a_token() {
        let (first, last) = (stage("a", 0.0), stage("b", 0.0));
        let plan = PlanReport {
            stages: vec![
                StageReport {
                    embeds: true,
                    end_block: 12,
                    expert_holders: vec![ExpertHolding { peer: peer("b"), experts: 2 }],
                    ..first
                },
                StageReport { first_block: 12, end_block: 13, head: true, ..last },
            ],
            ..plan_of(&[])
        };
        assert_eq!(held_by(peer("a"), &plan, None), ["input layer", "blocks 0–11"]);
        assert_eq!(held_by(peer("b"), &plan, None), ["block 12", "output layer", "2 of 0 experts"]);
    }

    #[test]
    fn all_blocks_of_a_peer_are_named() {
        let range = |name, first_block, end_block| StageReport { first_block, end_block, ..stage(name, 0.0) };
        let plan = |stages: &[StageReport]| PlanReport { stages: stages.to_vec(), ..plan_of(&[]) };
        let ends = plan(&[range("a", 0, 2), range("b", 2, 5), range("a", 5, 6)]);
        assert_eq!(blocks_of(peer("a"), &ends).as_deref(), Some("blocks 0–1, 5"), "the first ones and the last one");
        assert_eq!(blocks_of(peer("b"), &ends).as_deref(), Some("blocks 2–4"));
        let only_embeds = plan(&[range("a", 0, 0), range("b", 0, 6), range("a", 6, 6)]);
        assert_eq!(blocks_of(peer("a"), &only_embeds), None);
        assert_eq!(blocks_of(peer("c"), &ends), None, "it has no stage");
    }

    #[test]
    fn a_device_with_experts_alone_says_so() {
        let holdings = [("b", 96), ("c", 1)].map(|(name, experts)| ExpertHolding { peer: peer(name), experts });
        let plan = PlanReport {
            stages: vec![StageReport { expert_holders: holdings.to_vec(), ..stage("a", 0.0) }],
            ..plan_of(&[])
        };
        assert_eq!(held_by(peer("b"), &plan, None), ["96 experts, no blocks"]);
        assert_eq!(held_by(peer("c"), &plan, None), ["1 expert, no blocks"]);
    }
}
