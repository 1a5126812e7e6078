//! The expert outputs of one block for a batch, while they are gathered: one vector for each pair of token and expert, or for a token the
//! weighted sum of all its experts.

use std::collections::BTreeSet;

use potluck_plan::{
    BlockIndex, ExpertHolder, ExpertId, ExpertOutputs, ExpertRoute, KernelClass, Millis, PeerId, StageId, WireType,
};

/// So many numbers cannot be guessed.
const SECRET: usize = 64;

/// What is gathered.
pub(crate) struct Gather {
    pub stage: StageId,
    pub block: BlockIndex,
    pub class: KernelClass,
    pub began: Millis,
    /// Other devices were asked.
    pub asks_others: bool,
    /// How many of them were asked at first, without those that were asked besides or in their place.
    pub first_asked: u16,
    /// Which calls each expert waited for at first ([`super::asked::pattern`]).
    pub pattern: String,
    /// Bytes of vectors in the first calls and their answers.
    pub first_bytes: u64,
    /// Bytes of vectors in all calls and their answers.
    pub asked_bytes: u64,
    /// When the own engine had computed its share.
    pub own_done: Option<Millis>,
    /// Devices whose outputs are used.
    pub helpers: BTreeSet<PeerId>,
    /// Devices that said that they cannot compute some of it, or said nothing.
    pub unable: BTreeSet<PeerId>,
    residual: Vec<f32>,
    normed: Vec<f32>,
    routes: Vec<ExpertRoute>,
    width: usize,
    /// In the order of the routes.
    pairs: Vec<Pair>,
    /// One vector for each pair; of a token with a sum, the first pair's is the sum.
    outputs: Vec<f32>,
    /// Which tokens have a sum.
    summed: Vec<bool>,
    missing: usize,
}

/// A token and one of its experts.
struct Pair {
    token: usize,
    expert: ExpertId,
    is_done: bool,
    /// Holders that cannot compute it.
    refused: Vec<ExpertHolder>,
}

/// What a piece of work that ended at a router has computed, for each token of its batch.
pub(crate) struct RouterOutput {
    pub residual: Vec<f32>,
    pub normed: Vec<f32>,
    pub routes: Vec<ExpertRoute>,
}

/// What a holder is asked for: some pairs, and the vectors of their tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CallShare {
    pub rows: Vec<Vec<ExpertId>>,
    pub normed: Vec<f32>,
    /// The router's weights of `rows`, if sums are asked for; else empty.
    pub weights: Vec<Vec<f32>>,
}

/// What is asked of some pairs' experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A vector for each pair.
    Vectors,
    /// A weighted sum for each token; the pairs are all of its pairs.
    Sums,
}

impl CallShare {
    /// Vectors in the answer.
    pub fn vectors(&self) -> usize {
        if self.weights.is_empty() { self.rows.iter().map(Vec::len).sum() } else { self.rows.len() }
    }

    /// True if the answer has one weighted sum a token.
    pub fn has_sums(&self) -> bool {
        !self.weights.is_empty()
    }
}

impl Gather {
    /// `None` if the sizes do not fit each other, or there is no pair.
    pub fn new(
        stage: StageId,
        block: BlockIndex,
        class: KernelClass,
        output: RouterOutput,
        width: usize,
        began: Millis,
    ) -> Option<Self> {
        let RouterOutput { residual, normed, routes } = output;
        let pair = |token: usize| {
            move |(expert, _): &(ExpertId, f32)| Pair { token, expert: *expert, is_done: false, refused: Vec::new() }
        };
        let pairs: Vec<Pair> =
            routes.iter().enumerate().flat_map(|(token, route)| route.experts.iter().map(pair(token))).collect();
        let size = routes.len() * width;
        let fits = residual.len() == size && normed.len() == size && !pairs.is_empty();
        let (outputs, missing) = (vec![0.0; pairs.len() * width], pairs.len());
        let summed = vec![false; routes.len()];
        let (asks_others, first_asked, own_done) = (false, 0, None);
        let (helpers, unable) = (BTreeSet::new(), BTreeSet::new());
        let (pattern, first_bytes, asked_bytes) = (String::new(), 0, 0);
        fits.then_some(Self {
            stage,
            block,
            class,
            began,
            asks_others,
            first_asked,
            pattern,
            first_bytes,
            asked_bytes,
            own_done,
            helpers,
            unable,
            residual,
            normed,
            routes,
            width,
            pairs,
            outputs,
            summed,
            missing,
        })
    }

    /// Bytes of vectors in calls and their answers, for each token of the batch.
    pub fn bytes_a_token(&self) -> f64 {
        self.asked_bytes as f64 / self.routes.len().max(1) as f64
    }

