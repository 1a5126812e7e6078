//! Lending this device's GPU.

mod card;
mod phases;

pub use card::ContributeCard;
