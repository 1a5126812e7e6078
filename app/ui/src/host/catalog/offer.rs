//! The catalogue in the order of what a room can hold.

use potluck_text::texts;

use super::entry::{Entry, Task};
use crate::host::verdict::{Case, Verdict, judge};

/// An entry and how it would do in this room.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The entry.
    pub entry: Entry,
    /// Its verdict.
    pub verdict: Verdict,
}

impl Offer {
    /// "Fits · up to about 12 tok/s on this device alone", or what is missing. No speed is shown unless one was estimated.
    #[must_use]
    pub fn line(&self) -> String {
        if !self.verdict.fits() {
            return texts().catalog.needs_more(self.verdict.short);
        }
        match self.verdict.tokens_per_second {
            Some(speed) => texts().catalog.fits_at(speed),
            None => texts().catalog.fits().into(),
        }
    }
}

/// The entries that match: first those that fit, the largest first, then the others by what is missing.
#[must_use]
pub fn offers(entries: &[Entry], filter: &str, task: Option<Task>, case: impl Fn(&Entry) -> Case) -> Vec<Offer> {
    let wanted = |entry: &&Entry| entry.matches(filter) && task.is_none_or(|task| entry.task == task);
    let offer = |entry: &Entry| Offer { verdict: judge(case(entry)), entry: entry.clone() };
    let mut offers: Vec<Offer> = entries.iter().filter(wanted).map(offer).collect();
    offers.sort_by_key(|offer| {
        let size = offer.entry.bytes;
        (offer.verdict.short, if offer.verdict.fits() { u64::MAX - size } else { size })
    });
    offers
}

/// The entry's case in a room with `lent` bytes on this device and at most `context` positions.
#[must_use]
pub fn case(entry: &Entry, room: Case) -> Case {
    Case {
        weights: entry.bytes,
        state: entry.state,
        active: entry.active_bytes(),
        context: room.context.min(entry.context),
        kv_cache_per_position: Some(entry.kv_cache_per_position()),
        ..room
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::host::catalog::entry::tests::listed;

    fn in_room(lent: u64, filter: &str, task: Option<Task>) -> Vec<Offer> {
        let room = Case {
            weights: 0,
            state: 0,
            context: 4096,
            cache: None,
            kv_cache_per_position: None,
            lent,
            devices: 1,
            active: 0,
            bandwidth: 0.0,
        };
        offers(&listed(), filter, task, |entry| case(entry, room))
    }

    #[test]
    fn what_the_room_holds_comes_first_and_the_largest_of_it_on_top() {
        for lent in [2_000_000_000, 8_000_000_000, 40_000_000_000] {
            let offers = in_room(lent, "", None);
            let fitting = offers.iter().take_while(|offer| offer.verdict.fits()).count();
            assert!(fitting > 3, "{lent}");
            assert!(offers[..fitting].is_sorted_by_key(|offer| u64::MAX - offer.entry.bytes));
            assert!(offers[fitting..].iter().all(|offer| !offer.verdict.fits()), "those that fit stay together");
            assert!(offers[fitting..].is_sorted_by_key(|offer| offer.verdict.short));
            assert!(
                offers[0].verdict.needed <= lent && offers[0].verdict.needed > lent / 2,
                "{}",
                offers[0].entry.name
            );
        }
    }

    #[test]
    fn text_and_task_narrow_the_list() {
        let code = in_room(8_000_000_000, "", Some(Task::Code));
        assert!(!code.is_empty() && code.iter().all(|offer| offer.entry.task == Task::Code));
        let gemma = in_room(8_000_000_000, "gemma", Some(Task::Languages));
        assert!(gemma.len() >= 3 && gemma.iter().all(|offer| offer.entry.name.contains("Gemma")));
        assert!(in_room(8_000_000_000, "no such model", None).is_empty());
    }

    #[test]
    fn an_entry_has_no_speed_before_the_device_was_measured() {
        let offers = in_room(8_000_000_000, "", None);
        assert_eq!(offers[0].line(), "Fits");
        assert!(offers.last().unwrap().line().ends_with("more memory needed"), "{}", offers.last().unwrap().line());
    }

    #[test]
    fn the_context_is_never_longer_than_the_files() {
        let entry = Entry { context: 2048, ..listed()[0].clone() };
        let room = Case {
            weights: 0,
            state: 0,
            context: 4096,
            cache: None,
            kv_cache_per_position: None,
            lent: 1,
            devices: 1,
            active: 0,
            bandwidth: 0.0,
        };
        assert_eq!(case(&entry, room).context, 2048);
    }
}
