//! The variables by which templates switch reasoning. Each is given only if it is asked for.

use potluck_plan::ReasoningEffort;

use super::jinja::Value;

/// The usual word for an effort, and others, the best first: templates know different ones, and many refuse the rest.
pub(super) fn words(effort: ReasoningEffort) -> (&'static str, &'static [&'static str]) {
    match effort {
        // gpt-oss and Solar cannot be without reasoning.
        ReasoningEffort::Off => ("low", &["none", "no_think", "minimal"]),
        ReasoningEffort::Low => ("low", &["minimal", "medium", "high"]),
        ReasoningEffort::Medium => ("medium", &["high", "low"]),
        ReasoningEffort::High => ("high", &["xhigh", "max", "medium"]),
    }
}

/// What a template may read of whether the model is to reason, and how much, with this word for it.
pub(super) fn variables(thinking: Option<bool>, effort: Option<&str>) -> Vec<(&'static str, Value)> {
    let mut all: Vec<(&'static str, Value)> = Vec::new();
    if let Some(thinks) = thinking {
        // Qwen3 and most others; DeepSeek, Granite and Kimi; Cohere.
        all.extend(["enable_thinking", "thinking", "reasoning"].map(|name| (name, Value::from(thinks))));
        // MiniMax M3.
        all.push(("thinking_mode", Value::from(if thinks { "enabled" } else { "disabled" })));
        if !thinks {
            // Seed-OSS: tokens.
            all.push(("thinking_budget", Value::from(0_usize)));
        }
    }
    if let Some(word) = effort {
        all.extend(["reasoning_effort", "thinking_effort"].map(|variable| (variable, Value::from(word))));
    }
    all
}
