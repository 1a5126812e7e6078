//! How experts are spread over devices: what the host chooses, and what is in use.

use potluck_panel::{BadPooling, Hedging, WireType};

use crate::sentences;

table! {
    /// How experts are spread over devices, where they are.
    PoolingTexts {
        /// The options' name.
        title = "How experts are spread";
        /// How many devices hold each expert.
        copies = "Devices that hold each expert";
        /// A number of them.
        devices(devices: Number) = [one] "{ $devices } device" [other] "{ $devices } devices";
        /// What a single holder means.
        copies_one_hint = "Takes the least memory. If a device leaves, answers wait until others have loaded its experts.";
        /// What several holders mean.
        copies_more_hint(devices: Number) = "Takes { $devices } times the memory. Where devices have that much, answers go on if one of them leaves.";
        /// When another device that holds an expert is asked, too.
        asked = "When a second device is asked";
        /// Hardly ever.
        off = "Only if the first one is very late";
        /// What it means.
        off_hint = "Sends the least. A slow device holds up each token that needs it.";
        /// The default.
        adaptive = "If the first one takes longer than usual";
        /// What it means.
        adaptive_hint = "Sends at most 30% more. Tokens wait less for a slow device.";
        /// Always.
        at_once(devices: Number) = "Always { $devices } at once";
        /// What it means.
        at_once_hint(devices: Number) = "Sends about { $devices } times as much and uses the first answer. Helps on fast connections, if { $devices } devices hold each expert.";
        /// How numbers to and from experts are written.
        wire = "Numbers sent to experts and back";
        /// 32-bit floats.
        f32 = "Exact (f32)";
        /// What it means.
        f32_hint = "Numbers are not rounded on the way. Sends the most.";
        /// 16-bit floats.
        f16 = "Half the bytes, nearly as exact (f16)";
        /// What it means.
        f16_hint = "Sends half as much. Numbers keep about three digits, so some words of an answer can differ.";
        /// 16-bit floats with fewer digits and a larger range.
        bf16 = "Half the bytes, less exact (bf16)";
        /// What it means.
        bf16_hint = "Sends half as much. Numbers keep about two digits but can be as large as with f32, for models whose numbers are too large for f16.";
        /// Bytes with a scale.
        int8 = "Just over a quarter of the bytes, the least exact (int8)";
        /// What it means.
        int8_hint = "Sends the least. Numbers are rounded in groups of 32, each to 254 steps of its own scale, so answers can differ more. A model whose vectors cannot be divided into such groups uses f32.";
        /// In use: 32-bit floats.
        sends_f32 = "Numbers go to experts and back unrounded (f32).";
        /// In use: 16-bit floats.
        sends_f16 = "Numbers go to experts and back in half the bytes, rounded to about three digits (f16).";
        /// In use: 16-bit floats with fewer digits.
        sends_bf16 = "Numbers go to experts and back in half the bytes, rounded to about two digits (bf16).";
        /// In use: bytes.
        sends_int8 = "Numbers go to experts and back in just over a quarter of the bytes, rounded to 254 steps (int8).";
        /// In use: a second device is hardly ever asked.
        asks_one = "A second device is asked only if the first one is very late.";
        /// In use: a second device is asked.
        asks_adaptive = "A second device is asked if the first one takes longer than usual.";
        /// In use: several are asked.
        asks_several(devices: Number) = "{ $devices } devices are asked at once, and the first answer counts.";
        /// A choice that was kept in the browser and cannot be used. `why`: one of the phrases below.
        replaced_by_usual(why: Text) = "A stored choice of how experts are spread cannot be used: { $why }. The usual choice is used instead.";
        /// Why: no device.
        no_holder = "each expert needs at least one device";
        /// Why: too many or too few devices.
        not_so_many(devices: Number, most: Number) = "{ $devices } devices cannot be asked at once, only 1 to { $most }";
        /// Why: it makes no sense to this page.
        unreadable = "this version of the page does not know it";
    }
}

