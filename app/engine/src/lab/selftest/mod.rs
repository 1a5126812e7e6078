//! Tests every kernel in use against its CPU reference, on the device itself, with random data and odd shapes.

mod attention;
mod case;
mod cases;
mod data;
mod fused;
mod general;
mod of_weights;
#[cfg(test)]
mod outside;
#[cfg(test)]
mod packed;
mod recurrent;
mod sample;
mod split_attention;

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::KvCacheType;
use potluck_shaders::{Job, Kernel, KernelVariant, Operand, reference};

use crate::lab::microbench::Probe;
use crate::runtime::engine::Engine;
use crate::runtime::error::EngineError;

/// Cases that run in one go.
const AT_ONCE: usize = 16;

/// What a kernel should have computed.
#[derive(Clone, Debug)]
pub(crate) enum Expected {
    /// Floats, within a distance relative to their root mean square.
    Floats(Vec<f32>, f64),
    /// Heads of the given number of values, stored in the KV cache with the loss of its type.
    Cached(KvCacheType, usize, Vec<f32>),
    /// Exactly these words.
    Words(Vec<u32>),
}

/// A probe and its expected output.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub probe: Probe,
    pub expected: Expected,
}

/// The result for one kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelVerdict {
    /// The kernel variant.
    pub name: String,
    /// Largest error, relative to the root mean square of the expected values.
    pub worst: f64,
    /// Largest allowed error.
    pub tolerance: f64,
    /// Whether the error is within the tolerance.
    pub ok: bool,
    /// The slower variant used instead.
    pub replaced_by: Option<String>,
}

/// The result for the device.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// One verdict per tested kernel.
    pub kernels: Vec<KernelVerdict>,
    /// False if some kernel is wrong and has no replacement, so answers would be wrong.
    pub usable: bool,
    /// Some kernel is wrong and a slower one replaces it.
    pub fallback: bool,
    /// Whether several vectors at a time give the bits of one; if not, they are computed one by one.
    pub rows_agree: bool,
}

impl Expected {
    /// The largest error, and the largest allowed one.
    fn judge(&self, bytes: &[u8]) -> (f64, f64) {
        match self {
            Self::Floats(expected, tolerance) => {
                let got = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
                (distance(got, expected), *tolerance)
            }
            Self::Cached(kv_type, dim, expected) => {
                let heads = bytes.chunks_exact(4 * kv_type.head_words(*dim as u32) as usize);
                let got = heads.flat_map(|head| reference::load(*kv_type, head, *dim));
                // Half a step in blocks whose largest value is about three times the root mean square; a whole step at
                // the far end of the 4-bit range.
                let tolerance = match kv_type {
                    KvCacheType::F32 => 1e-3,
                    KvCacheType::F16 => 2e-3,
                    KvCacheType::Q8_0 => 2e-2,
                    KvCacheType::Q4_0 => 0.5,
                };
                (distance(got, expected), tolerance)
            }
            Self::Words(expected) => {
                let got = bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
                let wrong = got.zip(expected).filter(|(got, expected)| got != *expected).count();
                (wrong as f64, 0.0)
            }
        }
    }
}

/// Largest difference divided by the root mean square of the expected values (without the zeros of a mostly empty
/// cache). NaN counts as infinite.
fn distance(got: impl Iterator<Item = f32>, expected: &[f32]) -> f64 {
    let square: f64 = expected.iter().map(|&v| f64::from(v) * f64::from(v)).sum();
    let count = expected.iter().filter(|v| **v != 0.0).count().max(1);
    let rms = (square / count as f64).sqrt().max(1e-30);
    got.zip(expected)
        .map(|(a, &b)| if a.is_finite() { (f64::from(a) - f64::from(b)).abs() / rms } else { f64::INFINITY })
        .fold(0.0, f64::max)
}

impl Engine {
    /// Compiles and tests kernels that might replace one in use, until the given time of
    /// [`crate::runtime::clock::now`]. Records in [`crate::runtime::core::Core::tried`] whether each is correct and
    /// gives the same bits.
    /// Returns whether something was compiled.
    ///
    /// # Errors
    /// The device is gone.
    pub(crate) async fn try_candidates(
        &self,
        portable: Kernel,
        candidates: &[Kernel],
        until: f64,
    ) -> Result<bool, EngineError> {
        let new: Vec<Kernel> = {
            let core = self.inner.core.borrow();
            candidates.iter().copied().filter(|kernel| !core.model.tried.contains_key(kernel)).collect()
        };
        // A browser compiles them all in parallel; native builds compile one by one.
        let at_once = if cfg!(target_arch = "wasm32") { new.len().max(1) } else { 1 };
        for some in new.chunks(at_once) {
            if crate::runtime::clock::now() > until {
                break;
            }
            self.try_some(portable, some).await?;
        }
        Ok(!new.is_empty())
    }

    /// The cases of kernels: the CPU computes what to expect.
    async fn cases(&self, kernels: impl IntoIterator<Item = Kernel>) -> Vec<Case> {
        let mut cases = Vec::new();
        for kernel in kernels {
            cases.extend(cases::of(kernel));
            self.give_way().await;
        }
        cases
    }

