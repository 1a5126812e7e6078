//! What lets another device host a room in its host's place: the host chooses a **deputy**, gives it the room's keys, and keeps it
//! informed of questions and answers.

use std::fmt;

use potluck_plan::{Arithmetic, DeviceId, Ends, KernelClass, KvCacheType, PeerId, Pooling, Sharing};
use potluck_relay_api::Term;
use serde::{Deserialize, Serialize};

use crate::{AnswerPart, Doors, ModelSource, PromptRequest, RequestId, StartId};

/// Who hosts the room if its host is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeputyChoice {
    /// Nobody: the room waits for its host.
    #[default]
    Nobody,
    /// This device.
    Device(DeviceId),
    /// A device that takes part fully, whichever suits best.
    Anyone,
}

/// The secrets of a room, from which all its keys are derived.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerSecrets {
    /// The seed of the owner key.
    pub owner: [u8; 32],
    /// The secret of the room's first link.
    pub link: [u8; 16],
}

impl fmt::Debug for OwnerSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerSecrets(…)")
    }
}

/// Everything that a deputy needs to open the room, besides what its answers are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Succession {
    /// The room's secrets.
    pub secrets: OwnerSecrets,
    /// The term in which the deputy hosts, if it takes over: later than the present host's and than those of earlier deputies.
    pub term: Term,
    /// The room is in the public list.
    pub visible: bool,
    /// The model; never a file on the host's disk.
    pub model: ModelSource,
    /// Positions of context, all conversations together.
    pub context: u32,
    /// KV cache type, if the host chose one.
    pub kv_cache: Option<KvCacheType>,
    /// How products are computed.
    pub arithmetic: Arithmetic,
    /// How work is shared out.
    pub sharing: Sharing,
    /// Where the ends of the model may be.
    pub ends: Ends,
    /// How experts are spread over devices.
    pub pooling: Pooling,
    /// Experts may be loaded on demand.
    pub on_demand: bool,
    /// Share of holders' answers that are computed again.
    pub spot_checks: f64,
    /// Who may come in.
    pub doors: Doors,
    /// Who hosts if the deputy is lost in turn.
    pub deputy: DeputyChoice,
}

/// Tokens that are computed again if the KV cache is lost, and the kernel class of each, in runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedTokens {
    /// The tokens.
    pub tokens: Vec<u32>,
    /// Kernel classes with the number of tokens that follow one another in them.
    pub runs: Vec<(KernelClass, u32)>,
}

impl LoggedTokens {
    /// Tokens with a class each.
    #[must_use]
    pub fn new(tokens: &[u32], classes: &[KernelClass]) -> Self {
        let mut runs: Vec<(KernelClass, u32)> = Vec::new();
        for class in classes {
            match runs.last_mut() {
                Some((last, count)) if last == class => *count += 1,
                _ => runs.push((*class, 1)),
            }
        }
        Self { tokens: tokens.to_vec(), runs }
    }

    /// The class of each token; none if the runs do not fit the tokens.
    #[must_use]
    pub fn classes(&self) -> Option<Vec<KernelClass>> {
        let count = self.runs.iter().try_fold(0_usize, |sum, (_, count)| sum.checked_add(*count as usize))?;
        let fits = count == self.tokens.len();
        fits.then(|| self.runs.iter().flat_map(|(class, count)| std::iter::repeat_n(*class, *count as usize)).collect())
    }
}

/// One thing that the deputy is to know, of the questions and answers of the room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Followed {
    /// Nothing that was said before counts: everything follows.
    Anew,
    /// A question waits.
    Asked {
        /// Who asks.
        asker: PeerId,
        /// The start of its node in which it asks, if it is known.
        start: Option<StartId>,
        /// The question.
        prompt: Box<PromptRequest>,
    },
    /// Its answer has begun.
    Began {
        /// Who asks.
        asker: PeerId,
        /// The question.
        request: RequestId,
        /// The prompt, as it was rendered.
        prompt: LoggedTokens,
    },
    /// More of an answer was sent.
    Wrote {
        /// Who asks.
        asker: PeerId,
        /// The question.
        request: RequestId,
        /// What was sent: pieces of text, in order, and the end.
        parts: Vec<AnswerPart>,
    },
    /// A question is not to be answered any more.
    Dropped {
        /// Who asked.
        asker: PeerId,
        /// The question.
        request: RequestId,
    },
    /// A conversation between answers.
    Kept {
        /// Whose it is.
        asker: PeerId,
        /// Its name.
        name: String,
        /// Its tokens.
        log: LoggedTokens,
    },
    /// Everything of this asker is over.
    Forgot(PeerId),
}

/// How far an asker has received an answer. A host that has only just taken over may know less of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// Pieces of text.
    pub pieces: u32,
    /// Tokens in those that count.
    pub tokens: u32,
    /// The last of these tokens, at most [`Received::MAX_LAST`].
    pub last: Vec<u32>,
}

impl Received {
    /// More tokens than one result of the last stage brings, several times over.
    pub const MAX_LAST: usize = 64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_come_back_from_their_runs() {
        use KernelClass::{Decode, Prefill};
        let log = LoggedTokens::new(&[1, 2, 3, 4], &[Prefill, Prefill, Decode, Prefill]);
        assert_eq!(log.runs, [(Prefill, 2), (Decode, 1), (Prefill, 1)]);
        assert_eq!(log.classes().as_deref(), Some(&[Prefill, Prefill, Decode, Prefill][..]));
        let forged = LoggedTokens { tokens: vec![1], runs: vec![(Prefill, u32::MAX)] };
        assert_eq!(forged.classes(), None);
    }

    #[test]
    fn secrets_are_not_in_logs() {
        let secrets = OwnerSecrets { owner: [7; 32], link: [9; 16] };
        assert_eq!(format!("{secrets:?}"), "OwnerSecrets(…)");
    }
}
