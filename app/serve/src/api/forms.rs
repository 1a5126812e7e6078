//! The form that an answer must have, in the words of each API.

use potluck_grammar::{is_gbnf, lark_of_gbnf};
use potluck_panel::{AnswerForm, ToolChoice};
use serde_json::Value;

use crate::error::ApiError;
use crate::fields::Fields;
use crate::question::Tools;

/// Fields of other servers that programs know: llama.cpp's, and the older ones of vLLM.
const OF_SERVERS: [&str; 6] =
    ["json_schema", "grammar", "guided_json", "guided_regex", "guided_choice", "guided_grammar"];
/// vLLM's newer field, and what it may have.
const OF_VLLM: &str = "structured_outputs";
const IN_VLLM: [&str; 5] = ["json", "regex", "choice", "grammar", "json_object"];

/// The form of an answer in OpenAI's older APIs.
pub(super) fn of_chat(fields: &Fields<'_>) -> Result<AnswerForm, ApiError> {
    let format = of_format("response_format", fields.get("response_format"))?;
    one_of(format, of_servers(fields)?)
}

/// A format as all APIs have it: an object with a type. A schema is inside, or one level deeper.
pub(super) fn of_format(name: &str, format: Option<&Value>) -> Result<AnswerForm, ApiError> {
    let Some(format) = format else { return Ok(AnswerForm::Free) };
    let inner = format.get("json_schema").filter(|inner| !inner.is_null()).unwrap_or(format);
    let schema = inner.get("schema").filter(|schema| !schema.is_null());
    match (format.get("type").and_then(Value::as_str), schema) {
        (Some("text"), _) => Ok(AnswerForm::Free),
        // As llama.cpp's server has it.
        (Some("json_schema" | "json_object"), Some(schema)) => of_schema(&format!("{name}.schema"), schema),
        (Some("json_object"), None) => Ok(AnswerForm::Json),
        (Some("json_schema"), None) => Err(ApiError::invalid(format!("{name}.schema"), "expected a JSON schema")),
        (Some(_), _) => Err(ApiError::unsupported(name, "text, json_object and json_schema are supported")),
        (None, _) => Err(ApiError::invalid(name, "expected an object with a type")),
    }
}

/// With calls of functions that must be called, or whose schemas are meant strictly.
pub(super) fn with_calls(form: AnswerForm, tools: &Tools) -> AnswerForm {
    let is_demanded = tools.offer.choice != ToolChoice::Free;
    match form {
        AnswerForm::Free if is_demanded || tools.is_strict => AnswerForm::Calls { strict: tools.is_strict },
        form => form,
    }
}

fn of_servers(fields: &Fields<'_>) -> Result<AnswerForm, ApiError> {
    let mut form = AnswerForm::Free;
    for name in OF_SERVERS {
        if let Some(value) = fields.get(name) {
            let kind = name.strip_prefix("guided_").unwrap_or(name);
            form = one_of(form, of_kind(name, kind, value)?)?;
        }
    }
    if let Some(outputs) = fields.get(OF_VLLM) {
        let outputs = Fields::of(outputs).map_err(|_| ApiError::invalid(OF_VLLM, "expected an object"))?;
        for kind in IN_VLLM {
            if let Some(value) = outputs.get(kind) {
                form = one_of(form, of_kind(&format!("{OF_VLLM}.{kind}"), kind, value)?)?;
            }
        }
    }
    Ok(form)
}

fn one_of(first: AnswerForm, second: AnswerForm) -> Result<AnswerForm, ApiError> {
    match (first.is_free(), second.is_free()) {
        (_, true) => Ok(first),
        (true, false) => Ok(second),
        (false, false) => {
            Err(ApiError::invalid("response_format", "expected one form of the answer, and there are several"))
        }
    }
}

fn of_kind(name: &str, kind: &str, value: &Value) -> Result<AnswerForm, ApiError> {
    let text = || {
        let text = value.as_str().filter(|text| !text.is_empty());
        text.map(str::to_owned).ok_or_else(|| ApiError::invalid(name, "expected a string"))
    };
    match kind {
        "json" | "json_schema" => match value {
            // A schema as text, which vLLM takes as well.
            Value::String(text) => of_schema(name, &serde_json::from_str(text).unwrap_or_default()),
            schema => of_schema(name, schema),
        },
        "json_object" => Ok(if value == &Value::Bool(true) { AnswerForm::Json } else { AnswerForm::Free }),
        "regex" => Ok(AnswerForm::Regex(text()?)),
        "choice" => choice(name, value),
        _ => match text()? {
            gbnf if is_gbnf(&gbnf) => {
                let lark = lark_of_gbnf(&gbnf).map_err(|error| ApiError::invalid(name, error.to_string()))?;
                bounded(name, lark).map(AnswerForm::Lark)
            }
            lark => Ok(AnswerForm::Lark(lark)),
        },
    }
}

fn of_schema(name: &str, schema: &Value) -> Result<AnswerForm, ApiError> {
    match schema {
        Value::Object(_) => bounded(name, schema.to_string()).map(AnswerForm::Schema),
        _ => Err(ApiError::invalid(name, "expected a JSON schema")),
    }
}

