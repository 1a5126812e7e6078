//! The time that a template sees.

/// A moment in the user's local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// For example 2026.
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

impl LocalTime {
    /// The moment in UTC, from seconds since 1970.
    pub fn from_unix(seconds: u64) -> Self {
        const DAY: u64 = 24 * 60 * 60;
        // Hinnant's `civil_from_days`: years begin in March, eras of 400 years on 0000-03-01.
        let days = seconds / DAY + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = era * 400 + year_of_era + u64::from(month < 3);
        let second = seconds % DAY;
        Self {
            year: i32::try_from(year).unwrap_or(i32::MAX),
            month: month as u8,
            day: day as u8,
            hour: (second / 3600) as u8,
            minute: (second / 60 % 60) as u8,
            second: (second % 60) as u8,
        }
    }

    /// Python's `strftime` in the C locale; leaves codes that there are none of unchanged.
    pub(super) fn format(self, format: &str) -> String {
        let month = MONTHS[usize::from(self.month.clamp(1, 12)) - 1];
        let weekday = self.weekday();
        let hour = (self.hour + 11) % 12 + 1;
        let (day_of_year, since_monday) = (self.day_of_year(), (weekday + 6) % 7);
        let (week_year, week) = self.iso_week();
        let mut text = String::with_capacity(format.len() * 2);
        let mut chars = format.chars().peekable();
        while let Some(c) = chars.next() {
            if c != '%' {
                text.push(c);
                continue;
            }
            // GNU's flags for the fill of a number.
            let flag = chars.next_if(|flag| matches!(flag, '-' | '_' | '0' | '^' | '#'));
            let width: String = std::iter::from_fn(|| chars.next_if(char::is_ascii_digit)).collect();
            let mut number = |value: i64, places: usize, fill: char| {
                let places = width.parse().unwrap_or(places).min(1 << 10);
                text += &match (flag, fill) {
                    (Some('-'), _) => format!("{value}"),
                    (Some('_'), _) | (None, ' ') => format!("{value:places$}"),
                    _ => format!("{value:0places$}"),
                };
            };
            match chars.next() {
                Some('Y') => number(self.year.into(), 4, '0'),
                Some('C') => number((self.year.div_euclid(100)).into(), 2, '0'),
                Some('y') => number(self.year.rem_euclid(100).into(), 2, '0'),
                Some('G') => number(week_year, 4, '0'),
                Some('g') => number(week_year.rem_euclid(100), 2, '0'),
                Some('m') => number(self.month.into(), 2, '0'),
                Some('d') => number(self.day.into(), 2, '0'),
                Some('e') => number(self.day.into(), 2, ' '),
                Some('j') => number(day_of_year, 3, '0'),
                Some('H') => number(self.hour.into(), 2, '0'),
                Some('k') => number(self.hour.into(), 2, ' '),
                Some('I') => number(hour.into(), 2, '0'),
                Some('l') => number(hour.into(), 2, ' '),
                Some('M') => number(self.minute.into(), 2, '0'),
                Some('S') => number(self.second.into(), 2, '0'),
                Some('f') => number(0, 6, '0'),
                Some('u') => number(since_monday as i64 + 1, 1, '0'),
                Some('w') => number(weekday as i64, 1, '0'),
                Some('U') => number((day_of_year + 6 - weekday as i64) / 7, 2, '0'),
                Some('W') => number((day_of_year + 6 - since_monday as i64) / 7, 2, '0'),
                Some('V') => number(week, 2, '0'),
                Some('s') => number(self.unix(), 1, '0'),
                Some(code @ ('p' | 'P' | 'B' | 'b' | 'h' | 'A' | 'a')) => {
                    let half = if self.hour < 12 { "AM" } else { "PM" };
                    let name = match code {
                        'p' => half.to_owned(),
                        'P' => half.to_lowercase(),
                        'B' => month.to_owned(),
                        'A' => WEEKDAYS[weekday].to_owned(),
                        'a' => WEEKDAYS[weekday][..3].to_owned(),
                        _ => month[..3].to_owned(),
                    };
                    text += &if flag == Some('^') { name.to_uppercase() } else { name };
                }
                Some('F') => text += &self.format("%Y-%m-%d"),
                Some('T' | 'X') => text += &self.format("%H:%M:%S"),
                Some('R') => text += &self.format("%H:%M"),
                Some('r') => text += &self.format("%I:%M:%S %p"),
                Some('D' | 'x') => text += &self.format("%m/%d/%y"),
                Some('c') => text += &self.format("%a %b %e %H:%M:%S %Y"),
                // A time without a zone has none.
                Some('z' | 'Z') => {}
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some('%') => text.push('%'),
                other => {
                    text.push('%');
                    text.extend(flag);
                    text += &width;
                    text.extend(other);
                }
            }
        }
        text
    }