impl PoolingTexts {
    /// A number format's name.
    #[must_use]
    pub const fn wire_name(&self, wire: WireType) -> &'static str {
        match wire {
            WireType::F32 => self.f32,
            WireType::F16 => self.f16,
            WireType::Bf16 => self.bf16,
            WireType::Int8 => self.int8,
        }
    }

    /// What a number format costs and saves.
    #[must_use]
    pub const fn wire_hint(&self, wire: WireType) -> &'static str {
        match wire {
            WireType::F32 => self.f32_hint,
            WireType::F16 => self.f16_hint,
            WireType::Bf16 => self.bf16_hint,
            WireType::Int8 => self.int8_hint,
        }
    }

    /// A hedging's name.
    #[must_use]
    pub fn hedging_name(&self, hedging: Hedging) -> String {
        match hedging {
            Hedging::Off | Hedging::Copies(0 | 1) => self.off.to_owned(),
            Hedging::Adaptive => self.adaptive.to_owned(),
            Hedging::Copies(devices) => self.at_once(devices),
        }
    }

    /// What a hedging costs and saves.
    #[must_use]
    pub fn hedging_hint(&self, hedging: Hedging) -> String {
        match hedging {
            Hedging::Off | Hedging::Copies(0 | 1) => self.off_hint.to_owned(),
            Hedging::Adaptive => self.adaptive_hint.to_owned(),
            Hedging::Copies(devices) => self.at_once_hint(devices),
        }
    }

    /// What a number of holders costs and saves.
    #[must_use]
    pub fn copies_hint(&self, replicas: u8) -> String {
        if replicas > 1 { self.copies_more_hint(replicas) } else { self.copies_one_hint.to_owned() }
    }

    /// How a room that is up sends numbers to experts, and whom it asks.
    #[must_use]
    pub fn in_use(&self, wire: WireType, hedging: Hedging) -> String {
        let sends = match wire {
            WireType::F32 => self.sends_f32,
            WireType::F16 => self.sends_f16,
            WireType::Bf16 => self.sends_bf16,
            WireType::Int8 => self.sends_int8,
        };
        let asks = match hedging {
            Hedging::Off | Hedging::Copies(0 | 1) => self.asks_one.to_owned(),
            Hedging::Adaptive => self.asks_adaptive.to_owned(),
            Hedging::Copies(devices) => self.asks_several(devices),
        };
        sentences(&[sends, &asks])
    }

    /// Why the usual choice is used instead of one that was kept.
    #[must_use]
    pub fn replaced(&self, error: BadPooling) -> String {
        let why = match error {
            BadPooling::NoHolder => self.no_holder.to_owned(),
            BadPooling::Copies(devices) => self.not_so_many(devices, Hedging::MAX_COPIES),
            BadPooling::Unreadable => self.unreadable.to_owned(),
        };
        self.replaced_by_usual(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texts;

    #[test]
    fn a_choice_that_cannot_be_used_gets_one_sentence() {
        let texts = &texts().pooling;
        assert_eq!(
            texts.replaced(BadPooling::Copies(9)),
            "A stored choice of how experts are spread cannot be used: 9 devices cannot be asked at once, only 1 to 4. The usual choice is used instead."
        );
        assert!(texts.replaced(BadPooling::NoHolder).contains("each expert needs at least one device"));
    }

    #[test]
    fn every_choice_says_what_is_in_use() {
        let texts = &texts().pooling;
        for wire in WireType::ALL {
            let said = texts.in_use(wire, Hedging::Copies(2));
            assert!(said.contains(&format!("({wire})")), "{said}");
            assert!(said.ends_with("2 devices are asked at once, and the first answer counts."), "{said}");
        }
        let asks = |hedging| texts.in_use(WireType::F32, hedging);
        assert_eq!(asks(Hedging::Off), asks(Hedging::Copies(1)), "both ask one");
        assert_ne!(asks(Hedging::Off), asks(Hedging::Adaptive));
    }
}
