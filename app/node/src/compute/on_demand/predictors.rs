//! Who guesses which experts come next.

use std::rc::Rc;

use potluck_engine::Eviction;
use potluck_model::FeedForwardSpec;
use potluck_plan::{BlockIndex, Bytes, ExpertId, PooledExperts, WeightUnit};
use potluck_predict::{FirstOf, Foresight, GivenLast, KnownRecall, Predictor, PredictorKind, Switch, TraceShape};
use potluck_swarm::HintOptions;

use super::guesses::{Guesses, OnDemandGuesses};
#[cfg(not(target_arch = "wasm32"))]
use super::routers;
use crate::compute::shadow::{ShadowOptions, Shadows};
use crate::loader::Load;
use crate::open::Model;

/// The seed of guesses that are wrong on purpose.
const SEED: u64 = 15;

/// Who guesses which experts come next, and whether anybody asks if that pays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GuessOptions {
    /// Who guesses.
    pub predictor: PredictorKind,
    /// Load guesses whether they pay or not.
    pub always: bool,
    /// What [`PredictorKind::Recorded`] knows, as shares, by round.
    pub recalls: Vec<f64>,
    /// Blocks to look ahead; by default one, of a recorded text four.
    pub lead: Option<u16>,
    /// Which expert makes room where they come on demand, for this device or for others.
    pub eviction: Eviction,
    /// The shadow, for [`PredictorKind::Shadow`].
    pub shadow: Option<ShadowOptions>,
}

impl GuessOptions {
    /// The same with a shadow. It is believed, unless a text is recorded: then it shows what its computing costs at a known recall.
    #[must_use]
    pub fn with_shadow(self, shadow: ShadowOptions) -> Self {
        let predictor = match self.predictor {
            PredictorKind::Recorded => PredictorKind::Recorded,
            _ => PredictorKind::Shadow,
        };
        Self { predictor, shadow: Some(shadow), ..self }
    }
}

impl GuessOptions {
    /// Guesses for experts of a model in this pool; `None` if nobody guesses, or if what the predictor needs cannot be read. `load`
    /// reads the model.
    pub(in crate::compute) async fn start(
        self,
        shadows: &Rc<Shadows>,
        model: &Model,
        pool: &PooledExperts,
        load: Load,
    ) -> Option<OnDemandGuesses> {
        let options = self;
        if pool.blocks.is_empty() || options.predictor == PredictorKind::None {
            return None;
        }
        let sizes = model.spec.blocks.iter().filter_map(|block| match &block.feed_forward {
            FeedForwardSpec::Experts(experts) => Some((experts.count, experts.used)),
            FeedForwardSpec::Dense(_) => None,
        });
        let (experts, used) = sizes.fold((0, 0), |most, size| (most.0.max(size.0), most.1.max(size.1)));
        let shape = TraceShape { blocks: model.spec.blocks.len() as u16, experts: experts as u16, used: used as u8 };
        let bytes = |block: &BlockIndex| model.units.bytes(WeightUnit::Expert(*block, ExpertId(0))).0 * u64::from(used);
        let token = Bytes(pool.blocks.iter().map(bytes).sum());
        let frequent = Box::new(GivenLast::new(shape));
        #[cfg(not(target_arch = "wasm32"))]
        let mut routers = None;
        let mut shadow = None;
        let predictor: Box<dyn Predictor> = match options.predictor {
            #[cfg(not(target_arch = "wasm32"))]
            PredictorKind::Router => {
                let read = routers::read(&model.spec, &model.units, model.source.as_ref()).await;
                let read = read.inspect_err(|error| log::warn!("no router guesses: {error}")).ok()?;
                let read = routers.insert(Rc::new(read)).clone();
                // Nobody can be asked before the first block.
                Box::new(FirstOf(vec![Box::new(routers::NextRouters::new(read)), frequent]))
            }
            PredictorKind::Shadow => {
                shadow = shadows.start_for_own(load).await;
                match &shadow {
                    // Where the shadow is late or gone, the next in line is believed.
                    Some((_, published)) => Box::new(FirstOf(vec![Box::new(published.clone()), frequent])),
                    None => frequent,
                }
            }
            PredictorKind::Recorded => {
                let recorded = Box::new(KnownRecall::new(shape, options.recalls, SEED));
                if shadows.is_wanted() {
                    shadow = shadows.start_for_own(load).await;
                }
                recorded
            }
            _ => frequent,
        };
        let switch = (!options.always).then(Switch::new);
        let foresight = Foresight::new(options.predictor, predictor, shape, token, switch);
        let mut guesses = Guesses::new(foresight, used as usize);
        guesses.lead = options.lead.unwrap_or(match options.predictor {
            PredictorKind::Recorded => HintOptions::LEAD,
            _ => 1,
        });
        #[cfg(not(target_arch = "wasm32"))]
        {
            guesses.routers = routers;
        }
        guesses.shadow = shadow;
        Some(OnDemandGuesses(Rc::new(guesses)))
    }
}
