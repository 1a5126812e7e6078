//! Who guesses the experts of a model that does not fit.

use leptos::prelude::*;
use potluck_panel::ExpertGuesser;
use potluck_text::texts;

use super::{
    choice::{Choice, Tab},
    verdict::judge,
};

/// Bits a weight of a copy of a model with more than [`SMALL_BITS`], and of one with fewer.
const COPY_BITS: f64 = 4.5;
const SMALLER_COPY_BITS: f64 = 2.7;
const SMALL_BITS: f64 = 5.2;
/// About the bytes that a copy takes besides weights and KV cache.
const SCRATCH: u64 = 6_000_000;

/// What is known of a smaller copy of the chosen model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SmallerCopy {
    /// There are no experts to guess, or all fit in the memory lent.
    Useless,
    /// It takes about so many bytes.
    Takes(u64),
    /// The model is not known.
    Unknown,
}

/// A model whose sizes are known.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sizes {
    bytes: u64,
    parameters: u64,
    /// In single precision, per position.
    kv_cache: u64,
    context: u32,
}

impl Sizes {
    /// Bytes of a copy: weights, and a KV cache of half precision.
    fn copy(self) -> u64 {
        let parameters = self.parameters.max(1) as f64;
        let is_small = 8.0 * self.bytes as f64 / parameters <= SMALL_BITS;
        let bits = if is_small { SMALLER_COPY_BITS } else { COPY_BITS };
        (parameters * bits / 8.0) as u64 + self.kv_cache / 2 * u64::from(self.context) + SCRATCH
    }
}

impl SmallerCopy {
    fn of(choice: Choice) -> Self {
        if !choice.may_have_experts() {
            return Self::Useless;
        }
        let context = choice.context();
        match choice.tab.get() {
            Tab::Here => choice.model.with(|model| match model {
                None => Self::Unknown,
                Some(model) if judge(choice.case(model.bytes, Some(model), 0.0)).fits() => Self::Useless,
                Some(model) => {
                    let kv_cache = model.kv_cache_bytes_per_position.unwrap_or(0);
                    Self::Takes(Sizes { bytes: model.bytes, parameters: model.parameters, kv_cache, context }.copy())
                }
            }),
            Tab::Link => match choice.entry() {
                None => Self::Unknown,
                Some(entry) => {
                    let kv_cache = entry.kv_cache_per_position();
                    Self::Takes(Sizes { bytes: entry.bytes, parameters: entry.parameters, kv_cache, context }.copy())
                }
            },
            Tab::Device => Self::Unknown,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Takes(all) => texts().guesser.smaller_copy(all),
            Self::Useless | Self::Unknown => texts().guesser.smaller_copy_unknown().to_owned(),
        }
    }
}

/// Who was chosen to guess. A choice that is not offered for this model does not count.
pub fn chosen(choice: Choice) -> ExpertGuesser {
    match SmallerCopy::of(choice) {
        SmallerCopy::Useless => ExpertGuesser::Usual,
        SmallerCopy::Takes(_) | SmallerCopy::Unknown => choice.guesser.get(),
    }
}

/// Who guesses; not where it is known that nothing has to be guessed.
#[component]
pub fn GuesserChoice(choice: Choice) -> impl IntoView {
    let copy = Memo::new(move |_| SmallerCopy::of(choice));
    let is_copy = move || choice.guesser.get() == ExpertGuesser::SmallerCopy;
    let change = move |event| {
        choice.guesser.set(match event_target_value(&event).as_str() {
            "copy" => ExpertGuesser::SmallerCopy,
            _ => ExpertGuesser::Usual,
        });
    };
    view! {
        <Show when=move || copy.get() != SmallerCopy::Useless>
            <label class="labelled labelled-row">
                <span>{texts().guesser.label()}</span>
                <select class="field" on:change=change>
                    <option value="usual" prop:selected=move || !is_copy()>{texts().guesser.usual()}</option>
                    <option value="copy" prop:selected=is_copy>{move || copy.get().name()}</option>
                </select>
            </label>
            <Show when=is_copy>
                <p class="hint">{texts().guesser.smaller_copy_hint()}</p>
            </Show>
        </Show>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_about_half_the_bits_of_its_model() {
        let sizes = Sizes { bytes: 32_000_000_000, parameters: 30_000_000_000, kv_cache: 0, context: 4096 };
        let eight = sizes.copy();
        assert!((16_000_000_000..18_000_000_000).contains(&eight), "of eight bits: {eight}");
        let four = Sizes { bytes: 18_000_000_000, ..sizes }.copy();
        assert!((9_500_000_000..11_000_000_000).contains(&four), "of four bits: {four}");
        let with_cache = Sizes { kv_cache: 200_000, ..sizes }.copy();
        assert_eq!(with_cache - eight, 100_000 * 4096, "keys and values in half precision");
    }
}