    /// 1 on the first of January.
    fn day_of_year(self) -> i64 {
        const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        let leap = self.month > 2 && is_leap(self.year);
        BEFORE[usize::from(self.month.clamp(1, 12)) - 1] + i64::from(self.day) + i64::from(leap)
    }

    /// Year and number of the week by ISO 8601.
    fn iso_week(self) -> (i64, i64) {
        let since_monday = (self.weekday() as i64 + 6) % 7;
        let week = (self.day_of_year() - since_monday + 9) / 7;
        let year = i64::from(self.year);
        let weeks = |year: i64| {
            // Years that end on a Thursday, or begin on one, have a week more.
            let ends =
                |year: i64| (year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400)).rem_euclid(7);
            52 + i64::from(ends(year) == 4 || ends(year - 1) == 3)
        };
        if week < 1 {
            (year - 1, weeks(year - 1))
        } else if week > weeks(year) {
            (year + 1, 1)
        } else {
            (year, week)
        }
    }

    /// Seconds since 1970.
    fn unix(self) -> i64 {
        let years = i64::from(self.year) - 1;
        let leaps = |years: i64| years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400);
        let days = (years - 1969) * 365 + leaps(years) - leaps(1969) + self.day_of_year() - 1;
        ((days * 24 + i64::from(self.hour)) * 60 + i64::from(self.minute)) * 60 + i64::from(self.second)
    }

    /// Days since Sunday (Sakamoto's method).
    fn weekday(self) -> usize {
        const SHIFTS: [i64; 12] = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4];
        let year = i64::from(self.year) - i64::from(self.month < 3);
        let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        let shift = SHIFTS[usize::from(self.month.clamp(1, 12)) - 1];
        (year + leaps + shift + i64::from(self.day)).rem_euclid(7) as usize
    }
}

fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_a_date() {
        let date = |seconds| LocalTime::from_unix(seconds).format("%F %T %s");
        assert_eq!(date(0), "1970-01-01 00:00:00 0");
        assert_eq!(date(951_826_153), "2000-02-29 12:09:13 951826153");
        assert_eq!(date(1_795_425_555), "2026-11-23 09:19:15 1795425555");
        assert_eq!(LocalTime::from_unix(u64::MAX).month, LocalTime::from_unix(u64::MAX).month.clamp(1, 12));
    }

    #[test]
    fn dates_read_as_python_writes_them() {
        let time = LocalTime { year: 2026, month: 11, day: 21, hour: 0, minute: 5, second: 9 };
        // datetime(2026, 11, 21, 0, 5, 9).strftime(...)
        assert_eq!(time.format("%d %b %Y, %A"), "21 Nov 2026, Saturday");
        assert_eq!(time.format("%I:%M:%S %p %y %a %B %% %"), "12:05:09 AM 26 Sat November % %");
        assert_eq!(
            time.format("%j %U %W %V %G %u %w %C %e %h %D %R %r"),
            "325 46 46 47 2026 6 6 20 21 Nov 11/21/26 00:05 12:05:09 AM"
        );
        assert_eq!(
            time.format("%-d/%-m %-I %k|%l|%c|%x|%X|%f|%Z|%z"),
            "21/11 12  0|12|Sat Nov 21 00:05:09 2026|11/21/26|00:05:09|000000||"
        );
        assert_eq!(LocalTime { month: 2, day: 29, year: 2024, ..time }.format("%A %F"), "Thursday 2024-02-29");
        assert_eq!(LocalTime { month: 1, day: 1, year: 2027, ..time }.format("%G-%V %g %U"), "2026-53 26 00");
        assert_eq!(LocalTime { month: 12, day: 31, year: 2024, ..time }.format("%G-%V %j"), "2025-01 366");
    }
}
