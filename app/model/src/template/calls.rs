//! Reads the calls of functions that a model wrote, where their form is a common one. Arguments stay as they are written: in a
//! number every digit may count, and a model reads again what it wrote.

use serde::de::IgnoredAny;

use super::ToolCall;

impl ToolCall {
    /// The calls in a text: JSON objects with name and arguments (Hermes, Qwen, Mistral), one in a line or in a list, or a name
    /// and an object (harmony). Empty if any of it has another form.
    pub fn read(text: &str) -> Vec<Self> {
        let mut calls = read_all(text.trim()).unwrap_or_default();
        for (index, call) in calls.iter_mut().enumerate() {
            // Nine letters or digits, as Mistral's templates want it.
            call.id = format!("call{index:05}");
        }
        calls
    }
}

fn read_all(mut rest: &str) -> Option<Vec<ToolCall>> {
    let mut calls = Vec::new();
    while !rest.is_empty() {
        let (name, json) = rest.split_at(rest.find(['{', '[']).unwrap_or(0));
        let name = name.trim();
        let (value, behind) = value(json)?;
        rest = behind;
        if !name.is_empty() {
            let is_call = value.starts_with('{') && !name.contains(char::is_whitespace);
            calls.push(is_call.then(|| call(name, value))?);
        } else if let Some(list) = within(value, '[', ']') {
            calls.extend(items(list)?.into_iter().map(named).collect::<Option<Vec<ToolCall>>>()?);
        } else {
            calls.push(named(value)?);
        }
    }
    Some(calls)
}

fn named(object: &str) -> Option<ToolCall> {
    let fields = fields(within(object, '{', '}')?)?;
    let field = |name: &str| fields.iter().rfind(|(field, _)| field == name).map(|(_, value)| *value);
    let arguments = field("arguments").or_else(|| field("parameters")).unwrap_or("{}");
    Some(call(&string(field("name")?)?, arguments))
}

fn call(name: &str, arguments: &str) -> ToolCall {
    // Some models write the JSON as a string.
    let arguments = string(arguments).unwrap_or_else(|| arguments.to_owned());
    ToolCall { id: String::new(), name: name.to_owned(), arguments }
}

fn string(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}

/// The JSON value with which a text begins, as it is written, and what is behind it.
fn value(text: &str) -> Option<(&str, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    let (value, behind) = text.split_at(values.byte_offset());
    Some((value, behind.trim_start()))
}

/// What is within the brackets of a list or an object.
fn within(value: &str, open: char, close: char) -> Option<&str> {
    Some(value.strip_prefix(open)?.strip_suffix(close)?.trim_start())
}

/// The values of a list.
fn items(mut rest: &str) -> Option<Vec<&str>> {
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (item, behind) = value(rest)?;
        all.push(item);
        rest = behind.strip_prefix(',').unwrap_or(behind).trim_start();
    }
    Some(all)
}

/// The fields of an object.
fn fields(mut rest: &str) -> Option<Vec<(String, &str)>> {
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (name, behind) = value(rest)?;
        let (value, behind) = value(behind.strip_prefix(':')?.trim_start())?;
        all.push((string(name)?, value));
        rest = behind.strip_prefix(',').unwrap_or(behind).trim_start();
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        ToolCall::read(text).into_iter().map(|call| (call.name, call.arguments)).collect()
    }

    #[test]
    fn calls_of_common_forms_are_read() {
        let rome = vec![("weather".to_owned(), "{\"city\": \"Rome\"}".to_owned())];
        assert_eq!(read(r#"{"name": "weather", "arguments": {"city": "Rome"}}"#), rome);
        assert_eq!(read(r#"[{"name": "weather", "parameters": {"city": "Rome"}}]"#), rome);
        assert_eq!(read(r#"weather {"city": "Rome"}"#), rome);
        let twice = format!("{0}\n{0}", r#"{"name": "weather", "arguments": {"city": "Rome"}}"#);
        assert_eq!(read(&twice), [rome.clone(), rome].concat());
    }

    /// serde_json's values would sort the keys and round large numbers.
    #[test]
    fn arguments_stay_as_they_are_written() {
        let arguments = r#"{"to": "b", "from": "a", "id": 123456789012345678901234567890, "rate": 1.10, "all": [{"b": 1, "a": 2}]}"#;
        let expected = vec![("move".to_owned(), arguments.to_owned())];
        assert_eq!(read(&format!("{{\"name\": \"move\", \"arguments\": {arguments} }}")), expected);
        assert_eq!(read(&format!("[ {{ \"arguments\" : {arguments},\n\"name\" : \"move\"}} ]")), expected);
        assert_eq!(read(&format!("move {arguments}")), expected);
        let as_string = serde_json::to_string(arguments).expect("JSON");
        assert_eq!(read(&format!("{{\"name\": \"move\", \"arguments\": {as_string}}}")), expected);
        assert_eq!(read("{\"name\": \"now\"}"), [("now".to_owned(), "{}".to_owned())]);
    }

    #[test]
    fn other_forms_are_no_calls() {
        for text in
            ["", "<function=weather>", "{\"name\": 1}", "{\"name\": \"a\"} and more", "the weather {}", "{\"a\""]
        {
            assert_eq!(read(text), [], "{text}");
        }
    }
}
