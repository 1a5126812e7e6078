//! Holders whose answers are computed again elsewhere.

use potluck_plan::random::Random;

use super::*;

/// How many answers a liar gives, wrong in one of 20, until it is convicted; and who else was. Each of two experts has three
/// holders, as a check needs.
fn answers_until_convicted(seed: u64, share: f64) -> (usize, Vec<PeerId>) {
    let all = [A, B, C].map(ExpertHolder::Peer);
    let mut room = room(Hedging::Off, vec![vec![all[0], all[1], all[2]], vec![all[1], all[2], all[0]]]);
    room.dispatch = Dispatch::new(DispatchSettings { hedging: Hedging::Off, spot_checks: share }, 0);
    let (liar, mut random) = ([A, B][seed as usize % 2], Random::new(seed));
    let (mut answers, mut convicted) = (0, Vec::new());
    while convicted.is_empty() && answers < 20_000 {
        let secret = random.unit() as f32;
        let route = ExpertRoute { experts: vec![(ExpertId(0), secret), (ExpertId(1), 1.0 - secret)] };
        let output = RouterOutput { residual: vec![secret, 2.0], normed: vec![3.0, 4.0], routes: vec![route] };
        let gather = Gather::new(StageId(0), BLOCK, KernelClass::Decode, output, 2, Millis(room.now)).unwrap();
        let mut steps = room.act(|dispatch, cx| dispatch.begin(gather, cx).1);
        while let Some(step) = steps.pop() {
            let DispatchStep::Call { to, call, share, .. } = step else {
                convicted.extend(if let DispatchStep::Convicted { holder, .. } = step { Some(holder) } else { None });
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
    room.dispatch = Dispatch::new(DispatchSettings { hedging: Hedging::Off, spot_checks: 1.0 }, 0);
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

#[test]
fn devices_whose_browsers_hide_their_gpus_are_not_compared() {
    let mut room = room(Hedging::Off, vec![[A, B, C].map(ExpertHolder::Peer).to_vec()]);
    room.dispatch = Dispatch::new(DispatchSettings { hedging: Hedging::Off, spot_checks: 1.0 }, 0);
    for peer in [A, B, C] {
        room.members.known.get_mut(&peer).unwrap().hello.adapter.clear();
    }
    let calls = called(&room.begin(&[0]));
    let steps = room.answer(calls[0].2, A, &[1.0, 2.0]);
    assert_eq!(whom(&steps), [], "their GPUs may differ, and so may their bits");
}

/// Each answer is checked; A's is honest, and B and C give the same wrong one. What comes of A's.
fn two_liars_check_an_honest_one(lineages: &[(PeerId, u16)]) -> Vec<DispatchStep> {
    let mut room = room(Hedging::Off, vec![[A, B, C].map(ExpertHolder::Peer).to_vec()]);
    room.dispatch = Dispatch::new(DispatchSettings { hedging: Hedging::Off, spot_checks: 1.0 }, 0);
    came_in(&mut room.members, lineages);
    let mut steps = room.begin(&[0]);
    while let [DispatchStep::Call { to, call, .. }] = steps[..] {
        let outputs = if to == A { [1.0, 2.0] } else { [1.0, 9.0] };
        steps = room.answer(call, to, &outputs);
        steps.retain(|step| !matches!(step, DispatchStep::Done { .. }));
    }
    steps
}

#[test]
fn two_of_one_lineage_do_not_outvote_a_third() {
    assert_eq!(two_liars_check_an_honest_one(&[(A, 2), (B, 3), (C, 3)]), [], "B and C came by one invite");
    assert_eq!(two_liars_check_an_honest_one(&[(A, 2), (B, 2), (C, 2)]), [], "all did");
    assert_eq!(two_liars_check_an_honest_one(&[]), [], "nobody knows how they came");
}

#[test]
fn the_host_checks_rather_than_others_and_its_word_counts() {
    let mut room = room(Hedging::Off, vec![[A, B, C].map(ExpertHolder::Peer).to_vec()]);
    room.dispatch = Dispatch::new(DispatchSettings { hedging: Hedging::Off, spot_checks: 1.0 }, 0);
    came_in(&mut room.members, &[(A, 2), (B, 3), (C, 0)]);
    for _ in 0..20 {
        let calls = called(&room.begin(&[0]));
        let steps = room.answer(calls[0].2, A, &[1.0, 2.0]);
        assert_eq!(whom(&steps), [(C, vec![0])], "C is a tab of the host's device");
        let check = called(&steps)[0].2;
        let steps = room.answer(check, C, &[1.0, 2.5]);
        assert_eq!(steps, [DispatchStep::Convicted { stage: StageId(0), holder: A }]);
    }
}

#[test]
fn who_checks_is_drawn_and_not_the_next_in_the_plan() {
    let mut room = room(Hedging::Off, vec![[A, B, C].map(ExpertHolder::Peer).to_vec()]);
    room.dispatch = Dispatch::new(DispatchSettings { hedging: Hedging::Off, spot_checks: 1.0 }, 0);
    let mut checked_by = std::collections::BTreeMap::<PeerId, u32>::new();
    for _ in 0..200 {
        let calls = called(&room.begin(&[0]));
        let steps = room.answer(calls[0].2, A, &[1.0, 2.0]);
        let (checker, _, check) = called(&steps)[0].clone();
        *checked_by.entry(checker).or_default() += 1;
        room.answer(check, checker, &[1.0, 2.0]);
    }
    assert!(checked_by.len() == 2 && checked_by.values().all(|times| *times > 60), "{checked_by:?}");
}
