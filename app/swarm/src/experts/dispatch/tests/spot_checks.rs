//! Holders whose answers are computed again elsewhere.

use super::*;
use crate::sim::Random;

/// How many answers a liar gives, wrong in one of 20, until it is convicted; and who else was. Each of two experts has three
/// holders, as a check needs.
fn answers_until_convicted(seed: u64, share: f64) -> (usize, Vec<PeerId>) {
    let all = [A, B, C].map(ExpertHolder::Peer);
    let mut room = room(Hedging::Off, vec![vec![all[0], all[1], all[2]], vec![all[1], all[2], all[0]]]);
    room.dispatch = Dispatch::new(Settings { hedging: Hedging::Off, spot_checks: share }, 0);
    let (liar, mut random) = ([A, B][seed as usize % 2], Random(seed));
    let (mut answers, mut convicted) = (0, Vec::new());
    while convicted.is_empty() && answers < 20_000 {
        let secret = random.unit() as f32;
        let route = Route { experts: vec![(ExpertId(0), secret), (ExpertId(1), 1.0 - secret)] };
        let vectors = (vec![secret, 2.0], vec![3.0, 4.0], vec![route]);
        let gather = Gather::new((StageId(0), BLOCK, KernelClass::Decode), vectors, 2, Millis(room.now)).unwrap();
        let mut steps = room.act(|dispatch, around| dispatch.begin(gather, around).1);
        while let Some(step) = steps.pop() {
            let Step::Call { to, call, share, .. } = step else {
                convicted.extend(if let Step::Convicted { holder, .. } = step { Some(holder) } else { None });
                continue;
            };
            let lies = to == liar && random.below(20) == 0;
            answers += usize::from(to == liar);
            let pairs = share.rows.iter().map(Vec::len).sum::<usize>();
            let value = if lies { random.unit() as f32 } else { 0.5 };
            steps.extend(room.answer(call, to, &vec![value; 2 * pairs]));
        }
        room.now += 10.0;
    }
    convicted.retain(|peer| *peer != liar);
    (answers, convicted)
}

/// "Must show" 5.
#[test]
fn a_holder_that_is_wrong_in_one_of_twenty_answers_is_found_and_no_honest_one_is() {
    for (share, most) in [(0.02, 5_000), (0.5, 250)] {
        let mut late = 0;
        for seed in 0..100 {
            let (answers, wronged) = answers_until_convicted(seed, share);
            assert_eq!(wronged, [], "seed {seed}: honest devices at a share of {share}");
            late += usize::from(answers > most);
        }
        assert!(late <= 1, "at a share of {share}, {late} of 100 liars gave more than {most} answers");
    }
}

#[test]
fn devices_that_compute_otherwise_are_not_compared() {
    let all = [A, B, C].map(ExpertHolder::Peer);
    let mut room = room(Hedging::Off, vec![all.to_vec()]);
    room.dispatch = Dispatch::new(Settings { hedging: Hedging::Off, spot_checks: 1.0 }, 0);
    for (peer, adapter) in [(A, "one GPU"), (B, "another GPU"), (C, "one GPU")] {
        room.members.known.get_mut(&peer).unwrap().hello.adapter = adapter.to_owned();
    }
    let calls = called(&room.begin(&[0]));
    let steps = room.answer(calls[0].2, A, &[1.0, 2.0]);
    assert_eq!(whom(&steps), [(C, vec![0])], "its bits must be the same");
    let check = called(&steps)[0].2;
    assert!(room.dispatch.awaits(check, C));
    assert_eq!(room.answer(check, C, &[1.0, 2.5]), [], "one of two is wrong, and no third one can say which");
}
