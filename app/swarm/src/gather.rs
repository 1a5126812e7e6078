//! Experts of a block on other peers: one call to each holder, one weighted sum back, sums added in router order.

use potluck_plan::{BlockIndex, ExpertHolder, ExpertId, KernelClass, Millis, RemoteExperts, Route};

/// A holder that has not answered after this time is replaced by the next one in order of preference.
pub(crate) const HOLDER_TIMEOUT_MILLIS: f64 = 10_000.0;

/// The expert outputs of one block for a batch, while they are gathered.
pub(crate) struct Gather {
    pub block: BlockIndex,
    pub class: KernelClass,
    pub residual: Vec<f32>,
    pub normed: Vec<f32>,
    routes: Vec<Route>,
    pub parts: Vec<Part>,
    failed: Vec<ExpertHolder>,
}

/// The share of one holder.
pub(crate) struct Part {
    pub holder: ExpertHolder,
    pub routes: Vec<Route>,
    pub asked: Millis,
    pub sum: Option<Vec<f32>>,
}

/// No holder of an expert is left.
pub(crate) struct Unreachable;

impl Gather {
    pub fn new(
        block: BlockIndex,
        class: KernelClass,
        residual: Vec<f32>,
        normed: Vec<f32>,
        routes: Vec<Route>,
    ) -> Self {
        Self { block, class, residual, normed, routes, parts: Vec::new(), failed: Vec::new() }
    }

    /// Splits the routes over the holders: the first one in each expert's list that `is_here` and has not failed.
    pub fn split(
        &mut self,
        remote: &RemoteExperts,
        now: Millis,
        is_here: impl Fn(ExpertHolder) -> bool,
    ) -> Result<(), Unreachable> {
        let routes = self.routes.clone();
        self.parts = self.assign(remote, &routes, now, &is_here)?;
        Ok(())
    }

    /// Gives the share of a holder that does not answer to the next ones. Returns the indices of the new parts.
    pub fn reassign(
        &mut self,
        part: usize,
        remote: &RemoteExperts,
        now: Millis,
        is_here: impl Fn(ExpertHolder) -> bool,
    ) -> Result<Vec<usize>, Unreachable> {
        let lost = self.parts.remove(part);
        self.failed.push(lost.holder);
        let first = self.parts.len();
        let new = self.assign(remote, &lost.routes, now, &is_here)?;
        self.parts.extend(new);
        Ok((first..self.parts.len()).collect())
    }

    fn assign(
        &self,
        remote: &RemoteExperts,
        routes: &[Route],
        now: Millis,
        is_here: &impl Fn(ExpertHolder) -> bool,
    ) -> Result<Vec<Part>, Unreachable> {
        let mut parts: Vec<Part> = Vec::new();
        for (row, route) in routes.iter().enumerate() {
            for (expert, weight) in &route.experts {
                let holder = self.holder(remote, *expert, is_here).ok_or(Unreachable)?;
                let known = parts.iter().position(|part| part.holder == holder);
                let index = known.unwrap_or_else(|| {
                    let routes = vec![Route { experts: Vec::new() }; routes.len()];
                    parts.push(Part { holder, routes, asked: now, sum: None });
                    parts.len() - 1
                });
                parts[index].routes[row].experts.push((*expert, *weight));
            }
        }
        Ok(parts)
    }

    fn holder(
        &self,
        remote: &RemoteExperts,
        expert: ExpertId,
        is_here: &impl Fn(ExpertHolder) -> bool,
    ) -> Option<ExpertHolder> {
        let holders = remote.holders.get(usize::from(expert.0))?;
        holders.iter().copied().find(|holder| !self.failed.contains(holder) && is_here(*holder))
    }

    pub fn is_complete(&self) -> bool {
        self.parts.iter().all(|part| part.sum.is_some())
    }

    /// Residual plus all sums. For each token the sums are added in the order in which the router first chose an
    /// expert of their holder, so that the result does not depend on who answered first.
    pub fn combine(self) -> Option<Vec<f32>> {
        let rows = self.routes.len();
        let mut hidden = self.residual;
        if rows == 0 || !hidden.len().is_multiple_of(rows) {
            return None;
        }
        let width = hidden.len() / rows;
        for (row, route) in self.routes.iter().enumerate() {
            let rank = |part: &Part| {
                let chosen = part.routes[row].experts.first().map(|(expert, _)| *expert)?;
                route.experts.iter().position(|(expert, _)| *expert == chosen)
            };
            let mut order: Vec<(usize, &Part)> =
                self.parts.iter().filter_map(|part| rank(part).map(|rank| (rank, part))).collect();
            order.sort_by_key(|(rank, _)| *rank);
            let mut total = vec![0.0f32; width];
            for (_, part) in order {
                let sum = part.sum.as_ref()?.get(row * width..(row + 1) * width)?;
                total.iter_mut().zip(sum).for_each(|(total, value)| *total += value);
            }
            hidden[row * width..(row + 1) * width].iter_mut().zip(&total).for_each(|(hidden, value)| *hidden += value);
        }
        Some(hidden)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use potluck_plan::PeerId;

    use super::*;

    const A: ExpertHolder = ExpertHolder::Peer(PeerId([1; 16]));
    const B: ExpertHolder = ExpertHolder::Peer(PeerId([2; 16]));

    fn gather() -> (Gather, RemoteExperts) {
        let route = Route { experts: vec![(ExpertId(1), 0.75), (ExpertId(0), 0.25)] };
        let remote = RemoteExperts { block: BlockIndex(0), holders: vec![vec![A, B], vec![B, ExpertHolder::Own]] };
        let gather = Gather::new(BlockIndex(0), KernelClass::Decode, vec![1.0, 2.0], vec![0.0; 2], vec![route]);
        (gather, remote)
    }

    #[test]
    fn each_holder_gets_its_experts_once() {
        let (mut gather, remote) = gather();
        assert!(gather.split(&remote, Millis(0.0), |_| true).is_ok());
        assert_eq!(gather.parts.iter().map(|part| part.holder).collect::<Vec<_>>(), [B, A]);
        gather.parts[0].sum = Some(vec![10.0, 10.0]);
        assert!(!gather.is_complete());
        gather.parts[1].sum = Some(vec![0.5, 0.25]);
        assert_eq!(gather.combine().unwrap(), [11.5, 12.25]);
    }

    #[test]
    fn a_silent_holder_is_replaced_by_the_next() {
        let (mut gather, remote) = gather();
        assert!(gather.split(&remote, Millis(0.0), |_| true).is_ok());
        let new = gather.reassign(0, &remote, Millis(1.0), |_| true).ok().unwrap();
        assert_eq!(gather.parts[new[0]].holder, ExpertHolder::Own, "the own copy is the fallback of expert 1");
    }

    #[test]
    fn no_holder_left_is_an_error() {
        let (mut gather, remote) = gather();
        assert!(gather.split(&remote, Millis(0.0), |holder| holder != A && holder != B).is_err());
    }
}
