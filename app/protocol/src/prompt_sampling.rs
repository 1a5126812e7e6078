//! The bytes of a prompt's sampling parameters.

use potluck_plan::Sampling;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The parameters that a prompt carries, in their order on the wire.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Sampling")]
struct PromptSampling {
    temperature: f32,
    top_k: u32,
    top_p: f32,
    min_p: f32,
    repetition_penalty: f32,
    seed: u64,
}

pub fn serialize<S: Serializer>(sampling: &Sampling, serializer: S) -> Result<S::Ok, S::Error> {
    let Sampling { repetition_penalty, penalty_window: _, top_k, top_p, min_p, temperature, seed } = *sampling;
    PromptSampling { temperature, top_k, top_p, min_p, repetition_penalty, seed }.serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Sampling, D::Error> {
    let PromptSampling { temperature, top_k, top_p, min_p, repetition_penalty, seed } =
        PromptSampling::deserialize(deserializer)?;
    Ok(Sampling { repetition_penalty, top_k, top_p, min_p, temperature, seed, ..Sampling::default() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Prompt(#[serde(with = "super")] Sampling);

    #[test]
    fn the_bytes_stay() {
        let sampling = Sampling {
            repetition_penalty: 1.5,
            top_k: 7,
            top_p: 0.5,
            min_p: 0.25,
            temperature: 2.0,
            seed: 300,
            ..Sampling::default()
        };
        let bytes = postcard::to_allocvec(&Prompt(sampling)).unwrap();
        assert_eq!(bytes, [0, 0, 0, 64, 7, 0, 0, 0, 63, 0, 0, 128, 62, 0, 0, 192, 63, 172, 2]);
        assert_eq!(postcard::from_bytes::<Prompt>(&bytes).unwrap(), Prompt(sampling));
    }
}
