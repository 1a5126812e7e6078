//! Metadata values and their types.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A metadata value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// `uint8`
    U8(u8),
    /// `int8`
    I8(i8),
    /// `uint16`
    U16(u16),
    /// `int16`
    I16(i16),
    /// `uint32`
    U32(u32),
    /// `int32`
    I32(i32),
    /// `float32`
    F32(f32),
    /// `bool`
    Bool(bool),
    /// `string`. Invalid UTF-8 in the file has been replaced.
    String(String),
    /// `array`
    Array(Array),
    /// `uint64`
    U64(u64),
    /// `int64`
    I64(i64),
    /// `float64`
    F64(f64),
}

/// A metadata array; all elements have the same type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Array {
    /// Elements of type `uint8`.
    U8(Vec<u8>),
    /// Elements of type `int8`.
    I8(Vec<i8>),
    /// Elements of type `uint16`.
    U16(Vec<u16>),
    /// Elements of type `int16`.
    I16(Vec<i16>),
    /// Elements of type `uint32`.
    U32(Vec<u32>),
    /// Elements of type `int32`.
    I32(Vec<i32>),
    /// Elements of type `float32`.
    F32(Vec<f32>),
    /// Elements of type `bool`.
    Bool(Vec<bool>),
    /// Elements of type `string`.
    String(Vec<String>),
    /// Arrays of arrays, nested at most [`Array::MAX_DEPTH`] deep.
    Array(Vec<Array>),
    /// Elements of type `uint64`.
    U64(Vec<u64>),
    /// Elements of type `int64`.
    I64(Vec<i64>),
    /// Elements of type `float64`.
    F64(Vec<f64>),
}

/// The file's numbers for value types.
pub(crate) mod value_type {
    pub const U8: u32 = 0;
    pub const I8: u32 = 1;
    pub const U16: u32 = 2;
    pub const I16: u32 = 3;
    pub const U32: u32 = 4;
    pub const I32: u32 = 5;
    pub const F32: u32 = 6;
    pub const BOOL: u32 = 7;
    pub const STRING: u32 = 8;
    pub const ARRAY: u32 = 9;
    pub const U64: u32 = 10;
    pub const I64: u32 = 11;
    pub const F64: u32 = 12;
}

impl Value {
    /// The type's number in a file.
    pub(crate) fn type_id(&self) -> u32 {
        match self {
            Value::U8(_) => value_type::U8,
            Value::I8(_) => value_type::I8,
            Value::U16(_) => value_type::U16,
            Value::I16(_) => value_type::I16,
            Value::U32(_) => value_type::U32,
            Value::I32(_) => value_type::I32,
            Value::F32(_) => value_type::F32,
            Value::Bool(_) => value_type::BOOL,
            Value::String(_) => value_type::STRING,
            Value::Array(_) => value_type::ARRAY,
            Value::U64(_) => value_type::U64,
            Value::I64(_) => value_type::I64,
            Value::F64(_) => value_type::F64,
        }
    }

