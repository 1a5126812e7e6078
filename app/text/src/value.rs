//! Arguments of texts: what kinds there are, and what can stand for them.

use std::borrow::Cow;

use crate::texts;

/// An argument's value, with the kind that says how it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// As it is.
    Text(&'a str),
    /// A count.
    Count(u64),
    /// A number that is a name.
    Number(u64),
    /// Without digits behind the point.
    Rounded(f64),
    /// With one digit behind the point.
    Tenths(f64),
    /// Bytes.
    Bytes(u64),
    /// Bytes a second.
    Rate(f64),
    /// Milliseconds.
    Millis(f64),
    /// Tokens a second.
    Pace(f64),
    /// Parameters of a model.
    Parameters(u64),
}

impl Value<'_> {
    /// The number that a noun goes with.
    pub(crate) const fn number(&self) -> Option<u64> {
        match self {
            Self::Count(number) | Self::Number(number) => Some(*number),
            _ => None,
        }
    }
}

/// What can stand for an argument of the kind `K`.
pub trait Argument<K> {
    /// Its value.
    fn value(&self) -> Value<'_>;
}

impl<K, T: Argument<K> + ?Sized> Argument<K> for &T {
    fn value(&self) -> Value<'_> {
        (**self).value()
    }
}

macro_rules! kinds {
    ($( $(#[$doc:meta])* $kind:ident of $($from:ty as $to:ty),+; )+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $kind;

        $( impl Argument<$kind> for $from {
            fn value(&self) -> Value<'_> {
                Value::$kind(*self as $to)
            }
        } )+
    )+ };
}

kinds! {
    /// A count: "1,900".
    Count of u8 as u64, u16 as u64, u32 as u64, u64 as u64, usize as u64;
    /// A number that is not grouped, such as that of a block or of an attempt.
    Number of u8 as u64, u16 as u64, u32 as u64, u64 as u64, usize as u64;
    /// A number without digits behind the point.
    Rounded of f64 as f64;
    /// A number with one digit behind the point.
    Tenths of f64 as f64;
    /// Bytes: "3.2 GB".
    Bytes of u64 as u64;
    /// Bytes a second: "12.4 MB/s".
    Rate of f64 as f64;
    /// Milliseconds: "420 ms", "1.3 s".
    Millis of f64 as f64;
    /// Tokens a second: "6.1 tok/s".
    Pace of f64 as f64;
    /// Parameters of a model: "30.5 B".
    Parameters of u64 as u64;
}

/// A text that is put in as it is: a name, or a phrase of the same language.
#[derive(Clone, Copy, Debug)]
pub struct Text;

impl Argument<Text> for str {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl Argument<Text> for String {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl Argument<Text> for Cow<'_, str> {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl Argument<Bytes> for potluck_panel::Bytes {
    fn value(&self) -> Value<'_> {
        Value::Bytes(self.0)
    }
}

fn written(value: &Value<'_>) -> String {
    texts().language.value(value)
}

/// "3.2 GB", "410 MB", "12 kB", "87 bytes".
#[must_use]
pub fn bytes(value: u64) -> String {
    written(&Value::Bytes(value))
}

/// "12.4 MB/s".
#[must_use]
pub fn rate(bytes_per_second: f64) -> String {
    written(&Value::Rate(bytes_per_second))
}

/// "1,900".
#[must_use]
pub fn count(value: u64) -> String {
    written(&Value::Count(value))
}

/// "30.5 billion parameters" as "30.5 B", "12.3 M", "640 k".
#[must_use]
pub fn parameters(value: u64) -> String {
    written(&Value::Parameters(value))
}

/// "6.1 tok/s".
#[must_use]
pub fn tokens_per_second(value: f64) -> String {
    written(&Value::Pace(value))
}

/// "420 ms", "1.3 s", "2 min 5 s".
#[must_use]
pub fn duration_ms(milliseconds: f64) -> String {
    written(&Value::Millis(milliseconds))
}

/// Integer percentage of `done` in `total`, 0 to 100; 100 only when complete.
#[must_use]
pub fn percent(done: u64, total: u64) -> u64 {
    if total == 0 {
        return 0;
    }
    if done >= total {
        return 100;
    }
    (u128::from(done) * 100 / u128::from(total)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_percent_means_done() {
        assert_eq!(percent(999, 1000), 99);
        assert_eq!(percent(1000, 1000), 100);
        assert_eq!(percent(5, 0), 0);
        assert_eq!(percent(u64::MAX - 1, u64::MAX), 99);
    }
}
