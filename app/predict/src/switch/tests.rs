use super::*;

#[test]
fn it_is_tried_again_after_ever_longer_pauses() {
    let mut switch = Switch::new();
    let mut changes = Vec::new();
    for token in 0..20_000 {
        let before = switch.state();
        switch.token(if switch.next() == Next::Without { 10.0 } else { 14.0 });
        if switch.state() != before {
            changes.push((token, switch.state()));
        }
    }
    let trials: Vec<i32> =
        changes.iter().filter(|(_, to)| *to == SwitchState::Trying).map(|(token, _)| *token).collect();
    assert!(trials.len() >= 3, "{changes:?}");
    assert!(trials.windows(3).all(|three| three[2] - three[1] > three[1] - three[0]), "{changes:?}");
}

#[test]
fn prediction_that_stops_paying_is_turned_off() {
    let mut switch = Switch::new();
    let (mut on, mut off) = (None, None);
    for token in 0..1000 {
        let pays = token < 400;
        let with = if pays { 6.0 } else { 11.0 };
        switch.token(if switch.next() == Next::Without { 10.0 } else { with });
        if switch.state() == SwitchState::On {
            on = on.or(Some(token));
        } else if on.is_some() {
            off = off.or(Some(token));
        }
    }
    assert!(on.is_some_and(|token| token < 200), "on at {on:?}");
    assert!(off.is_some_and(|token| token < 600), "off at {off:?}");
}

/// With a shadow some tokens pass together. Its drafts come some passes after it is wanted, and end some passes after it is not.
#[test]
fn drafts_that_come_and_go_late_are_seen_to_pay() {
    for drafts in [1, 3, 7] {
        let (mut switch, mut tokens, mut on, mut elapsed, mut wanted) = (Switch::new(), 0, 0, 0.0, Vec::new());
        while tokens < 2_000 {
            let is_drafted = wanted.len() >= 2 && wanted[wanted.len() - 2..].iter().all(|wanted| *wanted);
            let trails = wanted.len() >= 4 && wanted[wanted.len() - 2..] == [true, false];
            wanted.push(switch.next() != Next::Without);
            let (of_pass, millis) = if is_drafted || trails { (1 + drafts, 12.0) } else { (1, 10.0) };
            switch.pass(of_pass, millis);
            tokens += of_pass;
            // What drafts take at best, and what the switch makes of them once it is on.
            elapsed += if on > 0 { millis - f64::from(of_pass) * 12.0 / f64::from(1 + drafts) } else { 0.0 };
            on += if switch.state() == SwitchState::On { of_pass } else { 0 };
        }
        assert!(on > 1_500, "{drafts} drafts: on for {on} of {tokens} tokens");
        let share = elapsed / (f64::from(on) * 12.0 / f64::from(1 + drafts));
        assert!(share < 0.2, "{drafts} drafts: checks cost {share:.2} of the time");
    }
}

#[test]
fn times_that_are_no_numbers_change_nothing() {
    let mut switch = Switch::new();
    for _ in 0..1000 {
        [f64::NAN, f64::INFINITY, -1.0].into_iter().for_each(|millis| switch.token(millis));
    }
    assert_eq!((switch.state(), switch.next()), (SwitchState::Trying, Next::Without));
}
