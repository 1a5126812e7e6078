//! Fields that the APIs share.

use potluck_panel::{LogitBias, LogitOptions, ReasoningEffort, Sampling};
use serde_json::Value;

use super::forms;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::question::Delivery;

/// Stop strings of a request, at most.
const MAX_STOPS: usize = 16;
/// Bytes of a stop string: an answer's text is held back while it may begin one.
const MAX_STOP_BYTES: usize = 256;
/// The highest temperature that rooms know.
const MAX_TEMPERATURE: f32 = 5.0;
/// The highest penalty that programs send; rooms know up to 2.
const MAX_PENALTY: f32 = 10.0;

/// Why a field is refused that this API knows and cannot serve.
const ONE_ANSWER: &str = "this API gives one answer per request";
const NO_LOGPROBS: &str = "token probabilities are not available in this API";
const NO_BIAS: &str = "token biases are not available in this API";

/// Where OpenAI's older APIs have the limit of tokens; the newer name counts.
pub(super) const LIMITS: [&str; 2] = ["max_completion_tokens", "max_tokens"];

/// Answers of a request, at most.
const MAX_ANSWERS: u8 = 8;

/// How many answers are wanted.
pub(super) fn answers(fields: &Fields<'_>) -> Result<u8, ApiError> {
    let answers = match fields.integer("n")? {
        None => 1,
        Some(count) => u8::try_from(count)
            .ok()
            .filter(|count| (1..=MAX_ANSWERS).contains(count))
            .ok_or_else(|| ApiError::invalid("n", format!("expected an integer from 1 to {MAX_ANSWERS}")))?,
    };
    match fields.integer("best_of")? {
        Some(best) if best != i64::from(answers) => Err(ApiError::unsupported("best_of", "all answers are returned")),
        _ => Ok(answers),
    }
}

/// What a chat wants of the logits.
pub(super) fn logits_of_chat(fields: &Fields<'_>) -> Result<LogitOptions, ApiError> {
    let likeliest = likeliest(fields, "top_logprobs")?;
    let top_logprobs = match fields.boolean("logprobs")? {
        Some(true) => Some(likeliest.unwrap_or(0)),
        Some(false) | None if likeliest.is_none_or(|count| count == 0) => None,
        Some(false) | None => return Err(ApiError::invalid("top_logprobs", "expected logprobs to be true as well")),
    };
    Ok(LogitOptions { bias: logit_bias(fields)?, top_logprobs, form: forms::of_chat(fields)? })
}

/// What a completion wants of the logits.
pub(super) fn logits_of_completion(fields: &Fields<'_>) -> Result<LogitOptions, ApiError> {
    let top_logprobs = likeliest(fields, "logprobs")?;
    Ok(LogitOptions { bias: logit_bias(fields)?, top_logprobs, form: forms::of_chat(fields)? })
}

fn likeliest(fields: &Fields<'_>, name: &str) -> Result<Option<u8>, ApiError> {
    let most = LogitOptions::MAX_TOP;
    let within = |count| u8::try_from(count).ok().filter(|count| *count <= most);
    let count = fields.integer(name)?.map(|count| {
        within(count).ok_or_else(|| ApiError::invalid(name, format!("expected an integer from 0 to {most}")))
    });
    count.transpose()
}

/// What is added to the logits of which tokens.
fn logit_bias(fields: &Fields<'_>) -> Result<LogitBias, ApiError> {
    let Some(bias) = fields.get("logit_bias") else { return Ok(LogitBias::default()) };
    let wrong = || ApiError::invalid("logit_bias", "expected an object from token ids to numbers from -100 to 100");
    let pair = |(id, bias): (&String, &Value)| Some((id.parse::<u32>().ok()?, bias.as_f64()? as f32));
    let tokens = bias.as_object().ok_or_else(wrong)?.iter().map(pair).collect::<Option<Vec<_>>>().ok_or_else(wrong)?;
    LogitBias::new(tokens).map_err(|error| ApiError::invalid("logit_bias", error.to_string()))
}

