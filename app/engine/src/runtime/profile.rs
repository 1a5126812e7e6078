//! Which kernel variant this device uses for which operation.

mod products;

use std::collections::{BTreeSet, HashSet};

use potluck_model::{RouterSpec, Scoring};
use potluck_plan::Arithmetic;
use potluck_shaders::{Addition, Dots, Extras, Format, Job, Kernel, KernelVariant, Lanes, ScanRule, Strategy};

use crate::runtime::gpu::Tier;
use crate::runtime::settings::Settings;
use crate::runtime::tuning_table::{Choice, Shape, Tuning};

/// A recurrence as its kernel computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recurrence {
    /// What a row does to the state.
    pub rule: ScanRule,
    /// Values of a head.
    pub width: u16,
    /// Values of state for each of a head's.
    pub state: u16,
}

/// The variants this device uses. It starts from the device's tier; the self-test removes incorrect variants.
#[derive(Clone, Debug)]
pub struct Profile {
    strategy: Strategy,
    lanes: Option<Lanes>,
    wrong: HashSet<Kernel>,
    rows_agree: bool,
    tuning: Tuning,
    arithmetic: Arithmetic,
    subgroup: u32,
}

impl Profile {
    /// Default profile of a tier and a subgroup size.
    pub fn of(tier: Tier, lanes: Option<Lanes>) -> Self {
        let strategy = if tier == Tier::Software { Strategy::PerThread } else { Strategy::Workgroup };
        Self {
            strategy,
            lanes,
            wrong: HashSet::new(),
            rows_agree: true,
            tuning: Tuning::default(),
            arithmetic: Arithmetic::Exact,
            subgroup: 0,
        }
    }

    /// The same with another arithmetic.
    pub fn with_arithmetic(self, arithmetic: Arithmetic) -> Self {
        Self { arithmetic, ..self }
    }

    /// The same for a device with subgroups of at least so many threads.
    pub fn with_subgroups(self, subgroup: u32) -> Self {
        Self { subgroup, ..self }
    }

    /// Measurements that choose among kernels with identical bits.
    pub fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// Replaces the measurements.
    pub fn set_tuning(&mut self, tuning: Tuning) {
        self.tuning = tuning;
    }

    /// Whether tuning is worthwhile. Where threads share no work, compiling more kernels takes longer than they could
    /// save.
    pub fn is_tunable(&self) -> bool {
        self.strategy == Strategy::Workgroup
    }

    /// Most weight bytes, times groups of vectors, per submit: about 100 ms of work.
    pub fn max_submit_bytes(&self) -> u64 {
        match self.strategy {
            Strategy::PerThread => 16 << 20,
            Strategy::Workgroup => 4 << 30,
        }
    }

    /// Prefill chunk size that makes good use of the device.
    pub fn max_prefill_tokens(&self) -> u32 {
        match self.strategy {
            Strategy::PerThread => Settings::MIN_PREFILL_TOKENS,
            Strategy::Workgroup => potluck_plan::Work::PREFILL_TOKENS as u32,
        }
    }

    /// Never uses this variant again.
    pub fn reject(&mut self, kernel: Kernel) {
        self.wrong.insert(kernel);
    }

    /// Computes decode tokens one by one, because several at a time do not give the same bits as one.
    pub fn reject_groups(&mut self) {
        self.rows_agree = false;
    }

    /// The first candidate not known to be incorrect; the last if all are.
    fn first(&self, candidates: &[Kernel]) -> Kernel {
        candidates
            .iter()
            .copied()
            .find(|kernel| !self.wrong.contains(kernel))
            .unwrap_or(candidates[candidates.len() - 1])
    }

    fn either(&self, make: impl Fn(Strategy) -> Kernel) -> Kernel {
        self.first(&[make(self.strategy), make(Strategy::PerThread)])
    }

    /// RMSNorm.
    pub fn norm(&self) -> Kernel {
        self.either(Kernel::Norm)
    }

    /// RMSNorm in place of a part of each row.
    pub fn norm_part(&self) -> Kernel {
        self.either(Kernel::NormPart)
    }