    /// The value as an unsigned number, from any integer type, a bool, a small float without a fraction, or an array of one
    /// number over and over.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Value::U8(v) => Some(v.into()),
            Value::U16(v) => Some(v.into()),
            Value::U32(v) => Some(v.into()),
            Value::U64(v) => Some(v),
            Value::I8(v) => v.try_into().ok(),
            Value::I16(v) => v.try_into().ok(),
            Value::I32(v) => v.try_into().ok(),
            Value::I64(v) => v.try_into().ok(),
            Value::Bool(v) => Some(v.into()),
            // Floats up to this are exact whole numbers in either type.
            Value::F32(v) if v.fract() == 0.0 && (0.0..=16_777_216.0).contains(&v) => Some(v as u64),
            Value::F64(v) if v.fract() == 0.0 && (0.0..=16_777_216.0).contains(&v) => Some(v as u64),
            // One number for each block, all the same.
            Value::Array(ref array) => repeated(&array.to_u64s()?),
            _ => None,
        }
    }

    /// The value as a float, from any number, or an array of one 32-bit float over and over.
    pub fn as_f32(&self) -> Option<f32> {
        match *self {
            Value::F32(v) => Some(v),
            Value::F64(v) => Some(v as f32),
            Value::U8(v) => Some(v.into()),
            Value::U16(v) => Some(v.into()),
            Value::U32(v) => Some(v as f32),
            Value::U64(v) => Some(v as f32),
            Value::I8(v) => Some(v.into()),
            Value::I16(v) => Some(v.into()),
            Value::I32(v) => Some(v as f32),
            Value::I64(v) => Some(v as f32),
            Value::Array(Array::F32(ref values)) => repeated(values),
            _ => None,
        }
    }

    /// The value as a flag, from a bool or the numbers 0 and 1.
    pub fn as_bool(&self) -> Option<bool> {
        match *self {
            Value::Bool(v) => Some(v),
            Value::String(_) | Value::Array(_) => None,
            _ => match self.as_u64()? {
                0 => Some(false),
                1 => Some(true),
                _ => None,
            },
        }
    }

    /// Describes type and value for error messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            Value::U8(v) => format!("the uint8 {v}"),
            Value::I8(v) => format!("the int8 {v}"),
            Value::U16(v) => format!("the uint16 {v}"),
            Value::I16(v) => format!("the int16 {v}"),
            Value::U32(v) => format!("the uint32 {v}"),
            Value::I32(v) => format!("the int32 {v}"),
            Value::F32(v) => format!("the float32 {v}"),
            Value::Bool(v) => format!("the bool {v}"),
            Value::String(_) => "a string".to_string(),
            Value::Array(array) => format!("an array of {} {}", array.len(), array.element_name()),
            Value::U64(v) => format!("the uint64 {v}"),
            Value::I64(v) => format!("the int64 {v}"),
            Value::F64(v) => format!("the float64 {v}"),
        }
    }
}

/// The number, if all of these are equal.
fn repeated<T: Copy + PartialEq>(values: &[T]) -> Option<T> {
    let first = *values.first()?;
    values.iter().all(|&value| value == first).then_some(first)
}

/// Evaluates an expression with the vector of any array variant.
macro_rules! with_elements {
    ($array:expr, $values:ident => $body:expr) => {
        match $array {
            Array::U8($values) => $body,
            Array::I8($values) => $body,
            Array::U16($values) => $body,
            Array::I16($values) => $body,
            Array::U32($values) => $body,
            Array::I32($values) => $body,
            Array::F32($values) => $body,
            Array::Bool($values) => $body,
            Array::String($values) => $body,
            Array::Array($values) => $body,
            Array::U64($values) => $body,
            Array::I64($values) => $body,
            Array::F64($values) => $body,
        }
    };
}

impl Array {
    /// Maximum nesting depth of arrays.
    pub const MAX_DEPTH: usize = 4;

    /// An empty array of the element type with this number; `None` if the number is unknown.
    pub(crate) fn empty(type_id: u32) -> Option<Self> {
        Some(match type_id {
            value_type::U8 => Array::U8(Vec::new()),
            value_type::I8 => Array::I8(Vec::new()),
            value_type::U16 => Array::U16(Vec::new()),
            value_type::I16 => Array::I16(Vec::new()),
            value_type::U32 => Array::U32(Vec::new()),
            value_type::I32 => Array::I32(Vec::new()),
            value_type::F32 => Array::F32(Vec::new()),
            value_type::BOOL => Array::Bool(Vec::new()),
            value_type::STRING => Array::String(Vec::new()),
            value_type::ARRAY => Array::Array(Vec::new()),
            value_type::U64 => Array::U64(Vec::new()),
            value_type::I64 => Array::I64(Vec::new()),
            value_type::F64 => Array::F64(Vec::new()),
            _ => return None,
        })
    }

