//! Variants of the fused decode kernels: how threads share a product.

use std::fmt;
use std::str::FromStr;

use crate::Job;

/// How a fused decode kernel divides its work. Every variant adds in the same order and gives the same bits, so the
/// choice affects only speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelVariant {
    /// Results a team of threads computes at a time: 1, 2 or 4, or 8 of a packed sum of experts.
    pub results: u8,
    /// Teams per workgroup: 1 to 8.
    pub teams: u8,
    /// Threads whose sums are added by subgroup shuffles: a power of two up to the team size, or 1 for no shuffles. The
    /// device's subgroups must have at least this many threads.
    pub shuffle: u8,
}

impl KernelVariant {
    /// Threads per team.
    pub const TEAM: u32 = 32;

    const fn new(results: u8, teams: u8, shuffle: u8) -> KernelVariant {
        KernelVariant { results, teams, shuffle }
    }

    /// A good choice on most devices, used until a measurement finds a better one.
    pub fn portable(job: Job) -> KernelVariant {
        match job {
            // A team for each of eight experts, which share the rows.
            job if job.sums() => Self::new(4, 8, 1),
            job => Self::new(if job.gates() { 1 } else { 2 }, 4, 1),
        }
    }

    /// What a packed kernel runs in until it is measured: with as many shuffles as subgroups of at least this size allow. On an
    /// H100 one result a team is quickest for most matrices of blocks.
    pub fn shuffled(job: Job, subgroup: u32) -> KernelVariant {
        let (portable, shuffle) = (Self::portable(job), Self::shuffle_in(subgroup));
        let results = if job.sums() || shuffle == 1 { portable.results } else { 1 };
        Self { results, shuffle, ..portable }
    }

    /// Variants worth trying for a job, the portable one first. `subgroup` is the device's minimum subgroup size, 0 or
    /// 1 if it has no subgroups.
    pub fn candidates(job: Job, subgroup: u32) -> Vec<KernelVariant> {
        // Results and teams: more results per team read a vector less often, fewer give more workgroups.
        // A gated result is two matrix rows. Every candidate costs a compilation.
        let shapes: &[(u8, u8)] = match job {
            job if job.sums() => &[(4, 8), (2, 8), (4, 4), (2, 4)],
            job if job.gates() => &[(2, 4), (2, 8), (1, 8), (1, 4)],
            _ => &[(4, 4), (2, 8), (2, 4), (1, 2)],
        };
        Self::shaped(job, subgroup, shapes)
    }

    /// The same for kernels that quantize their vectors: a workgroup does so for all its results, so few of them do not pay.
    pub fn packed_candidates(job: Job, subgroup: u32) -> Vec<KernelVariant> {
        if job.sums() || job.gates() {
            let mut all = Self::candidates(job, subgroup);
            let shuffle = Self::shuffle_in(subgroup);
            // With fewer shuffles, the sums of so many results do not fit into workgroup memory.
            all.extend((job.sums() && shuffle >= 16).then_some(Self::new(8, 8, shuffle)));
            return all;
        }
        Self::shaped(job, subgroup, &[(4, 4), (4, 8), (2, 8), (2, 4), (1, 4)])
    }

    /// The portable variant and those of these results and teams, each once.
    fn shaped(job: Job, subgroup: u32, shapes: &[(u8, u8)]) -> Vec<KernelVariant> {
        let shuffle = Self::shuffle_in(subgroup);
        let mut all = vec![Self::portable(job)];
        all.extend(shapes.iter().map(|&(results, teams)| Self::new(results, teams, shuffle)));
        let mut seen = std::collections::BTreeSet::new();
        all.retain(|variant| seen.insert(*variant));
        all
    }

    /// The largest shuffle width that fits in subgroups of at least this size.
    pub fn shuffle_in(subgroup: u32) -> u8 {
        let max = subgroup.clamp(1, Self::TEAM);
        1 << (31 - max.leading_zeros())
    }

    /// Threads per workgroup.
    pub fn threads(self) -> u32 {
        u32::from(self.teams) * Self::TEAM
    }

    /// Results per workgroup.
    pub fn all_results(self) -> u32 {
        u32::from(self.teams) * u32::from(self.results)
    }
}

impl fmt::Display for KernelVariant {
    /// Writes `1x4/32`: results × teams / shuffle width.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}/{}", self.results, self.teams, self.shuffle)
    }
}

impl FromStr for KernelVariant {
    type Err = ();

    /// Parses the `Display` output of [`KernelVariant`]. Accepts only variants that have kernels.
    fn from_str(text: &str) -> Result<KernelVariant, ()> {
        let (shape, shuffle) = text.split_once('/').ok_or(())?;
        let (results, teams) = shape.split_once('x').ok_or(())?;
        let number = |text: &str| text.parse::<u8>().map_err(|_| ());
        let variant = Self::new(number(results)?, number(teams)?, number(shuffle)?);
        let known = [1, 2, 4, 8].contains(&variant.results)
            && [1, 2, 4, 8].contains(&variant.teams)
            && variant.shuffle.is_power_of_two()
            && u32::from(variant.shuffle) <= Self::TEAM;
        if known { Ok(variant) } else { Err(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::KernelVariant;
    use crate::Job;

    #[test]
    fn the_portable_variant_comes_first_and_needs_no_subgroups() {
        for job in Job::ALL {
            for subgroup in [0, 1, 4, 8, 16, 32, 64, 128] {
                for all in [KernelVariant::candidates(job, subgroup), KernelVariant::packed_candidates(job, subgroup)] {
                    assert_eq!(all[0], KernelVariant::portable(job));
                    assert_eq!(all[0].shuffle, 1);
                    assert!(
                        all.iter().all(|variant| u32::from(variant.shuffle) <= subgroup.max(1)),
                        "{job:?} {subgroup}"
                    );
                    let mut unlike = all.clone();
                    unlike.dedup();
                    assert!(unlike.len() == all.len() && all.len() >= 4, "{job:?} {subgroup}: {all:?}");
                    assert!(all.iter().all(|variant| variant.threads() <= 256));
                }
            }
        }
    }

    #[test]
    fn what_is_used_before_a_measurement_is_a_candidate() {
        for (job, subgroup) in
            Job::ALL.into_iter().flat_map(|job| [0, 4, 8, 16, 32, 64].map(|subgroup| (job, subgroup)))
        {
            let used = KernelVariant::shuffled(job, subgroup);
            assert!(KernelVariant::packed_candidates(job, subgroup).contains(&used), "{job:?} {subgroup}: {used}");
        }
    }

    #[test]
    fn variants_read_back_and_others_are_refused() {
        for variant in KernelVariant::candidates(Job::Added, 32) {
            assert_eq!(variant.to_string().parse(), Ok(variant));
        }
        for other in ["", "2x4", "3x4/1", "2x4/3", "2x16/1", "2x4/64", "2x4/1 ", "-2x4/1", "2x4/"] {
            assert_eq!(other.parse::<KernelVariant>(), Err(()), "{other}");
        }
    }

    #[test]
    fn shuffles_stay_inside_a_subgroup_and_a_team() {
        let reach: Vec<u8> = [0, 1, 3, 4, 8, 24, 32, 64].into_iter().map(KernelVariant::shuffle_in).collect();
        assert_eq!(reach, [1, 1, 2, 4, 8, 16, 32, 32]);
    }
}