    /// The rule of a recurrence.
    pub fn scan(&self, recurrence: Recurrence) -> Kernel {
        let Recurrence { rule, width, state } = recurrence;
        let alone = Kernel::Scan { strategy: Strategy::PerThread, rule, width, state };
        if !Kernel::can_share_scan(width, state) {
            return alone;
        }
        self.first(&[Kernel::Scan { strategy: self.strategy, rule, width, state }, alone])
    }

    /// Addition of an output to the hidden vectors.
    pub fn residual(&self, addition: Addition) -> Kernel {
        self.either(|strategy| Kernel::Residual { strategy, addition })
    }

    /// The end of a block whose experts have a network beside them, if a workgroup can share work.
    pub fn beside(&self) -> Option<Kernel> {
        self.allows(&[Kernel::Beside]).then_some(Kernel::Beside)
    }

    /// Expert selection by a router: the plain softmax has a kernel of its own.
    pub fn router(&self, router: &RouterSpec) -> Kernel {
        let (sigmoid, biased) = (router.scoring == Scoring::Sigmoid, router.selection_bias);
        if !sigmoid && !biased && router.scale == 1.0 && router.groups.is_none() {
            return self.either(Kernel::Router);
        }
        self.either(|strategy| Kernel::Choose { strategy, sigmoid, biased })
    }

    /// The kernel that does a plain router's work and normalizes the hidden vectors, if a workgroup can share work.
    pub fn route(&self, router: &RouterSpec) -> Option<Kernel> {
        let plain = self.router(router) == Kernel::Router(Strategy::Workgroup);
        (plain && self.allows(&[Kernel::Route])).then_some(Kernel::Route)
    }

    /// Grouping of (token, expert) pairs by expert.
    pub fn groups(&self) -> Kernel {
        self.either(Kernel::Groups)
    }

    /// The best logit of each segment.
    pub fn segments(&self) -> Kernel {
        self.either(Kernel::Segments)
    }

    /// Sampling of a token; `None` where a workgroup cannot share work.
    pub fn sampler(&self) -> Option<Kernel> {
        self.allows(&[Kernel::Sample]).then_some(Kernel::Sample)
    }

    /// Selection of the best candidates.
    pub fn top(&self) -> Kernel {
        self.either(Kernel::Top)
    }

    /// The log-sum-exp of logits.
    pub fn log_sum_exp(&self) -> Kernel {
        self.either(Kernel::LogSumExp)
    }

    /// Attention.
    pub fn attention(&self, kv_type: potluck_plan::KvCacheType, quads: u16, extras: Extras) -> Kernel {
        self.either(|strategy| Kernel::Attention { kv_type, strategy, quads, extras })
    }

    /// Attention of a prefill chunk; `None` if the device attends to each batch row separately.
    pub fn flash_attention(&self, kv_type: potluck_plan::KvCacheType, quads: u16, extras: Extras) -> Option<Kernel> {
        let kernel = Kernel::FlashAttention { kv_type, quads, extras };
        (quads <= Kernel::MAX_SHARED_QUADS && self.allows(&[kernel])).then_some(kernel)
    }

    /// Decode attention over splits of the context, and the merge of the splits, if a workgroup can share work.
    pub fn split(
        &self,
        kv_type: potluck_plan::KvCacheType,
        quads: u16,
        queries: u32,
        extras: Extras,
    ) -> Option<[Kernel; 2]> {
        let kernels = [Kernel::split(kv_type, quads, queries).with_extras(extras), Kernel::Merge { quads }];
        (quads <= Kernel::MAX_SPLIT_QUADS && self.allows(&kernels)).then_some(kernels)
    }

    /// A decode product fused with the operations before and after it, if a workgroup can share work. With the arithmetic
    /// `packed` it is one of packed integers where the format has one.
    pub fn fused(&self, format: Format, job: Job, n: usize) -> Option<Kernel> {
        let rows = if n == 1 || !self.rows_agree || job.of_experts() { 1 } else { 4 };
        let kernel = self.fused_by(format, rows, job);
        self.allows(&[kernel]).then_some(kernel)
    }

