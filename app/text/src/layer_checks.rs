//! Who checks the layers that devices compute, in sentences.

use potluck_panel::{LayerChecksView, PeerId};

use crate::texts;

/// A sentence about each device with a stage, except the host's, then what was found. `name`: what a member is called.
#[must_use]
pub fn layer_checks(checks: &LayerChecksView, devices: &[PeerId], name: impl Fn(PeerId) -> String) -> Vec<String> {
    let texts = &texts().why;
    let device = |peer: &PeerId| match peer {
        _ if checks.checked.contains(peer) => texts.is_checked(name(*peer)),
        _ if checks.unlike.contains(peer) => texts.is_unlike(name(*peer)),
        _ => texts.not_checked(name(*peer)),
    };
    let compared = (checks.compared > 0).then(|| texts.answers_agree(checks.compared));
    let repeated = (checks.repeated > 0).then(|| texts.parts_repeated(checks.repeated, checks.equal));
    let differ = checks.differ.iter().map(|(sender, receiver)| texts.neighbours_differ(name(*sender), name(*receiver)));
    let apart = checks.apart.iter().map(|peer| texts.is_apart(name(*peer)));
    let withheld = checks.withheld.iter().map(|peer| texts.work_withheld(name(*peer)));
    devices.iter().map(device).chain(compared).chain(repeated).chain(differ).chain(apart).chain(withheld).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_said_to_be_checked_whom_nobody_checks() {
        let [a, b] = [1, 2].map(|id| PeerId([id; 16]));
        let name = |peer| if peer == a { "Ann".to_owned() } else { "Ben".to_owned() };
        let checks =
            LayerChecksView { asked: true, checked: vec![a], compared: 3, repeated: 1, equal: 1, ..Default::default() };
        let said = layer_checks(&checks, &[a, b], name);
        assert_eq!(
            said,
            [
                "Ann: the host recomputes a share of this work to check it.",
                "Ben: not checked. Either the host lacks its blocks, or experts are spread or loaded on demand.",
                "In 3 answers, all devices agreed on what they had sent each other.",
                "The host has recomputed 1 part of an answer (1 matched bit for bit).",
            ]
        );
        let other = LayerChecksView { checked: Vec::new(), unlike: vec![a], apart: vec![a], ..checks };
        let said = layer_checks(&other, &[a, b], name).join(" ");
        assert!(said.contains("Ann: its GPU is of a different kind") && said.contains("Ann sent numbers"), "{said}");
        let found = LayerChecksView { differ: vec![(a, b)], withheld: vec![b], ..Default::default() };
        let said = layer_checks(&found, &[], name).join(" ");
        assert!(said.contains("Ann and Ben disagree") && said.contains("Ben was asked"), "{said}");
    }
}
