//! Chosen experts in waves: as many at a time as there are slots.

use std::collections::BTreeSet;

use futures::channel::oneshot;
use potluck_plan::{Computed, ExpertId, ExpertRoute, Outcome};

/// Experts of one block that fit the slots together, with the tokens that chose them.
pub(super) struct Wave {
    pub experts: BTreeSet<ExpertId>,
    /// Tokens that chose any of them.
    pub tokens: Vec<usize>,
    /// For each of those tokens which ones.
    pub chosen: Vec<Vec<ExpertId>>,
    /// Where the outputs belong among those of all experts.
    pub places: Vec<usize>,
}

impl Wave {
    /// The wave of these experts.
    pub fn new(experts: &[ExpertId], routes: &[ExpertRoute]) -> Self {
        let experts: BTreeSet<ExpertId> = experts.iter().copied().collect();
        let mut wave = Self { experts, tokens: Vec::new(), chosen: Vec::new(), places: Vec::new() };
        let mut place = 0;
        for (token, route) in routes.iter().enumerate() {
            let mut chosen = Vec::new();
            for (expert, _) in &route.experts {
                if wave.experts.contains(expert) {
                    chosen.push(*expert);
                    wave.places.push(place);
                }
                place += 1;
            }
            if !chosen.is_empty() {
                wave.tokens.push(token);
                wave.chosen.push(chosen);
            }
        }
        wave
    }
}

/// A wave in the engine, and where its outputs belong.
pub(super) type RunningWave = (oneshot::Receiver<Computed>, Vec<usize>);

/// Waits for a wave and puts its outputs where they belong.
///
/// # Errors
/// Why there are none.
pub(super) async fn collect((part, places): RunningWave, outputs: &mut [f32]) -> Result<(), Outcome> {
    let vectors = match part.await.map_or(Outcome::DeviceLost, |computed| computed.outcome) {
        Outcome::ExpertOutputs(vectors) => vectors,
        lost @ (Outcome::DeviceLost | Outcome::Cancelled | Outcome::Failed(_)) => return Err(lost),
        _ => return Err(Outcome::Failed("The experts gave no outputs.".to_owned())),
    };
    let width = vectors.len() / places.len().max(1);
    for (vector, place) in vectors.chunks_exact(width.max(1)).zip(places) {
        outputs[place * width..(place + 1) * width].copy_from_slice(vector);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(experts: &[u16]) -> ExpertRoute {
        ExpertRoute { experts: experts.iter().map(|id| (ExpertId(*id), 0.5)).collect() }
    }

    #[test]
    fn a_wave_names_only_its_experts_and_tokens_and_knows_their_places() {
        let routes = [route(&[3, 1]), route(&[2, 0]), route(&[1, 2])];
        let wave = Wave::new(&[ExpertId(1), ExpertId(3)], &routes);
        assert_eq!(wave.tokens, [0, 2]);
        assert_eq!(wave.chosen, [vec![ExpertId(3), ExpertId(1)], vec![ExpertId(1)]]);
        assert_eq!(wave.places, [0, 1, 4]);
    }
}