    /// Runs cases; the bytes of each output.
    async fn probe(&self, cases: &[Case]) -> Result<Vec<Vec<u8>>, EngineError> {
        let mut outputs = Vec::new();
        for some in cases.chunks(AT_ONCE) {
            let probes: Vec<Probe> = some.iter().map(|case| case.probe.clone()).collect();
            let launched = self.inner.core.borrow_mut().launch_probes(&probes);
            outputs.extend(launched.outputs().await?);
            self.give_way().await;
        }
        Ok(outputs)
    }

    async fn try_some(&self, portable: Kernel, new: &[Kernel]) -> Result<(), EngineError> {
        let all = std::iter::once(portable).chain(new.iter().copied());
        if let Err(error) = self.compile(all.clone().collect()).await {
            self.inner.core.borrow().check_alive()?;
            // If one of them does not compile, none is used.
            log::warn!("kernels are not tuned: {error}");
            self.inner.core.borrow_mut().model.tried.extend(new.iter().map(|&kernel| (kernel, false)));
            return Ok(());
        }
        let cases = self.cases(all).await;
        let outputs = self.probe(&cases).await?;
        let mut core = self.inner.core.borrow_mut();
        core.model.tried.extend(new.iter().map(|&kernel| (kernel, true)));
        let wrong = cases.iter().zip(&outputs).filter(|(case, output)| {
            let (error, tolerance) = case.expected.judge(output);
            error > tolerance
        });
        let wrong = wrong.map(|(case, _)| case.probe.kernel).chain(other_bits(&cases, &outputs));
        for kernel in wrong.filter(|kernel| *kernel != portable) {
            log::warn!("{} is wrong here, or has other bits than {}", kernel.name(), portable.name());
            core.model.tried.insert(kernel, false);
            // Nothing measures these, so nothing asks whether they were right.
            if kernel.parts().is_some() {
                core.model.profile.reject(kernel);
            }
        }
        Ok(())
    }

    /// Tests every kernel in use. A wrong kernel is replaced by its slower variant from now on; the verdict reports it.
    ///
    /// # Errors
    /// The device is gone.
    pub async fn self_test(&self) -> Result<Verdict, EngineError> {
        let mut tried: BTreeMap<Kernel, KernelVerdict> = BTreeMap::new();
        let mut rows_agree = true;
        loop {
            let in_use = self.inner.core.borrow().model.kernels_in_use();
            let new: Vec<Kernel> = in_use.iter().copied().filter(|kernel| !tried.contains_key(kernel)).collect();
            if new.is_empty() {
                return Ok(self.verdict(tried, &in_use, rows_agree));
            }
            let cases = self.cases(new).await;
            let outputs = self.probe(&cases).await?;
            for (case, output) in cases.iter().zip(&outputs) {
                let (error, tolerance) = case.expected.judge(output);
                let kernel = case.probe.kernel;
                let verdict = tried.entry(kernel).or_insert_with(|| KernelVerdict {
                    name: kernel.name(),
                    worst: 0.0,
                    tolerance,
                    ok: true,
                    replaced_by: None,
                });
                verdict.worst = verdict.worst.max(error);
                verdict.ok &= error <= tolerance;
            }
            for kernel in other_bits(&cases, &outputs) {
                tried.entry(kernel).and_modify(|verdict| verdict.ok = false);
            }
            let mut core = self.inner.core.borrow_mut();
            tried.iter().filter(|(_, verdict)| !verdict.ok).for_each(|(&kernel, _)| core.model.profile.reject(kernel));
            if rows_agree && !agree(&cases, &outputs) {
                rows_agree = false;
                core.model.profile.reject_groups();
            }
            core.drop_programs();
        }
    }

    fn verdict(&self, tried: BTreeMap<Kernel, KernelVerdict>, in_use: &BTreeSet<Kernel>, rows_agree: bool) -> Verdict {
        let usable = in_use.iter().all(|kernel| tried.get(kernel).is_none_or(|verdict| verdict.ok));
        let mut kernels = Vec::new();
        let mut fallback = !rows_agree;
        for (kernel, mut verdict) in tried {
            if !verdict.ok && !in_use.contains(&kernel) {
                fallback = true;
                verdict.replaced_by = kernel.fallback().map(Kernel::name);
            }
            kernels.push(verdict);
        }
        Verdict { kernels, usable, fallback, rows_agree }
    }
}

/// Whether matrix-vector kernels give the same bits for several vectors as for one: their cases use the same data.
fn agree(cases: &[Case], outputs: &[Vec<u8>]) -> bool {
    let mut first: BTreeMap<String, &Vec<u8>> = BTreeMap::new();
    cases.iter().zip(outputs).all(|(case, output)| match case.probe.kernel {
        Kernel::MatVec { format, strategy, rows: 1 | 4, operand } if operand != Operand::Expert => {
            let key = format!("{format:?} {strategy:?} {operand:?}");
            *first.entry(key).or_insert(output) == output
        }
        Kernel::Fused { format, rows: 1 | 4, job, variant, dots }
            if !job.of_experts() && variant == KernelVariant::portable(job) =>
        {
            let key = format!("{format:?} {job:?} {dots:?}");
            *first.entry(key).or_insert(output) == output
        }
        _ => true,
    })
}

