//! The Python features that templates rely on: string methods, `tojson` without HTML escapes, `strftime`.

use std::io;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Value};
use serde::Serialize;
use serde_json::ser::Formatter;

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
    // Jinja2 asks Python: nothing runs over None, but over what is undefined and over the characters of a string.
    environment.add_test("iterable", |value: Value| match value.kind() {
        ValueKind::Undefined | ValueKind::String => true,
        ValueKind::None => false,
        _ => value.try_iter().is_ok(),
    });
    environment.add_test("sequence", |value: Value| {
        matches!(value.kind(), ValueKind::Undefined | ValueKind::String | ValueKind::Seq | ValueKind::Map)
    });
}

/// Transformers marks the text that a model is trained on with `{% generation %}`, which renders as what is inside.
pub(super) fn without_generation_tags(source: &str) -> String {
    let mut plain = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at);
        plain.push_str(before);
        let inner = tag[2..].trim_start_matches(['-', '+']).trim_start();
        let replaced =
            [("generation", "if true"), ("endgeneration", "endif")].into_iter().find_map(|(name, instead)| {
                let after = inner.strip_prefix(name)?;
                after.trim_start().trim_start_matches(['-', '+']).starts_with("%}").then_some((instead, after))
            });
        match replaced {
            Some((instead, after)) => {
                plain.push_str(&tag[..tag.len() - inner.len()]);
                plain.push_str(instead);
                rest = after;
            }
            None => {
                plain.push_str("{%");
                rest = &tag[2..];
            }
        }
    }
    plain + rest
}

/// `json.dumps` as Transformers calls it: no HTML escapes, and its options.
fn tojson(value: Value, options: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let separators: Option<(String, String)> = options.get::<Option<Vec<String>>>("separators")?.and_then(|pair| {
        let [items, keys] = <[String; 2]>::try_from(pair).ok()?;
        Some((items, keys))
    });
    let sorted = options.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    let ascii = options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false);
    options.assert_all_used()?;
    let failed = |error| Error::new(ErrorKind::BadSerialization, "value has no JSON form").with_source(error);
    let mut bytes = Vec::new();
    // Python puts no space behind an item if the next one is on a line of its own.
    let (items, keys) = separators.unwrap_or_else(|| (if indent.is_some() { "," } else { ", " }.into(), ": ".into()));
    let formatter = Python { items, keys, indent: indent.map(|width| width.min(16)), depth: 0, empty: false };
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    match sorted {
        // Without the engine's order, keys are sorted.
        true => serde_json::to_value(&value).and_then(|value| value.serialize(&mut serializer)),
        false => value.serialize(&mut serializer),
    }
    .map_err(failed)?;
    let text = String::from_utf8(bytes)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, "not text").with_source(error))?;
    Ok(if ascii { escape_ascii(&text) } else { text })
}

/// `\uXXXX` for every character outside ASCII; in JSON those are all inside strings.
fn escape_ascii(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match c.is_ascii() {
            true => escaped.push(c),
            false => escaped.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
        }
    }
    escaped
}

/// Python's layout.
struct Python {
    items: String,
    keys: String,
    indent: Option<usize>,
    depth: usize,
    /// Nothing has been written in the innermost brackets.
    empty: bool,
}

impl Python {
    fn open<W: ?Sized + io::Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.empty = true;
        writer.write_all(bracket)
    }

    fn close<W: ?Sized + io::Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth = self.depth.saturating_sub(1);
        if !std::mem::take(&mut self.empty) {
            self.line(writer)?;
        }
        writer.write_all(bracket)
    }

    fn item<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(self.items.as_bytes())?;
        }
        self.empty = false;
        self.line(writer)
    }

    fn line<W: ?Sized + io::Write>(&self, writer: &mut W) -> io::Result<()> {
        let Some(width) = self.indent else { return Ok(()) };
        writer.write_all(b"\n")?;
        (0..width * self.depth).try_for_each(|_| writer.write_all(b" "))
    }
}

impl Formatter for Python {
    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"[")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.item(writer, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.empty = false;
        Ok(())
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.item(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(self.keys.as_bytes())
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.empty = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_a_date() {
        let date = |seconds| LocalTime::from_unix(seconds).format("%F %T");
        assert_eq!(date(0), "1970-01-01 00:00:00");
        assert_eq!(date(951_826_153), "2000-02-29 12:09:13");
        assert_eq!(date(1_795_425_555), "2026-11-23 09:19:15");
        assert_eq!(LocalTime::from_unix(u64::MAX).month, LocalTime::from_unix(u64::MAX).month.clamp(1, 12));
    }

    #[test]
    fn json_is_laid_out_as_python_does() {
        // json.dumps({"b": [], "a": {"é": [1, 2.5]}, "c": {}}, ...)
        let render = |options: &str| {
            let mut environment = Environment::new();
            install(&mut environment);
            let source = format!("{{{{ {{'b': [], 'a': {{'é': [1, 2.5]}}, 'c': {{}}}} | tojson{options} }}}}");
            environment.render_str(&source, ()).unwrap_or_else(|error| error.to_string())
        };
        assert_eq!(render(""), r#"{"b": [], "a": {"é": [1, 2.5]}, "c": {}}"#);
        assert_eq!(
            render("(indent=2)"),
            "{\n  \"b\": [],\n  \"a\": {\n    \"é\": [\n      1,\n      2.5\n    ]\n  },\n  \"c\": {}\n}"
        );
        assert_eq!(
            render("(separators=(',', ':'), sort_keys=true, ensure_ascii=true)"),
            r#"{"a":{"\u00e9":[1,2.5]},"b":[],"c":{}}"#
        );
    }

    #[test]
    fn generation_tags_render_as_what_is_inside() {
        let source =
            "{%- generation -%}\n a{% if x %}{%generation%}b{% endgeneration %}{% endif %}{%- endgeneration %}";
        let plain = "{%- if true -%}\n a{% if x %}{%if true%}b{% endif %}{% endif %}{%- endif %}";
        assert_eq!(without_generation_tags(source), plain);
        assert_eq!(without_generation_tags("{% generations %}{%"), "{% generations %}{%");
    }

    #[test]
    fn dates_read_as_python_writes_them() {
        let time = LocalTime { year: 2026, month: 11, day: 21, hour: 0, minute: 5, second: 9 };
        // datetime(2026, 11, 21, 0, 5, 9).strftime(...)
        assert_eq!(time.format("%d %b %Y, %A"), "21 Nov 2026, Saturday");
        assert_eq!(time.format("%I:%M:%S %p %y %a %B %% %"), "12:05:09 AM 26 Sat November % %");
        assert_eq!(LocalTime { month: 2, day: 29, year: 2024, ..time }.format("%A %F"), "Thursday 2024-02-29");
    }
}