    /// The portable variant of a fused kernel. How its vectors are multiplied depends on the format alone: if one packed
    /// kernel of a format computes incorrectly, none is used, because several of them must have the same bits.
    fn fused_by(&self, format: Format, rows: u8, job: Job) -> Kernel {
        let wrong = |how| {
            self.wrong.iter().any(|kernel| {
                matches!(*kernel, Kernel::Fused { format: f, job, variant, dots: Some(dots), .. }
                    if (f, dots) == (format, how) && variant == KernelVariant::portable(job))
            })
        };
        let used = self.arithmetic == Arithmetic::Packed && format.packing().is_some();
        match [Dots::Packed, Dots::Shifts].into_iter().find(|how| used && !wrong(*how)) {
            Some(dots) => Kernel::fused_packed(format, rows, job, dots),
            None => Kernel::fused(format, rows, job),
        }
    }

    /// The fastest variant of a fused kernel for a `rows` × `cols` matrix. Products of several vectors use the portable
    /// variant.
    pub fn tuned_variant(&self, kernel: Kernel, rows: u32, cols: u32) -> Kernel {
        let Kernel::Fused { format, rows: 1, job, dots, .. } = kernel else { return kernel };
        let shape = Shape::Decode { format, packed: dots.is_some(), job, rows, cols };
        let variant = match self.tuning.get(&shape).map(|tuned| tuned.choice) {
            Some(Choice::Variant(variant)) => variant,
            // Threads that quantize a vector together take half the time.
            _ if dots.is_some() => KernelVariant::shuffled(job, self.subgroup),
            _ => return kernel,
        };
        let quick = Kernel::Fused { format, rows: 1, job, variant, dots };
        if self.allows(&[quick]) { quick } else { kernel }
    }

    /// One kernel for two products of a vector with matrices of two formats, in the variant for the `rows` × `cols` ones of
    /// the first; `None` if each needs its own.
    pub fn joined(&self, formats: (Format, Format), rows: u32, cols: u32) -> Option<Kernel> {
        let (first, second) = formats;
        let parts = [first, second].map(|format| self.fused_by(format, 1, Job::Normed));
        let Kernel::Fused { variant, dots, .. } = self.tuned_variant(parts[0], rows, cols) else { return None };
        let alike = matches!(parts[1], Kernel::Fused { dots: others, .. } if others == dots);
        let kernel = Kernel::Joined { first, second, variant, dots };
        let known = Kernel::JOINED.contains(&(first, second)) && alike;
        (known && self.allows(&parts) && self.allows(&[kernel])).then_some(kernel)
    }

    /// Every kernel that [`Profile::joined`] may return for a pair of formats.
    pub fn all_joined(&self, formats: (Format, Format)) -> BTreeSet<Kernel> {
        let tuned = self.tuning.iter().filter_map(|(shape, _)| match *shape {
            Shape::Decode { format, job: Job::Normed, rows, cols, .. } if format == formats.0 => Some((rows, cols)),
            _ => None,
        });
        // No matrix has no rows, so nothing is measured for it.
        tuned.chain([(0, 0)]).filter_map(|(rows, cols)| self.joined(formats, rows, cols)).collect()
    }

    /// Every variant that [`Profile::tuned_variant`] may return for a job.
    pub fn variants(&self, format: Format, job: Job) -> BTreeSet<Kernel> {
        let portable = self.fused_by(format, 1, job);
        let of = |(shape, _): (&Shape, _)| match *shape {
            Shape::Decode { format: f, job: j, rows, cols, .. } if (f, j) == (format, job) => {
                Some(self.tuned_variant(portable, rows, cols))
            }
            _ => None,
        };
        // No matrix has no rows, so nothing is measured for it.
        let unmeasured = (portable.quantizes() && self.allows(&[portable])).then(|| self.tuned_variant(portable, 0, 0));
        self.tuning.iter().filter_map(of).chain(unmeasured).collect()
    }

    fn allows(&self, kernels: &[Kernel]) -> bool {
        self.strategy == Strategy::Workgroup && kernels.iter().all(|kernel| !self.wrong.contains(kernel))
    }
}