/// One of these texts.
fn choice(name: &str, value: &Value) -> Result<AnswerForm, ApiError> {
    let texts = value.as_array().filter(|texts| !texts.is_empty());
    let text = |text: &Value| text.as_str().filter(|text| !text.is_empty()).map(|_| text.to_string());
    let texts = texts.and_then(|texts| texts.iter().map(text).collect::<Option<Vec<String>>>());
    let texts = texts.ok_or_else(|| ApiError::invalid(name, "expected an array of strings"))?;
    bounded(name, format!("start: {}", texts.join(" | "))).map(AnswerForm::Lark)
}

/// What the room would not take is refused here.
fn bounded(name: &str, text: String) -> Result<String, ApiError> {
    let most = AnswerForm::MAX_BYTES;
    if text.len() > most {
        return Err(ApiError::invalid(name, format!("expected at most {most} bytes, and it has {}", text.len())));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_panel::ToolOffer;
    use serde_json::json;

    use super::*;

    fn chat(body: &Value) -> Result<AnswerForm, ApiError> {
        of_chat(&Fields::of(body).unwrap())
    }

    #[test]
    fn each_api_has_its_own_words_for_a_form() {
        let schema = json!({ "type": "object", "properties": { "b": {}, "a": {} } });
        let expected = || AnswerForm::Schema(r#"{"type":"object","properties":{"b":{},"a":{}}}"#.to_owned());
        for format in [
            json!({ "type": "json_schema", "json_schema": { "name": "x", "strict": true, "schema": schema } }),
            json!({ "type": "json_schema", "name": "x", "schema": schema, "json_schema": null }),
            json!({ "type": "json_object", "schema": schema }),
        ] {
            assert_eq!(of_format("format", Some(&format)), Ok(expected()), "properties keep their order: {format}");
            assert_eq!(chat(&json!({ "response_format": format })), Ok(expected()));
        }
        assert_eq!(of_format("format", None), Ok(AnswerForm::Free));
        assert_eq!(chat(&json!({ "response_format": { "type": "text" } })), Ok(AnswerForm::Free));
        assert_eq!(chat(&json!({ "response_format": { "type": "json_object" } })), Ok(AnswerForm::Json));
        for fields in [
            json!({ "json_schema": schema }),
            json!({ "guided_json": schema }),
            json!({ "guided_json": schema.to_string() }),
            json!({ "structured_outputs": { "json": schema, "regex": null } }),
        ] {
            assert_eq!(chat(&fields), Ok(expected()), "{fields}");
        }
        let lark = |text: &str| Ok(AnswerForm::Lark(text.to_owned()));
        assert_eq!(chat(&json!({ "guided_regex": "a+" })), Ok(AnswerForm::Regex("a+".to_owned())));
        assert_eq!(chat(&json!({ "guided_choice": ["yes", "no \"way\""] })), lark(r#"start: "yes" | "no \"way\"""#));
        assert_eq!(chat(&json!({ "grammar": "start: \"a\"" })), lark("start: \"a\""));
        assert_eq!(
            chat(&json!({ "grammar": "root ::= [ab] \"c\"" })),
            lark("start: rule_0\nrule_0: /[ab]c/\n"),
            "GBNF"
        );
        assert_eq!(chat(&json!({ "structured_outputs": { "grammar": "start: \"a\"" } })), lark("start: \"a\""));
        assert_eq!(chat(&json!({ "structured_outputs": { "json_object": true } })), Ok(AnswerForm::Json));
    }

    #[test]
    fn what_is_no_form_is_named() {
        let long = json!({ "type": "object", "description": "x".repeat(AnswerForm::MAX_BYTES) });
        for (body, field) in [
            (json!({ "response_format": "json" }), "response_format"),
            (json!({ "response_format": { "type": "xml" } }), "response_format"),
            (json!({ "response_format": { "type": "json_schema" } }), "response_format.schema"),
            (json!({ "response_format": { "type": "json_schema", "schema": [] } }), "response_format.schema"),
            (json!({ "response_format": { "type": "json_schema", "schema": long } }), "response_format.schema"),
            (json!({ "guided_json": "{" }), "guided_json"),
            (json!({ "guided_regex": 5 }), "guided_regex"),
            (json!({ "guided_choice": [] }), "guided_choice"),
            (json!({ "guided_choice": ["a", ""] }), "guided_choice"),
            (json!({ "grammar": "root ::= other" }), "grammar"),
            (json!({ "structured_outputs": 5 }), "structured_outputs"),
            (json!({ "structured_outputs": { "regex": "" } }), "structured_outputs.regex"),
            (json!({ "guided_regex": "a", "response_format": { "type": "json_object" } }), "response_format"),
        ] {
            let error = chat(&body).unwrap_err().to_json();
            assert_eq!(error["error"]["param"], field, "{error}");
        }
    }

    #[test]
    fn calls_are_held_to_schemas_where_they_must_come_or_are_strict() {
        let tools = |choice, is_strict| {
            let offer = ToolOffer { functions: vec!["{}".to_owned()], choice };
            Tools { offer, is_strict, ..Tools::default() }
        };
        let with = |choice, is_strict| with_calls(AnswerForm::Free, &tools(choice, is_strict));
        assert_eq!(with(ToolChoice::Free, false), AnswerForm::Free);
        assert_eq!(with(ToolChoice::Free, true), AnswerForm::Calls { strict: true });
        assert_eq!(with(ToolChoice::Any, false), AnswerForm::Calls { strict: false });
        assert_eq!(with_calls(AnswerForm::Json, &tools(ToolChoice::Any, true)), AnswerForm::Json);
        assert_eq!(with_calls(AnswerForm::Free, &Tools::default()), AnswerForm::Free);
    }
}
