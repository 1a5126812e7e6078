//! The Python features that templates rely on: string methods, `tojson` without HTML escapes, `strftime`.

use std::io;

use minijinja::value::Kwargs;
use minijinja::{Environment, Error, ErrorKind, Value};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};

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
    /// `strftime` with the codes that templates use; leaves others unchanged.
    pub(super) fn format(self, format: &str) -> String {
        let month = MONTHS[usize::from(self.month.clamp(1, 12)) - 1];
        let weekday = WEEKDAYS[self.weekday()];
        let hour = (self.hour + 11) % 12 + 1;
        let mut text = String::with_capacity(format.len() * 2);
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                text.push(c);
                continue;
            }
            match chars.next() {
                Some('Y') => text += &self.year.to_string(),
                Some('y') => text += &format!("{:02}", self.year.rem_euclid(100)),
                Some('m') => text += &format!("{:02}", self.month),
                Some('d') => text += &format!("{:02}", self.day),
                Some('H') => text += &format!("{:02}", self.hour),
                Some('I') => text += &format!("{hour:02}"),
                Some('M') => text += &format!("{:02}", self.minute),
                Some('S') => text += &format!("{:02}", self.second),
                Some('p') => text += if self.hour < 12 { "AM" } else { "PM" },
                Some('B') => text += month,
                Some('b') => text += &month[..3],
                Some('A') => text += weekday,
                Some('a') => text += &weekday[..3],
                Some('F') => text += &self.format("%Y-%m-%d"),
                Some('T') => text += &self.format("%H:%M:%S"),
                Some('%') => text.push('%'),
                Some(other) => text.extend(['%', other]),
                None => text.push('%'),
            }
        }
        text
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

/// Adds the engine's filters and tests, and Python's methods.
pub(super) fn install(environment: &mut Environment<'static>) {
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_filter("tojson", tojson);
}

/// `json.dumps` as Transformers calls it: no HTML escapes, separators `", "` and `": "`, or an indent.
fn tojson(value: Value, options: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    // The value decides whether its keys are sorted; the other options have no effect here.
    let _: (Option<bool>, Option<bool>) = (options.get("ensure_ascii")?, options.get("sort_keys")?);
    options.assert_all_used()?;
    let failed = |error| Error::new(ErrorKind::BadSerialization, "value has no JSON form").with_source(error);
    let mut bytes = Vec::new();
    match indent {
        Some(width) => {
            let spaces = " ".repeat(width.min(16));
            let formatter = PrettyFormatter::with_indent(spaces.as_bytes());
            value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter)).map_err(failed)?;
        }
        None => {
            value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, Spaced)).map_err(failed)?;
        }
    }
    String::from_utf8(bytes).map_err(|error| Error::new(ErrorKind::BadSerialization, "not text").with_source(error))
}

/// Python's separators.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_read_as_python_writes_them() {
        let time = LocalTime { year: 2026, month: 11, day: 21, hour: 0, minute: 5, second: 9 };
        // datetime(2026, 11, 21, 0, 5, 9).strftime(...)
        assert_eq!(time.format("%d %b %Y, %A"), "21 Nov 2026, Saturday");
        assert_eq!(time.format("%I:%M:%S %p %y %a %B %% %"), "12:05:09 AM 26 Sat November % %");
        assert_eq!(LocalTime { month: 2, day: 29, year: 2024, ..time }.format("%A %F"), "Thursday 2024-02-29");
    }
}
