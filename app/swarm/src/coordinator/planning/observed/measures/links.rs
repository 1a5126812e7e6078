//! Links between members, from the round trips that they measured.

use std::collections::BTreeMap;

use potluck_plan::PeerId;
use potluck_planner::measures::access_latencies;
use potluck_planner::{AccessLink, Link, Links};

use super::holders::ENOUGH_CALLS;
use super::{MIN_HOP_MILLIS, Measures, middle};
use crate::members::Members;

impl Measures {
    /// Links between members. Each has an access link to the relay, found from the round trips that it and others
    /// measured.
    pub fn links(&self, members: &Members) -> Links {
        let mut links = Links::default();
        let bandwidth = |peer: PeerId| members.get(peer).and_then(|member| member.link.bandwidth());
        let usual = middle(members.known.keys().filter_map(|peer| bandwidth(*peer)).collect());
        let usual = usual.unwrap_or(Link::BANDWIDTH / 2.0);
        let known = access_latencies(&one_way(members));
        let usual_access = middle(known.values().copied().collect()).unwrap_or(0.0);
        for peer in members.known.keys().copied() {
            let access = known.get(&peer).copied().unwrap_or(usual_access);
            // A probe passes two access links, and which of them was slower is unknown.
            let bandwidth = 2.0 * bandwidth(peer).unwrap_or(usual);
            let latency_millis = (access + self.hop_millis() / 2.0).max(MIN_HOP_MILLIS);
            let access = Link { latency_millis, bandwidth };
            links.set_access(peer, AccessLink { up: access, down: access });
        }
        for ((caller, holder), answering) in &self.holders {
            if answering.answers >= ENOUGH_CALLS
                && [caller, holder].iter().all(|peer| members.known.contains_key(*peer))
            {
                links.set_way(*caller, *holder, answering.way_millis);
                links.set_spread(*holder, answering.spread);
            }
        }
        links
    }
}

/// Uncertainty, in milliseconds, of what a peer's link adds to a token. Each token passes the link in both
/// directions.
pub(in crate::coordinator::planning) fn path_noise(members: &Members, peer: PeerId) -> f64 {
    2.0 * members.get(peer).and_then(|member| member.link.noise_millis()).unwrap_or(0.0)
}

/// One-way latencies between members through the relay, in milliseconds.
fn one_way(members: &Members) -> BTreeMap<(PeerId, PeerId), f64> {
    let mut paths: BTreeMap<(PeerId, PeerId), f64> = BTreeMap::new();
    let mut put = |a: PeerId, b: PeerId, millis: f64| {
        // Where both measured each other, the quieter moment counts.
        let path = paths.entry((a.min(b), a.max(b))).or_insert(f64::INFINITY);
        *path = path.min(millis);
    };
    for (peer, member) in members.known.iter().filter(|(peer, _)| **peer != members.me) {
        if let Some(millis) = member.link.latency_millis() {
            put(members.me, *peer, millis);
        }
        let reported = member.status.round_trips.iter();
        // We measured the path between it and us ourselves.
        let reported = reported.filter(|(other, _)| *other != members.me && members.known.contains_key(other));
        reported.for_each(|(other, round_trip)| put(*peer, *other, round_trip / 2.0));
    }
    paths
}
