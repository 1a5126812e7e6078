//! Compares what a device sent with what another one computed.

use potluck_plan::Candidates;

/// How far honest devices may be apart whose browsers or drivers compile the kernels differently: a row by this share of its length,
/// logits by this share of the largest one.
pub(crate) const TOLERANCE: f32 = 1.0 / 16.0;

/// How alike two results are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Likeness {
    /// Bit by bit.
    Equal,
    /// Within [`TOLERANCE`].
    Close,
    /// Neither.
    Different,
}

/// Compares rows of `width` values.
pub(crate) fn rows(sent: &[f32], computed: &[f32], width: usize) -> Likeness {
    if sent.len() != computed.len() || width == 0 {
        return Likeness::Different;
    }
    let row = |(sent, computed): (&[f32], &[f32])| {
        if sent.iter().map(|value| value.to_bits()).eq(computed.iter().map(|value| value.to_bits())) {
            return Likeness::Equal;
        }
        let length = |values: &mut dyn Iterator<Item = f32>| values.map(|value| value * value).sum::<f32>().sqrt();
        let apart = length(&mut sent.iter().zip(computed).map(|(a, b)| a - b));
        let within = length(&mut computed.iter().copied()) * TOLERANCE;
        if apart <= within { Likeness::Close } else { Likeness::Different }
    };
    sent.chunks(width).zip(computed.chunks(width)).map(row).max().unwrap_or(Likeness::Equal)
}

/// Compares the best candidates that were sent with at least as many that the host computed.
pub(crate) fn candidates(sent: &Candidates, computed: &Candidates) -> Likeness {
    let count = sent.ids.len();
    if count == 0 || count != sent.logits.len() || count > computed.ids.len() || count > computed.logits.len() {
        return Likeness::Different;
    }
    let (ids, logits) = (&computed.ids[..count], &computed.logits[..count]);
    let bits = |logits: &[f32]| logits.iter().map(|logit| logit.to_bits()).collect::<Vec<u32>>();
    let sum = match (sent.log_sum_exp, computed.log_sum_exp) {
        (None, _) => Likeness::Equal,
        (Some(sent), Some(computed)) if sent.to_bits() == computed.to_bits() => Likeness::Equal,
        (Some(sent), Some(computed)) if (sent - computed).abs() <= TOLERANCE * computed.abs().max(1.0) => {
            Likeness::Close
        }
        _ => return Likeness::Different,
    };
    if sent.ids == ids && bits(&sent.logits) == bits(logits) {
        return sum;
    }
    let within = TOLERANCE * computed.logits.iter().fold(0.0, |most: f32, logit| most.max(logit.abs()));
    let lowest = computed.logits.last().copied().unwrap_or_default();
    let is_close = |((rank, id), logit): ((usize, &u32), &f32)| {
        // This token has about this logit, and so does the token of this rank.
        let of_token = computed.ids.iter().position(|known| known == id).map(|at| computed.logits[at]);
        let is_its = match of_token {
            Some(known) => (known - logit).abs() <= within,
            None => *logit <= lowest + within,
        };
        is_its && (computed.logits[rank] - logit).abs() <= within
    };
    let all = sent.ids.iter().enumerate().zip(&sent.logits).all(is_close);
    if all { Likeness::Close } else { Likeness::Different }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_differ_by_bits_by_rounding_or_altogether() {
        let sent = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(rows(&sent, &sent, 2), Likeness::Equal);
        assert_eq!(rows(&sent, &[1.0, 2.0, 3.0, 4.000_001], 2), Likeness::Close);
        assert_eq!(rows(&sent, &[1.0, 2.0, 3.0, 4.5], 2), Likeness::Different, "one row is enough");
        assert_eq!(rows(&sent, &[f32::NAN; 4], 2), Likeness::Different);
        assert_eq!(rows(&sent, &sent[..2], 2), Likeness::Different, "a row is missing");
        assert_eq!(rows(&[0.0], &[-0.0], 1), Likeness::Close, "equal numbers, other bits");
    }

    fn best(ids: &[u32], logits: &[f32]) -> Candidates {
        Candidates { ids: ids.to_vec(), logits: logits.to_vec(), sampled: None, log_sum_exp: None }
    }

    #[test]
    fn candidates_differ_if_another_token_is_called_the_best() {
        let computed = best(&[5, 7, 9, 11], &[10.0, 9.9, 4.0, -10.0]);
        assert_eq!(candidates(&best(&[5], &[10.0]), &computed), Likeness::Equal);
        assert_eq!(candidates(&best(&[7], &[10.0]), &computed), Likeness::Close, "two that are nearly as good");
        assert_eq!(candidates(&best(&[9], &[10.0]), &computed), Likeness::Different, "with the best one's logit");
        assert_eq!(candidates(&best(&[9], &[4.0]), &computed), Likeness::Different, "with its own");
        assert_eq!(candidates(&best(&[99], &[10.0]), &computed), Likeness::Different, "one that is not among the best");
        assert_eq!(candidates(&best(&[5, 7], &[10.0, 9.9001]), &computed), Likeness::Close);
        assert_eq!(candidates(&best(&[], &[]), &computed), Likeness::Different);
        let summed = |sum| Candidates { log_sum_exp: Some(sum), ..best(&[5], &[10.0]) };
        assert_eq!(candidates(&summed(10.7), &computed), Likeness::Different, "the host has none");
        let computed = Candidates { log_sum_exp: Some(10.7), ..computed };
        let of = |sum| candidates(&summed(sum), &computed);
        assert_eq!([of(10.7), of(10.70001), of(12.0)], [Likeness::Equal, Likeness::Close, Likeness::Different]);
    }
}