    /// The element type's number in a file.
    pub(crate) fn element_type_id(&self) -> u32 {
        match self {
            Array::U8(_) => value_type::U8,
            Array::I8(_) => value_type::I8,
            Array::U16(_) => value_type::U16,
            Array::I16(_) => value_type::I16,
            Array::U32(_) => value_type::U32,
            Array::I32(_) => value_type::I32,
            Array::F32(_) => value_type::F32,
            Array::Bool(_) => value_type::BOOL,
            Array::String(_) => value_type::STRING,
            Array::Array(_) => value_type::ARRAY,
            Array::U64(_) => value_type::U64,
            Array::I64(_) => value_type::I64,
            Array::F64(_) => value_type::F64,
        }
    }

    /// Fewest bytes an element takes in a file.
    pub(crate) fn min_element_bytes(&self) -> u64 {
        match self {
            Array::U8(_) | Array::I8(_) | Array::Bool(_) => 1,
            Array::U16(_) | Array::I16(_) => 2,
            Array::U32(_) | Array::I32(_) | Array::F32(_) => 4,
            Array::U64(_) | Array::I64(_) | Array::F64(_) | Array::String(_) => 8,
            Array::Array(_) => 12,
        }
    }

    fn element_name(&self) -> &'static str {
        match self {
            Array::U8(_) => "uint8",
            Array::I8(_) => "int8",
            Array::U16(_) => "uint16",
            Array::I16(_) => "int16",
            Array::U32(_) => "uint32",
            Array::I32(_) => "int32",
            Array::F32(_) => "float32",
            Array::Bool(_) => "bool",
            Array::String(_) => "string",
            Array::Array(_) => "array",
            Array::U64(_) => "uint64",
            Array::I64(_) => "int64",
            Array::F64(_) => "float64",
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        with_elements!(self, values => values.len())
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements as unsigned numbers, from any integer type; `None` if one cannot be converted.
    pub fn to_u64s(&self) -> Option<Vec<u64>> {
        match self {
            Array::U8(v) => Some(v.iter().map(|&v| v.into()).collect()),
            Array::U16(v) => Some(v.iter().map(|&v| v.into()).collect()),
            Array::U32(v) => Some(v.iter().map(|&v| v.into()).collect()),
            Array::U64(v) => Some(v.clone()),
            Array::I8(v) => v.iter().map(|&v| v.try_into().ok()).collect(),
            Array::I16(v) => v.iter().map(|&v| v.try_into().ok()).collect(),
            Array::I32(v) => v.iter().map(|&v| v.try_into().ok()).collect(),
            Array::I64(v) => v.iter().map(|&v| v.try_into().ok()).collect(),
            Array::Bool(v) => Some(v.iter().map(|&v| v.into()).collect()),
            _ => None,
        }
    }

    /// The elements as signed numbers, from any integer type; `None` if one cannot be converted.
    pub fn to_i64s(&self) -> Option<Vec<i64>> {
        match self {
            Array::I8(v) => Some(v.iter().map(|&v| v.into()).collect()),
            Array::I16(v) => Some(v.iter().map(|&v| v.into()).collect()),
            Array::I32(v) => Some(v.iter().map(|&v| v.into()).collect()),
            Array::I64(v) => Some(v.clone()),
            _ => self.to_u64s()?.into_iter().map(|v| v.try_into().ok()).collect(),
        }
    }

    /// The elements as floats, from any number type.
    pub fn to_f32s(&self) -> Option<Cow<'_, [f32]>> {
        match self {
            Array::F32(v) => Some(Cow::Borrowed(v)),
            Array::F64(v) => Some(v.iter().map(|&v| v as f32).collect()),
            _ => Some(self.to_i64s()?.into_iter().map(|v| v as f32).collect()),
        }
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Value::U32(value)
    }
}

impl From<f32> for Value {
    fn from(value: f32) -> Self {
        Value::F32(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::String(value.to_string())
    }
}

impl From<Vec<String>> for Value {
    fn from(values: Vec<String>) -> Self {
        Value::Array(Array::String(values))
    }
}
