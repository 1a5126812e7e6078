//! Both ends of the model on the host: the search against brute force, and that nothing else is ever planned.

use potluck_plan::{BlockRange, Ends, Plan, Stage, StageId};

use super::*;
use crate::{ShortOf, predict};

const HOST: PeerId = PeerId([0; 16]);

fn kept(instance: &Instance, sharing: Sharing) -> Room<'_> {
    Room { ends: Ends::OnHost, ..instance.room(sharing) }
}

/// The stages of a choice, each device with so many blocks.
fn stages(instance: &Instance, choice: &[(usize, usize)]) -> Vec<Stage> {
    let mut block = 0;
    let stage = |(index, (device, count)): (usize, &(usize, usize))| {
        let blocks = BlockRange::new(block as u16, (block + count) as u16);
        block += count;
        Stage::new(StageId(index as u16), instance.devices[*device].peer, blocks)
    };
    choice.iter().enumerate().map(stage).collect()
}

/// Every device has memory for all of its stages together.
fn fits(instance: &Instance, plan: &Plan) -> bool {
    instance.devices.iter().filter(|device| plan.has_stage(device.peer)).all(|device| {
        let own = || plan.stages.iter().filter(|stage| stage.peer == device.peer);
        let embeds = own().any(|stage| plan.embeds(stage.id));
        let has_head = own().any(|stage| plan.has_lm_head(stage.id));
        let blocks = own().flat_map(|stage| stage.blocks.iter()).map(|block| {
            let block = &instance.shape.blocks[usize::from(block.0)];
            block.weights().0 + 4 * block.kv_cache_per_position.0
        });
        let embedding = if embeds { instance.shape.embedding.0 } else { 0 };
        let head = if has_head && !(embeds && instance.shape.tied_lm_head) { instance.shape.lm_head.0 } else { 0 };
        blocks.sum::<u64>() + embedding + head + 10 <= device.budget.0
    })
}

/// All choices in which the first device comes first, and again with the last blocks, or has everything.
fn choices(instance: &Instance, most_behind: usize) -> Vec<Choice> {
    let blocks = instance.shape.blocks.len();
    let behind = (1..blocks.min(most_behind + 1)).flat_map(|behind| {
        let before = all_choices(instance.devices.len(), blocks - behind);
        let shared = before.into_iter().filter(|choice| choice.len() > 1 && choice[0].0 == 0);
        shared.map(move |mut choice| {
            choice.push((0, behind));
            choice
        })
    });
    behind.chain([vec![(0, blocks)]]).collect()
}

#[test]
fn the_fastest_plan_with_both_ends_on_the_host_is_that_of_brute_force() {
    let mut random = Random::new(12);
    let (mut feasible, mut shared) = (0, 0);
    for number in 0..4_000 {
        let mut instance = instance(&mut random, &SMALL);
        // The host's second stage is as short as can be. With equal blocks no other split is faster.
        let mut most_behind = 1;
        if number % 2 == 0 {
            most_behind = usize::MAX - 1;
            let block = instance.shape.blocks[0].clone();
            instance.shape.blocks.fill(block);
            instance.layers = Layers::from_shape(&instance.shape, 4, WireType::F32);
        }
        let room = kept(&instance, Sharing::Fastest);
        let plans = choices(&instance, most_behind).into_iter();
        let plans = plans.map(|choice| crate::placement::plan(&room, stages(&instance, &choice)));
        let fitting = plans.filter(|plan| fits(&instance, plan));
        let expected = fitting.map(|plan| predict(&room, &plan).token_millis).min_by(f64::total_cmp);
        match (expected, plan(&room)) {
            (None, Err(_)) => {}
            (Some(expected), Ok(Planned { plan, prediction, .. })) => {
                assert_eq!(plan.validate(&instance.shape), Ok(()), "room {number}");
                assert!(plan.has_ends_on(HOST), "room {number}: {:?}", plan.stages);
                assert!(fits(&instance, &plan), "room {number}: {:?}", plan.stages);
                let millis = prediction.token_millis;
                assert!((millis - expected).abs() < TIES, "room {number}: {millis} instead of {expected}");
                (feasible, shared) = (feasible + 1, shared + u32::from(plan.stages.len() > 1));
            }
            (expected, found) => panic!("room {number}: brute force says {expected:?}, the planner {found:?}"),
        }
    }
    assert!(feasible > 1_000 && shared > 200, "{feasible} rooms had a plan, {shared} with other devices in it");
}

#[test]
fn whatever_is_wanted_both_ends_are_on_the_host_or_there_is_no_plan() {
    let mut random = Random::new(13);
    let (mut planned, mut short) = ([0; 3], 0);
    for number in 0..1_500 {
        let bounds = if number % 50 == 0 { Bounds { devices: (16, 24), blocks: (20, 40) } } else { SMALL };
        let mut instance = instance(&mut random, &bounds);
        if number % 3 == 0 {
            instance.devices.iter_mut().for_each(|device| device.pauses = pauses(&mut random));
        }
        if number % 7 == 0 {
            instance.shape.cuts = Cuts::Nowhere;
        }
        if number % 11 == 0 {
            // The host lends nothing.
            instance.devices.remove(0);
        }
        for (index, sharing) in [Sharing::Fastest, Sharing::Everyone, Sharing::Experts].into_iter().enumerate() {
            let room = kept(&instance, sharing);
            for found in [plan(&room), crate::plan_keeping(&room)] {
                match found {
                    Ok(found) => {
                        assert!(found.plan.has_ends_on(HOST), "room {number}, {sharing:?}: {:?}", found.plan.stages);
                        assert!(fits(&instance, &found.plan), "room {number}, {sharing:?}: {:?}", found.plan.stages);
                        for standby in crate::standby(&room, &found.plan).covered {
                            assert!(standby.plan.has_ends_on(HOST), "room {number}, {sharing:?}: {standby:?}");
                        }
                        planned[index] += 1;
                    }
                    Err(found) => {
                        let host = room.device(HOST).map_or(Bytes::ZERO, |device| device.budget);
                        if found.of == ShortOf::HostForEnds {
                            assert!(host < found.needed, "room {number}: {found:?}");
                            assert_eq!(found.missing, found.needed.saturating_sub(host), "room {number}");
                            short += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(
        planned.iter().all(|count| *count > 300) && short > 100,
        "{planned:?} plans, {short} times the host was short"
    );
}