    /// Milliseconds in which nothing but other devices was waited for, if all outputs are there now; none if nobody else
    /// was asked.
    pub fn waited(&self, now: Millis) -> Option<f64> {
        let since = self.own_done.map_or(self.began.0, |own| own.0.max(self.began.0));
        self.asks_others.then_some((now.0 - since).max(0.0))
    }

    /// All pairs that have no vector yet.
    pub fn missing(&self) -> Vec<usize> {
        (0..self.pairs.len()).filter(|pair| !self.pairs[*pair].is_done).collect()
    }

    pub fn is_missing(&self, pair: usize) -> bool {
        !self.pairs[pair].is_done
    }

    pub fn is_complete(&self) -> bool {
        self.missing == 0
    }

    pub fn expert(&self, pair: usize) -> ExpertId {
        self.pairs[pair].expert
    }

    /// A holder cannot compute these pairs.
    pub fn refuse(&mut self, pairs: &[usize], holder: ExpertHolder) {
        pairs.iter().for_each(|pair| self.pairs[*pair].refused.push(holder));
    }

    pub fn has_refused(&self, pair: usize, holder: ExpertHolder) -> bool {
        self.pairs[pair].refused.contains(&holder)
    }

    /// Pairs, which are in order, by their tokens.
    fn by_token<'a>(&'a self, pairs: &'a [usize]) -> impl Iterator<Item = (usize, &'a [usize])> {
        let groups = pairs.chunk_by(|a, b| self.pairs[*a].token == self.pairs[*b].token);
        groups.filter_map(|group| Some((self.pairs[*group.first()?].token, group)))
    }

    /// True if these pairs are all pairs of their tokens.
    pub fn are_whole_tokens(&self, pairs: &[usize]) -> bool {
        self.by_token(pairs).all(|(token, group)| group.len() == self.routes[token].experts.len())
    }

    /// True if a sum for each token is less than a vector for each of these pairs.
    pub fn are_several_a_token(&self, pairs: &[usize]) -> bool {
        self.tokens(pairs) < pairs.len()
    }

    /// The pairs in groups of at most about so many, none of which cuts a token.
    pub fn split(&self, pairs: &[usize], most: usize) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (_, token) in self.by_token(pairs) {
            match groups.last_mut().filter(|group| group.len() + token.len() <= most) {
                Some(group) => group.extend(token),
                None => groups.push(token.to_vec()),
            }
        }
        groups
    }

    /// What a holder needs to know to compute these pairs, which are in order.
    pub fn share(&self, pairs: &[usize], asked: Asked) -> CallShare {
        let mut share = CallShare::default();
        let mut last = None;
        for Pair { token, expert, .. } in pairs.iter().map(|pair| &self.pairs[*pair]) {
            if last.replace(*token) != Some(*token) {
                share.normed.extend(&self.normed[token * self.width..(token + 1) * self.width]);
                share.rows.push(Vec::new());
            }
            share.rows.last_mut().into_iter().for_each(|row| row.push(*expert));
        }
        if asked == Asked::Sums {
            let weights = |token: usize| self.routes[token].experts.iter().map(|(_, weight)| *weight).collect();
            share.weights = self.by_token(pairs).map(|(token, _)| weights(token)).collect();
        }
        share
    }

    fn tokens(&self, pairs: &[usize]) -> usize {
        self.by_token(pairs).count()
    }

    /// Vectors in the answer.
    fn vectors(&self, pairs: &[usize], asked: Asked) -> usize {
        match asked {
            Asked::Vectors => pairs.len(),
            Asked::Sums => self.tokens(pairs),
        }
    }

    /// Bytes of the vectors that a share and its answer carry.
    pub fn bytes(&self, pairs: &[usize], asked: Asked, wire: WireType) -> u64 {
        wire.bytes(((self.tokens(pairs) + self.vectors(pairs, asked)) * self.width) as u64)
    }

    /// True if these can be the outputs of so many pairs.
    pub fn are_outputs(&self, pairs: &[usize], asked: Asked, outputs: &[f32]) -> bool {
        outputs.len() == self.vectors(pairs, asked) * self.width && outputs.iter().all(|value| value.is_finite())
    }

    /// Numbers that holders are not told, as bits: some of the residual stream. They are hashed for each answer, and all of a prompt's would
    /// take milliseconds.
    pub fn secret(&self) -> impl Iterator<Item = u32> {
        self.residual.iter().take(SECRET).map(|value| value.to_bits())
    }

    /// Takes the vectors of pairs, or the sums of their tokens; what is there already stays. Returns how many pairs were missing.
    pub fn take(&mut self, pairs: &[usize], asked: Asked, outputs: &[f32]) -> usize {
        let before = self.missing;
        match asked {
            Asked::Vectors => {
                for (pair, vector) in pairs.iter().zip(outputs.chunks(self.width)) {
                    if !std::mem::replace(&mut self.pairs[*pair].is_done, true) {
                        self.outputs[pair * self.width..(pair + 1) * self.width].copy_from_slice(vector);
                        self.missing -= 1;
                    }
                }
            }
            Asked::Sums => {
                let tokens: Vec<Vec<usize>> = self.by_token(pairs).map(|(_, token)| token.to_vec()).collect();
                for (token, sum) in tokens.iter().zip(outputs.chunks(self.width)) {
                    self.take_sum(token, sum);
                }
            }
        }
        before - self.missing
    }

    /// A token's sum counts unless all its vectors are there.
    fn take_sum(&mut self, pairs: &[usize], sum: &[f32]) {
        let Some(first) = pairs.first().filter(|_| pairs.iter().any(|pair| !self.pairs[*pair].is_done)) else { return };
        for pair in pairs {
            self.missing -= usize::from(!std::mem::replace(&mut self.pairs[*pair].is_done, true));
        }
        self.outputs[first * self.width..(first + 1) * self.width].copy_from_slice(sum);
        self.summed[self.pairs[*first].token] = true;
    }

    /// Everything that the engine needs to go on. A sum is the output of one expert with the weight 1: adding it to nothing changes no
    /// bit of it.
    pub fn finish(self) -> ExpertOutputs {
        let Self { block, residual, mut routes, mut outputs, summed, width, .. } = self;
        if summed.contains(&true) {
            let mut all = std::mem::take(&mut outputs);
            let mut rest = &mut all[..];
            for (route, summed) in routes.iter_mut().zip(summed) {
                let (vectors, later) = std::mem::take(&mut rest).split_at_mut(route.experts.len() * width);
                rest = later;
                if summed {
                    route.experts.truncate(1);
                    route.experts.iter_mut().for_each(|(_, weight)| *weight = 1.0);
                }
                outputs.extend_from_slice(&vectors[..route.experts.len() * width]);
            }
        }
        ExpertOutputs { block, residual, routes, outputs }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    const A: ExpertHolder = ExpertHolder::Peer(PeerId([1; 16]));

    fn route(experts: &[u16]) -> ExpertRoute {
        ExpertRoute { experts: experts.iter().map(|expert| (ExpertId(*expert), 0.5)).collect() }
    }

    /// Two tokens of two values; pairs 0 and 1 are the first token's.
    fn gather() -> Gather {
        let routes = vec![route(&[3, 1]), route(&[1, 2])];
        let (residual, normed) = (vec![1.0, 2.0, 3.0, 4.0], vec![10.0, 20.0, 30.0, 40.0]);
        let output = RouterOutput { residual, normed, routes };
        Gather::new(StageId(0), BlockIndex(5), KernelClass::Decode, output, 2, Millis(0.0)).unwrap()
    }

    #[test]
    fn only_tokens_that_use_a_holder_are_sent() {
        let gather = gather();
        let share = gather.share(&[2, 3], Asked::Vectors);
        assert_eq!(share.rows, [[ExpertId(1), ExpertId(2)]]);
        assert_eq!(share.normed, [30.0, 40.0], "the second token alone");
        assert_eq!(gather.share(&[1, 2], Asked::Vectors).rows, [[ExpertId(1)], [ExpertId(1)]]);
        assert_eq!(gather.bytes(&[2, 3], Asked::Vectors, WireType::F32), 3 * 2 * 4, "a vector there, two back");
        assert_eq!(gather.bytes(&[2, 3], Asked::Vectors, WireType::F16), 3 * 2 * 2);
    }

    #[test]
    fn outputs_are_in_router_order_whoever_answers_first() {
        let mut gather = gather();
        assert_eq!(gather.take(&[1, 2], Asked::Vectors, &[1.1, 1.2, 2.1, 2.2]), 2);
        assert_eq!(gather.missing(), [0, 3]);
        assert_eq!(gather.take(&[0, 3], Asked::Vectors, &[0.1, 0.2, 3.1, 3.2]), 2);
        assert!(gather.is_complete());
        assert_eq!(gather.finish().outputs, [0.1, 0.2, 1.1, 1.2, 2.1, 2.2, 3.1, 3.2]);
    }

    #[test]
    fn the_first_answer_counts() {
        let mut gather = gather();
        gather.take(&[0, 1], Asked::Vectors, &[1.0; 4]);
        assert_eq!(gather.take(&[0, 1, 2], Asked::Vectors, &[9.0; 6]), 1, "only the third pair was missing");
        gather.take(&[3], Asked::Vectors, &[3.0; 2]);
        assert_eq!(gather.finish().outputs, [1.0, 1.0, 1.0, 1.0, 9.0, 9.0, 3.0, 3.0]);
    }

    #[test]
    fn a_sum_stands_for_all_experts_of_its_token() {
        let mut gather = gather();
        let share = gather.share(&[0, 1, 2, 3], Asked::Sums);
        assert_eq!((share.weights.clone(), share.vectors()), (vec![vec![0.5; 2]; 2], 2));
        assert_eq!(gather.bytes(&[0, 1, 2, 3], Asked::Sums, WireType::F32), 4 * 2 * 4, "two vectors there, two back");
        assert_eq!(gather.take(&[2, 3], Asked::Sums, &[7.0, 8.0]), 2);
        assert_eq!(gather.take(&[2, 3], Asked::Vectors, &[9.0; 4]), 0, "the sum stays");
        assert_eq!(gather.take(&[0, 1], Asked::Vectors, &[1.0, 2.0, 3.0, 4.0]), 2);
        assert!(gather.is_complete());
        let ExpertOutputs { routes, outputs, .. } = gather.finish();
        assert_eq!(outputs, [1.0, 2.0, 3.0, 4.0, 7.0, 8.0]);
        let sum = ExpertRoute { experts: vec![(ExpertId(1), 1.0)] };
        assert_eq!(routes, [route(&[3, 1]), sum], "as if one expert had the sum");
    }

    #[test]
    fn a_sum_counts_where_a_vector_is_missing() {
        let mut gather = gather();
        gather.take(&[0], Asked::Vectors, &[1.0, 2.0]);
        assert_eq!(gather.take(&[0, 1], Asked::Sums, &[5.0, 6.0]), 1, "one of the two pairs was missing");
        gather.take(&[2, 3], Asked::Vectors, &[1.0; 4]);
        assert_eq!(gather.take(&[2, 3], Asked::Sums, &[9.0; 2]), 0, "all vectors of the second token are there");
        assert_eq!(gather.finish().outputs, [5.0, 6.0, 1.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn tokens_stay_whole_where_sums_are_asked_for() {
        let gather = gather();
        assert!(gather.are_whole_tokens(&[2, 3]) && gather.are_whole_tokens(&[0, 1, 2, 3]));
        assert!(!gather.are_whole_tokens(&[0]) && !gather.are_whole_tokens(&[0, 1, 3]));
        assert_eq!(gather.split(&[0, 1, 2, 3], 3), [[0, 1], [2, 3]]);
        assert_eq!(gather.split(&[0, 1, 2, 3], 1), [[0, 1], [2, 3]], "a token is never cut");
        assert_eq!(gather.split(&[0, 1, 2, 3], 4), [[0, 1, 2, 3]]);
    }

    #[test]
    fn outputs_of_another_size_or_not_finite_are_none() {
        let gather = gather();
        assert!(gather.are_outputs(&[0, 1], Asked::Vectors, &[0.5; 4]));
        assert!(!gather.are_outputs(&[0, 1], Asked::Vectors, &[0.5; 5]), "a value too many");
        assert!(!gather.are_outputs(&[0, 1], Asked::Vectors, &[]), "none");
        for wrong in [f32::NAN, f32::INFINITY] {
            assert!(!gather.are_outputs(&[0], Asked::Vectors, &[0.5, wrong]), "{wrong}");
        }
    }

    #[test]
    fn only_time_spent_on_nothing_but_others_counts_as_waiting() {
        let mut gather = gather();
        assert_eq!(gather.waited(Millis(9.0)), None, "nobody else was asked");
        gather.asks_others = true;
        assert_eq!(gather.waited(Millis(9.0)), Some(9.0));
        gather.own_done = Some(Millis(6.0));
        assert_eq!(gather.waited(Millis(9.0)), Some(3.0), "until then the own engine was busy");
    }

    #[test]
    fn a_router_that_contradicts_itself_is_noticed() {
        let routes = vec![route(&[1]), route(&[1])];
        let output = RouterOutput { residual: vec![0.0; 2], normed: vec![0.0; 4], routes };
        let gather_of = Gather::new(StageId(0), BlockIndex(5), KernelClass::Decode, output, 2, Millis(0.0));
        assert!(gather_of.is_none(), "a residual vector is missing");
        let mut gather = gather();
        gather.refuse(&[2], A);
        assert_eq!([1, 2].map(|pair| gather.has_refused(pair, A)), [false, true]);
    }
}
