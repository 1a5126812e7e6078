//! Parts of the list of conversations.

use potluck_text::texts;

use crate::state::Period;

/// "Today", "November 2026".
#[must_use]
pub fn period_text(period: Period) -> String {
    let texts = &texts().period;
    match period {
        Period::Today => texts.today().to_owned(),
        Period::Yesterday => texts.yesterday().to_owned(),
        Period::Week => texts.week().to_owned(),
        Period::Month { year, month } => match month {
            1 => texts.january(year),
            2 => texts.february(year),
            3 => texts.march(year),
            4 => texts.april(year),
            5 => texts.may(year),
            6 => texts.june(year),
            7 => texts.july(year),
            8 => texts.august(year),
            9 => texts.september(year),
            10 => texts.october(year),
            11 => texts.november(year),
            _ => texts.december(year),
        },
    }
}