/// Tiled products whose bits differ from another tile's, and fused products whose bits differ from the portable
/// variant's. Their cases begin with the same vectors. A sum of one expert is its product alone.
fn other_bits(cases: &[Case], outputs: &[Vec<u8>]) -> Vec<Kernel> {
    let mut first: BTreeMap<String, &Vec<u8>> = BTreeMap::new();
    let differs = |(case, output): (&Case, &'_ Vec<u8>), first: &Vec<u8>| {
        let both = output.len().min(first.len());
        (output[..both] != first[..both]).then_some(case.probe.kernel)
    };
    let is_portable = |kernel| match kernel {
        Kernel::Fused { job, variant, .. } => variant == KernelVariant::portable(job),
        Kernel::Joined { .. } => false,
        _ => true,
    };
    let (portable, others): (Vec<_>, Vec<_>) =
        cases.iter().zip(outputs).partition(|(case, _)| is_portable(case.probe.kernel));
    let tiled = portable.into_iter().chain(others).filter_map(|(case, output)| match case.probe.kernel {
        // The results of one of its products come first.
        Kernel::Joined { .. } => {
            let (format, packed) = fused::lead(case)?;
            Some((format!("{format:?} {packed} {:?} {:?}", Job::Normed, None::<u32>), (case, output)))
        }
        Kernel::Fused { format, rows: 1, job, dots, .. } => {
            let (job, used) = match fused::summed(case) {
                Some(1) => (job.alone(), None),
                used => (job, used),
            };
            Some((format!("{format:?} {} {job:?} {used:?}", dots.is_some()), (case, output)))
        }
        Kernel::MatMul { format, operand, .. }
        | Kernel::Packed { format, operand, .. }
        | Kernel::Matrix { format, operand, .. } => {
            let how = match case.probe.kernel {
                Kernel::Packed { .. } => "packed ",
                Kernel::Matrix { .. } => "matrix ",
                _ => "",
            };
            // The two cases of an expert kernel differ only in their uniforms.
            let uniform = if operand == Operand::Expert { &case.probe.params[..] } else { &[] };
            Some((format!("{how}{format:?} {operand:?} {uniform:?}"), (case, output)))
        }
        _ => None,
    });
    tiled.filter_map(|(key, (case, output))| differs((case, output), first.entry(key).or_insert(output))).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use potluck_shaders::{Format, Job};

    use super::*;

    #[test]
    fn a_wrong_value_is_seen() {
        let expected = Expected::Floats(vec![1.0, -1.0, 1.0], 1e-4);
        let bytes = |values: [f32; 3]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let (error, tolerance) = expected.judge(&bytes([1.0, -1.0, 1.00001]));
        assert!(error <= tolerance && error > 0.0);
        assert!(expected.judge(&bytes([1.0, -1.0, 1.01])).0 > tolerance);
        assert_eq!(expected.judge(&bytes([f32::NAN, -1.0, 1.0])).0, f64::INFINITY);
        assert_eq!(Expected::Words(vec![1, 2]).judge(&[1, 0, 0, 0, 3, 0, 0, 0]).0, 1.0);
    }

    /// One device sums its experts in the kernel, several send each product: both must have the same bits.
    #[test]
    fn a_sum_of_experts_is_compared_with_their_products() {
        for jobs in [[Job::ExpertDown, Job::ExpertSum], [Job::BiasedDown, Job::BiasedSum]] {
            is_compared(jobs.map(|job| Kernel::fused(Format::Q4_K, 1, job)));
        }
    }

    fn is_compared(kernels: [Kernel; 2]) {
        let cases: Vec<Case> = kernels.into_iter().flat_map(cases::of).collect();
        let mut outputs: Vec<Vec<u8>> =
            cases.iter().map(|case| vec![1; case.probe.bindings[case.probe.output].len()]).collect();
        let alone = cases.iter().position(|case| fused::summed(case) == Some(1)).unwrap();
        assert_eq!(outputs[alone].len(), outputs[0].len(), "the same products");
        outputs[alone + 1..].iter_mut().for_each(|sums| sums.fill(2));
        assert_eq!(other_bits(&cases, &outputs), [], "sums of several experts are something else");
        outputs[alone][40] += 1;
        assert_eq!(other_bits(&cases, &outputs), kernels[1..]);
    }

    #[test]
    fn every_variant_has_a_case() {
        let all = [Kernel::all(&[16, 32]), Kernel::all_native()].concat();
        for kernel in all.into_iter().filter(|kernel| !matches!(kernel, Kernel::Stream | Kernel::Peak { .. })) {
            assert!(!cases::of(kernel).is_empty(), "{}", kernel.name());
        }
    }
}
