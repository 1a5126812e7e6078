//! What a room is asked to be: options that the host chooses.

use potluck_panel::{Arithmetic, KvCacheType, Sharing};

table! {
    /// A text for each [`KvCacheType`].
    KvCacheTexts {
        /// 32-bit floats.
        f32 = "Exact (f32)";
        /// 16-bit floats.
        f16 = "Half the memory, nearly as exact (f16)";
        /// Blocks of 8 bits a value.
        q8_0 = "A quarter of the memory, slightly less exact (q8_0)";
        /// Blocks of 4 bits a value.
        q4_0 = "An eighth of the memory, with worse answers, and nonsense with some models (q4_0)";
    }
}

table! {
    /// A name for each [`Arithmetic`].
    ArithmeticTexts {
        /// Floats.
        exact = "Exact (f32)";
        /// Quantized vectors.
        packed = "Up to twice as fast (8-bit integers), slightly less exact";
        /// Half floats, natively.
        matrix = "Faster for long prompts (16-bit floats on the GPU's matrix units), less exact";
    }
}

table! {
    /// A name for each [`Sharing`], and what it means.
    SharingTexts {
        /// The default.
        fastest = "Fastest";
        /// What it means.
        fastest_hint = "The plan with the fastest answers. Slower devices stay as spares.";
        /// No device stays a spare.
        everyone = "Everyone takes part";
        /// What it means.
        everyone_hint = "Every device gets work. Each one adds a network hop, so answers are slower.";
        /// Experts lie on other devices.
        experts = "Spread the experts";
        /// What it means for a model with experts: at most a trip for each block.
        experts_hint(blocks: Number) = "Experts are small parts of the model; each token uses only a few of them. They are spread over the other devices. Unless you choose otherwise, most are kept on two devices, so that an answer goes on if one of them leaves. Slower: up to { $blocks } network round trips per token.";
        /// What it means while the model is not known.
        experts_unknown = "Only for mixture-of-experts models. Experts are small parts of such a model; each token uses only a few of them. They are spread over the other devices. Unless you choose otherwise, most are kept on two devices, so that an answer goes on if one of them leaves. Slower: each token may need one network round trip for every block of the model.";
        /// What it means for a model without experts.
        no_experts = "This model has no experts: it gets the fastest plan.";
    }
}

table! {
    /// Who guesses which experts come next, where they load on demand.
    GuesserTexts {
        /// The choice's name.
        label = "Predict the next experts";
        /// The default.
        usual = "From earlier use, only for experts on other devices";
        /// A shadow, and about how much it takes.
        smaller_copy(takes: Bytes) = "With a smaller copy of the model (uses about { $takes })";
        /// The same of a model that is not known.
        smaller_copy_unknown = "With a smaller copy of the model";
        /// What it means.
        smaller_copy_hint = "The copy is much less precise and works a few tokens ahead of the model. The experts that it chooses are loaded before they are needed. It takes part of the memory that this device lends. Answers stay the same.";
        /// It is being made.
        making(takes: Bytes) = "A smaller copy of the model is being made to guess experts. It takes { $takes }.";
        /// It is made, and has not spoken of any token.
        made(takes: Bytes) = "A smaller copy of the model is ready to guess experts. It takes { $takes }.";
        /// Percent of the experts of some tokens that it named, and how much it takes.
        measured(tokens: Count, percent: Rounded, takes: Bytes) = [one] "Over { $tokens } token, a smaller copy of the model guessed { $percent }% of the experts that were used. It takes { $takes } of memory."
            [other] "Over { $tokens } tokens, a smaller copy of the model guessed { $percent }% of the experts that were used. It takes { $takes } of memory.";
        /// Draft tokens of it: those that the model chose, and all that were sent.
        drafts(right: Count, all: Count) = "It also guessed tokens: { $right } of { $all } were right.";
    }
}

impl KvCacheTexts {
    /// The text of a type.
    #[must_use]
    pub const fn of(&self, kind: KvCacheType) -> &'static str {
        match kind {
            KvCacheType::F32 => self.f32,
            KvCacheType::F16 => self.f16,
            KvCacheType::Q8_0 => self.q8_0,
            KvCacheType::Q4_0 => self.q4_0,
        }
    }
}

impl ArithmeticTexts {
    /// The text of an arithmetic.
    #[must_use]
    pub const fn of(&self, how: Arithmetic) -> &'static str {
        match how {
            Arithmetic::Exact => self.exact,
            Arithmetic::Packed => self.packed,
            Arithmetic::Matrix => self.matrix,
        }
    }
}

impl SharingTexts {
    /// The name of a choice.
    #[must_use]
    pub const fn of(&self, sharing: Sharing) -> &'static str {
        match sharing {
            Sharing::Fastest => self.fastest,
            Sharing::Everyone => self.everyone,
            Sharing::Experts => self.experts,
        }
    }

    /// What a choice means for a model with so many experts a block and so many blocks, as far as they are known.
    #[must_use]
    pub fn hint(&self, sharing: Sharing, experts: Option<u32>, blocks: Option<u32>) -> String {
        match (sharing, experts, blocks) {
            (Sharing::Fastest, ..) => self.fastest_hint.to_owned(),
            (Sharing::Everyone, ..) => self.everyone_hint.to_owned(),
            (Sharing::Experts, Some(0), _) => self.no_experts.to_owned(),
            (Sharing::Experts, Some(_), Some(blocks)) if blocks > 1 => self.experts_hint(blocks),
            (Sharing::Experts, ..) => self.experts_unknown.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_spreading_experts_costs_depends_on_the_model() {
        let hint = |experts, blocks| crate::texts().sharing.hint(Sharing::Experts, experts, blocks);
        assert!(hint(Some(128), Some(48)).ends_with("up to 48 network round trips per token."));
        assert!(hint(None, None).ends_with("each token may need one network round trip for every block of the model."));
        assert_eq!(hint(Some(0), Some(48)), "This model has no experts: it gets the fastest plan.");
    }
}
