//! A deterministic simulator around the state machines of `potluck-swarm`: virtual clock, relay, links, devices, faults.
//! Everything is drawn from a seed, so a run can be repeated.
//!
//! Its engine computes hashes instead of a language model. A token's value depends on every earlier token of its
//! conversation, on the blocks it passed, on the kernel class of each token, and on the order in which the outputs of its
//! experts are added: their sums are float sums. A lost, doubled, reordered or stale token changes the answer, so "the
//! answer is the undisturbed one" is a strong statement here.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod annotations;
mod churn;
mod claims;
mod device;
mod engine;
mod false_passes;
mod fault;
mod forecast;
mod forge;
mod language;
mod network;
mod oracle;
mod peer;
mod perform;
mod pooled;
mod protection;
mod random;
mod recording;
mod relay;
mod scenario;
mod scenarios;
mod seeds;
mod shadow;
mod slots;
mod succession;
mod vanishing;
mod words;
mod world;

pub use churn::{DEPUTY_HOSTS, LIAR_NAMED};
pub use device::{LogNormal, SimDevice};
pub use engine::SimModel;
pub use fault::{Fault, Wrong};
pub use language::{EVERY_THIRD, NOTHING_LATER, THOUGHT};
pub use network::Link;
pub use oracle::{undisturbed, undisturbed_biased, undisturbed_follow_up, undisturbed_formed, undisturbed_sampled};
pub use peer::Answer;
pub use recording::Recording;
pub use scenario::{Run, SCENARIOS, Scenario, scenario};
pub use seeds::of_seeds;
pub use words::Carries;
pub use world::World;
