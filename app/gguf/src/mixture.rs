//! Names a file's mixture of tensor types.

use std::collections::BTreeMap;

use crate::{Metadata, TensorInfo, TensorType};

/// The common name of a file's quantization: its mixture ("Q4_K_M"), otherwise the type that takes the most bytes;
/// `None` without tensors.
pub fn quantization(metadata: &Metadata, tensors: &[TensorInfo]) -> Option<String> {
    let named = metadata.optional("general.file_type", Metadata::u32).ok().flatten().and_then(file_type_name);
    named.map(str::to_owned).or_else(|| {
        let mut bytes: BTreeMap<TensorType, u64> = BTreeMap::new();
        for tensor in tensors {
            let of_type = bytes.entry(tensor.kind).or_default();
            *of_type = of_type.saturating_add(tensor.bytes);
        }
        bytes.into_iter().max_by_key(|(_, bytes)| *bytes).map(|(kind, _)| kind.to_string())
    })
}

/// Names `general.file_type` by llama.cpp's numbering (`enum llama_ftype`).
fn file_type_name(number: u32) -> Option<&'static str> {
    Some(match number {
        0 => "F32",
        1 => "F16",
        2 => "Q4_0",
        3 => "Q4_1",
        7 => "Q8_0",
        8 => "Q5_0",
        9 => "Q5_1",
        10 => "Q2_K",
        11 => "Q3_K_S",
        12 => "Q3_K_M",
        13 => "Q3_K_L",
        14 => "Q4_K_S",
        15 => "Q4_K_M",
        16 => "Q5_K_S",
        17 => "Q5_K_M",
        18 => "Q6_K",
        19 => "IQ2_XXS",
        20 => "IQ2_XS",
        21 => "Q2_K_S",
        22 => "IQ3_XS",
        23 => "IQ3_XXS",
        24 => "IQ1_S",
        25 => "IQ4_NL",
        26 => "IQ3_S",
        27 => "IQ3_M",
        28 => "IQ2_S",
        29 => "IQ2_M",
        30 => "IQ4_XS",
        31 => "IQ1_M",
        32 => "BF16",
        36 => "TQ1_0",
        37 => "TQ2_0",
        38 => "MXFP4_MOE",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::synthetic::Synthetic;

    #[test]
    fn a_file_without_a_file_type_is_called_after_most_of_its_bytes() {
        let header = Synthetic::default().header().unwrap();
        let most = header.tensors.iter().max_by_key(|tensor| tensor.bytes).unwrap().kind;
        assert_eq!(quantization(&Metadata::default(), &header.tensors), Some(most.to_string()));
        assert_eq!(quantization(&Metadata::default(), &[]), None);
    }

    #[test]
    fn mixtures_have_the_names_people_know() {
        assert_eq!(file_type_name(15), Some("Q4_K_M"));
        assert_eq!(file_type_name(4), None, "a number that is not in use any more");
    }
}