/// Refuses what would change the answer's meaning and cannot be done, in an API that has no more than text. Whatever else is unknown is
/// ignored.
pub(super) fn refuse_what_cannot_be(fields: &Fields<'_>) -> Result<(), ApiError> {
    for name in ["n", "best_of"] {
        if fields.integer(name)?.is_some_and(|count| count != 1) {
            return Err(ApiError::unsupported(name, ONE_ANSWER));
        }
    }
    // A number in one API, a boolean in the other.
    for name in ["logprobs", "top_logprobs"] {
        let asks = fields.get(name).is_some_and(|value| match value {
            Value::Bool(asks) => *asks,
            Value::Number(count) => count.as_f64() != Some(0.0) || name == "logprobs",
            _ => true,
        });
        if asks {
            return Err(ApiError::unsupported(name, NO_LOGPROBS));
        }
    }
    if fields.get("logit_bias").is_some_and(|bias| bias.as_object().is_none_or(|bias| !bias.is_empty())) {
        return Err(ApiError::unsupported("logit_bias", NO_BIAS));
    }
    Ok(())
}

/// How tokens are sampled, but for the seed: what is not given is as the page's settings have it.
pub(super) fn sampling(fields: &Fields<'_>) -> Result<Sampling, ApiError> {
    let usual = Sampling::default();
    // llama.cpp's name, and vLLM's.
    let penalty = fields.number("repeat_penalty", MAX_PENALTY)?.or(fields.number("repetition_penalty", MAX_PENALTY)?);
    let top_k = fields.integer("top_k")?.map(|count| u32::try_from(count.max(0)).unwrap_or(u32::MAX));
    let sampling = Sampling {
        temperature: fields.number("temperature", MAX_TEMPERATURE)?.unwrap_or(usual.temperature),
        top_p: fields.number("top_p", 1.0)?.unwrap_or(usual.top_p),
        top_k: top_k.unwrap_or(usual.top_k),
        min_p: fields.number("min_p", 1.0)?.unwrap_or(usual.min_p),
        repetition_penalty: penalty.unwrap_or(usual.repetition_penalty),
        ..usual
    };
    Ok(sampling.within_limits())
}

/// The seed; none means another one each time, as -1 does.
pub(super) fn seed(fields: &Fields<'_>) -> Result<Option<u64>, ApiError> {
    Ok(fields.integer("seed")?.filter(|seed| *seed != -1).map(i64::cast_unsigned))
}

/// Most tokens to write, by the first of these fields that is given. -1 means no limit.
pub(super) fn max_tokens(fields: &Fields<'_>, names: &[&str]) -> Result<Option<u32>, ApiError> {
    for name in names {
        match fields.integer(name)? {
            None => {}
            Some(-1) => return Ok(None),
            Some(count @ 1..) => return Ok(Some(u32::try_from(count).unwrap_or(u32::MAX))),
            Some(_) => return Err(ApiError::invalid(*name, "expected at least 1")),
        }
    }
    Ok(None)
}

/// The strings before which the answer ends, in the field of this name.
pub(super) fn stops(fields: &Fields<'_>, name: &str) -> Result<Vec<String>, ApiError> {
    let stops = fields.texts(name)?;
    if stops.len() > MAX_STOPS || stops.iter().any(|stop| stop.len() > MAX_STOP_BYTES) {
        let most = format!("expected at most {MAX_STOPS} strings of at most {MAX_STOP_BYTES} bytes");
        return Err(ApiError::invalid(name, most));
    }
    Ok(stops)
}

/// Whether the answer is streamed.
pub(super) fn delivery(fields: &Fields<'_>) -> Result<Delivery, ApiError> {
    if fields.boolean("stream")? != Some(true) {
        return Ok(Delivery::Whole);
    }
    let with_usage = match fields.get("stream_options") {
        None => false,
        Some(options) => {
            let options = Fields::of(options).map_err(|_| ApiError::invalid("stream_options", "expected an object"))?;
            options.boolean("include_usage")? == Some(true)
        }
    };
    Ok(Delivery::Stream { with_usage })
}

/// How much the model is to think: OpenAI's field, OpenRouter's, or the one of Qwen's template.
pub(super) fn reasoning(fields: &Fields<'_>) -> Option<ReasoningEffort> {
    let inner = |object: &str, name: &str| fields.get(object).and_then(|object| object.get(name));
    let effort = fields.get("reasoning_effort").or_else(|| inner("reasoning", "effort")).and_then(Value::as_str);
    if let Some(effort) = effort.and_then(effort_of) {
        return Some(effort);
    }
    match inner("chat_template_kwargs", "enable_thinking").and_then(Value::as_bool) {
        Some(true) => Some(ReasoningEffort::Medium),
        Some(false) => Some(ReasoningEffort::Off),
        None => None,
    }
}

