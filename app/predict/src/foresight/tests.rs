use potluck_plan::random::Random;

use super::*;
use crate::Guess;

const SHAPE: TraceShape = TraceShape { blocks: 4, experts: 12, used: 3 };
const EXPERT: Bytes = Bytes(1_000);
const TOKEN: Bytes = Bytes(12_000);

/// What every token uses in every block.
const CHOSEN: [ExpertId; 3] = [ExpertId(0), ExpertId(1), ExpertId(2)];

/// Guesses the same for every token.
struct Fixed(Vec<u16>);

impl Predictor for Fixed {
    fn name(&self) -> String {
        "fixed".to_owned()
    }

    fn predict(&self, _: Position, _: BlockIndex) -> Vec<Guess> {
        self.0.iter().map(|expert| Guess { expert: ExpertId(*expert), confidence: 1.0 }).collect()
    }

    fn observe(&mut self, _: Position, _: BlockIndex, _: &[ExpertId]) {}
}

fn foresight(guesses: &[u16], switch: Option<Switch>) -> Foresight {
    Foresight::new(PredictorKind::Frequent, Box::new(Fixed(guesses.to_vec())), SHAPE, TOKEN, switch)
}

/// Runs a token whose missing experts take `load` milliseconds each, one whose guess was loaded less of it. Returns the
/// bytes that guesses took.
fn token(foresight: &mut Foresight, position: u32, (compute, load): (f64, f64), noise: f64) -> u64 {
    let at = Position(position);
    foresight.begin(at);
    let before = foresight.bytes().0;
    let (mut hidden, mut wrong) = (0.0, 0.0);
    for block in (0..SHAPE.blocks).map(BlockIndex) {
        for expert in foresight.guesses(at, block) {
            if foresight.afford(EXPERT) {
                foresight.loaded(at, block, expert, EXPERT);
                if CHOSEN.contains(&expert) { hidden += 0.8 * load } else { wrong += 0.5 * load }
            }
        }
        foresight.measured(EXPERT, load);
        foresight.observe(at, block, &CHOSEN);
    }
    let needed = 12.0 * load;
    foresight.token((compute + needed - hidden + wrong) * noise);
    foresight.bytes().0 - before
}

#[test]
fn of_a_token_and_its_drafts_only_those_count_that_were_accepted() {
    // Guesses double the time of a pass of four tokens. One is accepted, or all are.
    let passes_until_off = |accepted: u32| {
        let mut foresight = foresight(&[0, 1, 2], Some(Switch::new()));
        let is_off = |pass: &u32| {
            let first = Position(pass * accepted);
            foresight.begin(first);
            let millis = if foresight.is_active() { 20.0 } else { 10.0 };
            foresight.drafted(first, 4, millis);
            foresight.guessing() == Guessing::Off
        };
        (0..1_000).find(is_off).unwrap_or(1_000)
    };
    let (one, all) = (passes_until_off(1), passes_until_off(4));
    assert!(one <= 200 && all * 4 <= 200 + 4, "off after {one} tokens, {all} passes of four");
    assert!(one > all, "{one} passes of which one token was accepted, {all} of four");
}

#[test]
fn guesses_that_do_not_pay_are_off_within_200_tokens_whatever_the_noise() {
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let times = (1.0 + 20.0 * random.unit(), 0.1 + 2.0 * random.unit());
        let spread = 0.1 * random.unit();
        let mut wrong = foresight(&[5, 6, 7], Some(Switch::new()));
        for position in 0..200 {
            token(&mut wrong, position, times, 1.0 + spread * (2.0 * random.unit() - 1.0));
        }
        assert_eq!(wrong.guessing(), Guessing::Off, "seed {seed}: {times:?} ms, noise {spread}");
        assert_eq!(wrong.report().right, 0, "seed {seed}");
        let bytes = token(&mut wrong, 200, times, 1.0);
        assert_eq!(bytes, 0, "seed {seed}: nothing is loaded on a guess any more");
    }
}

#[test]
fn guesses_that_pay_are_on_within_200_tokens() {
    let mut right = foresight(&[0, 1, 2], Some(Switch::new()));
    for position in 0..200 {
        token(&mut right, position, (10.0, 1.0), 1.0);
    }
    let report = right.report();
    assert_eq!(report.guessing, Guessing::On, "{report:?}");
    assert_eq!(report.recall, Some(1.0));
    assert!(report.useful == report.loaded && report.loaded > 0, "{report:?}");
}

#[test]
fn the_bytes_of_guesses_are_capped_for_each_token() {
    let mut always = foresight(&[5, 6, 7], None);
    for position in 0..50 {
        assert!(token(&mut always, position, (1.0, 1.0), 1.0) <= TOKEN.0, "token {position}");
    }
    assert_eq!(always.guessing(), Guessing::Always, "it does not pay, and nobody asks");
    let mut switched = foresight(&[0, 1, 2], Some(Switch::new()));
    for position in 0..500 {
        // Half a token's time of the bus: 11 of 22 ms, at 1,000 bytes a millisecond.
        let bytes = token(&mut switched, position, (10.0, 1.0), 1.0);
        assert!(bytes <= 11_000, "token {position} loaded {bytes} bytes on guesses");
    }
    assert!(switched.bytes() > Bytes::ZERO);
}

#[test]
fn recall_counts_what_was_guessed_by_the_answers_token() {
    let mut foresight = foresight(&[0, 7, 2], None);
    (0..10).for_each(|position| foresight.observe_prompt(Position(position), BlockIndex(0), &CHOSEN));
    for position in 10..30 {
        token(&mut foresight, position, (1.0, 1.0), 1.0);
    }
    let report = foresight.report();
    assert_eq!((report.used, report.right), (20 * 12, 20 * 8));
    assert_eq!(report.recall_by_index[..2], [Some(2.0 / 3.0); 2], "16 tokens, then 4");
    assert_eq!(report.recall_by_index[2..], [None; 2]);
}

#[test]
fn a_guess_of_a_token_that_never_came_is_forgotten() {
    let mut foresight = foresight(&[0, 1, 2], None);
    foresight.begin(Position(0));
    foresight.guesses(Position(1), BlockIndex(0));
    foresight.begin(Position(2));
    foresight.observe(Position(1), BlockIndex(0), &CHOSEN);
    assert_eq!(foresight.report().used, 0, "a draft that was not taken");
}
