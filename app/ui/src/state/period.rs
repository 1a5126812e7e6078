//! When a conversation was last changed, as the list says it: today, yesterday, this week, or a month.

/// Days since 1 January 1970, in the calendar of the person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(pub i64);

/// The part of the list to which a conversation belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Period {
    /// The same day, or a later one by a clock that is ahead.
    Today,
    /// The day before.
    Yesterday,
    /// The five days before that.
    Week,
    /// A month.
    Month {
        /// As people count them.
        year: u32,
        /// From 1 to 12.
        month: u32,
    },
}

impl Period {
    /// The period of a day.
    #[must_use]
    pub fn of(day: Day, today: Day) -> Self {
        match today.0.saturating_sub(day.0) {
            ..=0 => Self::Today,
            1 => Self::Yesterday,
            2..7 => Self::Week,
            _ => {
                let (year, month) = month_of(day);
                Self::Month { year, month }
            }
        }
    }
}

/// The year and the month of a day (Howard Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`). Years before 0
/// count as 0.
fn month_of(Day(day): Day) -> (u32, u32) {
    // Days since 1 March of year 0, in eras of 400 years.
    let day = day.clamp(-719_468, 1 << 40) + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months since March.
    let month = (5 * day_of_year + 2) / 153;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year_of_era + era * 400 + next_year;
    (u32::try_from(year).unwrap_or(u32::MAX), u32::try_from(month).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 29 November 2026.
    const TODAY: Day = Day(20_786);

    #[test]
    fn days_have_the_names_that_people_give_them() {
        let ago = |days| Period::of(Day(TODAY.0 - days), TODAY);
        assert_eq!(ago(0), Period::Today);
        assert_eq!(ago(-3), Period::Today, "another device's clock is ahead");
        assert_eq!(ago(1), Period::Yesterday);
        assert_eq!([ago(2), ago(6)], [Period::Week; 2]);
        assert_eq!(ago(7), Period::Month { year: 2026, month: 11 });
        assert_eq!(ago(29), Period::Month { year: 2026, month: 10 }, "31 October");
    }

    #[test]
    fn months_begin_and_end_where_they_do() {
        for (day, year, month) in [
            (0, 1970, 1),
            (30, 1970, 1),
            (31, 1970, 2),
            (-1, 1969, 12),
            (11_015, 2000, 2),
            (11_016, 2000, 2),
            (11_017, 2000, 3),
            (20_512, 2026, 2),
            (20_513, 2026, 3),
        ] {
            assert_eq!(month_of(Day(day)), (year, month), "{day}");
        }
        assert_eq!(month_of(Day(i64::MIN)), (0, 3), "what no clock tells does no harm");
        assert!(month_of(Day(i64::MAX)).1 <= 12);
    }
}