/// The effort of this name.
pub(super) fn effort_of(name: &str) -> Option<ReasoningEffort> {
    match name {
        "none" | "off" => Some(ReasoningEffort::Off),
        "minimal" | "low" => Some(ReasoningEffort::Low),
        "medium" => Some(ReasoningEffort::Medium),
        "high" | "xhigh" | "max" => Some(ReasoningEffort::High),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use serde_json::json;

    use super::*;

    fn with<T>(body: &Value, read: impl FnOnce(&Fields<'_>) -> T) -> T {
        read(&Fields::of(body).unwrap())
    }

    #[test]
    fn sampling_that_is_not_given_is_the_rooms() {
        assert_eq!(with(&json!({ "temperature": null }), sampling), Ok(Sampling::default()));
        let given = json!({ "temperature": 0, "top_p": 0.5, "top_k": -1, "min_p": 0.1, "repeat_penalty": 1.1 });
        let given = with(&given, sampling).unwrap();
        assert_eq!((given.temperature, given.top_p, given.top_k, given.min_p), (0.0, 0.5, 0, 0.1));
        assert_eq!(given.repetition_penalty, 1.1);
        assert_eq!(
            with(&json!({ "repetition_penalty": 3 }), sampling).unwrap().repetition_penalty,
            2.0,
            "within limits"
        );
        for wrong in [json!({ "temperature": -1 }), json!({ "temperature": "warm" }), json!({ "top_p": 1.5 })] {
            assert!(matches!(with(&wrong, sampling), Err(ApiError::Invalid { .. })), "{wrong}");
        }
    }

    #[test]
    fn the_newer_limit_counts_and_minus_one_is_none() {
        let limit = |body: Value| with(&body, |fields| max_tokens(fields, &LIMITS));
        assert_eq!(limit(json!({ "max_tokens": 5 })), Ok(Some(5)));
        assert_eq!(limit(json!({ "max_tokens": 5, "max_completion_tokens": 6 })), Ok(Some(6)));
        assert_eq!(limit(json!({ "max_tokens": -1 })), Ok(None));
        assert_eq!(limit(json!({})), Ok(None));
        assert!(limit(json!({ "max_tokens": 0 })).is_err());
        assert!(limit(json!({ "max_tokens": "5" })).is_err());
    }

    #[test]
    fn a_seed_may_be_any_integer() {
        let seed = |body: Value| with(&body, seed);
        assert_eq!(seed(json!({ "seed": 7 })), Ok(Some(7)));
        assert_eq!(seed(json!({ "seed": -1 })), Ok(None));
        assert_eq!(seed(json!({ "seed": -2 })), Ok(Some(u64::MAX - 1)));
    }

    #[test]
    fn what_would_mean_another_answer_is_refused() {
        for wrong in [
            json!({ "n": 2 }),
            json!({ "best_of": 3 }),
            json!({ "logprobs": true }),
            json!({ "logprobs": 0 }),
            json!({ "top_logprobs": 5 }),
            json!({ "logit_bias": { "5": 1 } }),
        ] {
            let error = with(&wrong, refuse_what_cannot_be).unwrap_err();
            assert!(matches!(error, ApiError::Unsupported { .. }), "{wrong}: {error}");
        }
        let harmless =
            json!({ "n": 1, "logprobs": false, "top_logprobs": 0, "logit_bias": {}, "prompt_cache_key": "a" });
        assert_eq!(with(&harmless, refuse_what_cannot_be), Ok(()));
    }

    #[test]
    fn several_answers_have_a_limit() {
        let answers = |body: Value| with(&body, answers);
        assert_eq!([answers(json!({})), answers(json!({ "n": 8, "best_of": 8 }))], [Ok(1), Ok(8)]);
        for wrong in [json!({ "n": 0 }), json!({ "n": 9 }), json!({ "n": -1 }), json!({ "n": "2" })] {
            assert!(matches!(answers(wrong.clone()), Err(ApiError::Invalid { .. })), "{wrong}");
        }
        assert!(matches!(answers(json!({ "best_of": 3 })), Err(ApiError::Unsupported { .. })));
    }

    #[test]
    fn log_probabilities_are_asked_for_in_two_ways() {
        let top = |body: Value, read: fn(&Fields<'_>) -> Result<LogitOptions, ApiError>| {
            with(&body, |fields| read(fields).map(|logits| logits.top_logprobs))
        };
        assert_eq!(top(json!({ "logprobs": true }), logits_of_chat), Ok(Some(0)));
        assert_eq!(top(json!({ "logprobs": true, "top_logprobs": 20 }), logits_of_chat), Ok(Some(20)));
        assert_eq!(top(json!({ "logprobs": false, "top_logprobs": 0 }), logits_of_chat), Ok(None));
        assert_eq!(top(json!({ "logprobs": 0 }), logits_of_completion), Ok(Some(0)));
        assert_eq!(top(json!({ "logprobs": null }), logits_of_completion), Ok(None));
        for wrong in
            [json!({ "top_logprobs": 2 }), json!({ "logprobs": true, "top_logprobs": 21 }), json!({ "logprobs": 3 })]
        {
            assert!(matches!(top(wrong.clone(), logits_of_chat), Err(ApiError::Invalid { .. })), "{wrong}");
        }
        assert!(top(json!({ "logprobs": 21 }), logits_of_completion).is_err());
    }

    #[test]
    fn a_bias_is_a_map_from_tokens_to_bounded_numbers() {
        let bias = |bias: Value| with(&json!({ "logit_bias": bias }), logit_bias);
        assert_eq!(bias(json!({ "7": -100, "5": 1.5 })).unwrap().tokens(), [(5, 1.5), (7, -100.0)]);
        assert!(bias(json!({})).unwrap().is_empty() && bias(Value::Null).unwrap().is_empty());
        let many: serde_json::Map<String, Value> = (0..1_025).map(|id| (id.to_string(), json!(1))).collect();
        for wrong in
            [json!({ "a": 1 }), json!({ "5": "x" }), json!({ "5": 101 }), json!({ "-1": 1 }), json!([1]), json!(many)]
        {
            assert!(matches!(bias(wrong.clone()), Err(ApiError::Invalid { .. })), "{wrong}");
        }
        assert!(bias(json!({ "5": 1, "05": 2 })).is_err(), "one token twice");
    }

    #[test]
    fn streams_say_their_usage_if_asked() {
        let delivery = |body: Value| with(&body, delivery);
        assert_eq!(delivery(json!({})), Ok(Delivery::Whole));
        assert_eq!(delivery(json!({ "stream": true })), Ok(Delivery::Stream { with_usage: false }));
        let options = json!({ "stream": true, "stream_options": { "include_usage": true } });
        assert_eq!(delivery(options), Ok(Delivery::Stream { with_usage: true }));
        assert!(delivery(json!({ "stream": "yes" })).is_err());
        assert!(delivery(json!({ "stream": true, "stream_options": 1 })).is_err());
    }

    #[test]
    fn effort_has_three_names() {
        let reasoning = |body: Value| with(&body, reasoning);
        assert_eq!(reasoning(json!({ "reasoning_effort": "none" })), Some(ReasoningEffort::Off));
        assert_eq!(reasoning(json!({ "reasoning": { "effort": "high" } })), Some(ReasoningEffort::High));
        let template = json!({ "chat_template_kwargs": { "enable_thinking": false } });
        assert_eq!(reasoning(template), Some(ReasoningEffort::Off));
        assert_eq!(reasoning(json!({ "reasoning_effort": "much" })), None);
    }

    #[test]
    fn stop_strings_are_few_and_short() {
        let stops = |body: Value| with(&body, |fields| stops(fields, "stop"));
        assert_eq!(stops(json!({ "stop": "END" })).unwrap(), ["END"]);
        assert!(stops(json!({ "stop": vec!["a"; MAX_STOPS + 1] })).is_err());
        assert!(stops(json!({ "stop": "a".repeat(MAX_STOP_BYTES + 1) })).is_err());
        assert!(stops(json!({ "stop": [1] })).is_err());
    }
}
