//! Numbers of tensor types that only other programs know, so that a refused file is named rightly.

/// Who writes a type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writer {
    /// llama.cpp, until it dropped the type.
    LlamaCppBefore,
    /// llama.cpp or Ollama, until they dropped it or gave it another number.
    LlamaCppOrOllamaBefore,
    /// ik_llama.cpp.
    Ik,
    /// PrismML's fork of llama.cpp.
    Prism,
    /// Microsoft's bitnet.cpp.
    BitNet,
    /// Forks of llama.cpp with TurboQuant, which do not agree on all numbers.
    TurboQuant,
}

use Writer::{BitNet, Ik, LlamaCppBefore, LlamaCppOrOllamaBefore, Prism, TurboQuant};

/// Number, name and writer, by number. 36 to 38 were other types in llama.cpp for a while.
const TYPES: &[(u32, &str, Writer)] = &[
    (4, "Q4_2 of llama.cpp or MXFP4 of Ollama", LlamaCppOrOllamaBefore),
    (5, "Q4_3", LlamaCppBefore),
    (31, "Q4_0_4_4", LlamaCppBefore),
    (32, "Q4_0_4_8", LlamaCppBefore),
    (33, "Q4_0_8_8", LlamaCppBefore),
    (36, "I2_S", BitNet),
    (37, "I8_S", BitNet),
    (38, "TL1", BitNet),
    (43, "TURBO2_0", TurboQuant),
    (44, "TURBO3_0", TurboQuant),
    (45, "TQ3_1S", TurboQuant),
    (46, "TQ4_1S", TurboQuant),
    (47, "TURBO4_0", TurboQuant),
    (97, "Q8_0_X4", Ik),
    (98, "Q8_1_X4", Ik),
    (99, "Q8_2_X4", Ik),
    (133, "Q6_0", Ik),
    (134, "IQ1_BN", Ik),
    (135, "IQ2_BN", Ik),
    (136, "Q8_K64", Ik),
    (137, "IQ2_K", Ik),
    (138, "IQ3_K", Ik),
    (139, "IQ4_K", Ik),
    (140, "IQ5_K", Ik),
    (141, "IQ6_K", Ik),
    (142, "PQ2_0", Prism),
    (143, "PTQ1_0", Prism),
    (144, "IQ4_KS", Ik),
    (145, "IQ2_KS", Ik),
    (146, "IQ4_KSS", Ik),
    (147, "Q8_K16", Ik),
    (148, "Q8_K32", Ik),
    (149, "Q8_KR8", Ik),
    (150, "Q8_K128", Ik),
    (151, "Q8_KV", Ik),
    (152, "IQ5_KS", Ik),
    (153, "IQ2_KT", Ik),
    (154, "IQ3_KT", Ik),
    (155, "IQ4_KT", Ik),
    (156, "IQ3_KS", Ik),
    (157, "IQ2_KL", Ik),
    (158, "IQ1_KT", Ik),
    (202, "Q4_0_R8", Ik),
    (206, "Q5_0_R4", Ik),
    (208, "Q8_0_R8", Ik),
    (210, "Q2_K_R4", Ik),
    (211, "Q3_K_R4", Ik),
    (212, "Q4_K_R4", Ik),
    (213, "Q5_K_R4", Ik),
    (214, "Q6_K_R4", Ik),
    (216, "IQ2_XXS_R4", Ik),
    (217, "IQ2_XS_R4", Ik),
    (218, "IQ3_XXS_R4", Ik),
    (219, "IQ1_S_R4", Ik),
    (220, "IQ4_NL_R4", Ik),
    (221, "IQ3_S_R4", Ik),
    (222, "IQ2_S_R4", Ik),
    (223, "IQ4_XS_R8", Ik),
    (229, "IQ1_M_R4", Ik),
    (230, "BF16_R16", Ik),
    (233, "Q6_0_R4", Ik),
    (335, "IQ2_BN_R4", Ik),
    (337, "IQ2_K_R4", Ik),
    (338, "IQ3_K_R4", Ik),
    (339, "IQ4_K_R4", Ik),
    (340, "IQ5_K_R4", Ik),
    (344, "IQ4_KS_R4", Ik),
    (352, "IQ5_KS_R4", Ik),
    (353, "MXFP4_R8", Ik),
    (397, "Q8_K_R16", Ik),
    (398, "Q8_KV_R8", Ik),
    (399, "Q8_K_R8", Ik),
];

/// A type that is unknown here, as a part of a sentence: its number, and its name and who writes it if that is known.
pub(crate) fn describe(id: u32) -> String {
    let known = TYPES.iter().find(|(number, ..)| *number == id);
    let Some((_, name, writer)) = known else {
        return format!("number {id}, which is unknown here");
    };
    let writer = match writer {
        LlamaCppBefore => "old versions of llama.cpp read",
        LlamaCppOrOllamaBefore => "old versions of these read",
        Ik => "ik_llama.cpp reads",
        Prism => "PrismML's version of llama.cpp reads",
        BitNet => "bitnet.cpp reads",
        TurboQuant => "versions of llama.cpp with TurboQuant read",
    };
    format!("{name} (number {id}), which only {writer}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TensorType;

    #[test]
    fn no_number_is_known_twice() {
        assert!(TYPES.windows(2).all(|pair| pair[0].0 < pair[1].0), "in the order of their numbers");
        assert!(TYPES.iter().all(|(id, ..)| TensorType::from_id(*id).is_none()), "what can be read is not refused");
    }

    #[test]
    fn a_type_is_named_with_the_program_that_reads_it() {
        assert_eq!(describe(156), "IQ3_KS (number 156), which only ik_llama.cpp reads");
        assert_eq!(describe(142), "PQ2_0 (number 142), which only PrismML's version of llama.cpp reads");
        assert_eq!(describe(36), "I2_S (number 36), which only bitnet.cpp reads");
        let of_two = "Q4_2 of llama.cpp or MXFP4 of Ollama (number 4), which only old versions of these read";
        assert_eq!(describe(4), of_two);
        assert_eq!(describe(1000), "number 1000, which is unknown here");
    }
}
