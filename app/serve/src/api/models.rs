//! `GET /v1/models` and `GET /props`: the room's model, with the context that is served.

use potluck_panel::ModelCard;
use serde_json::{Value, json};

use crate::room::RoomState;

/// The id by which programs name a model: its name, with letters only that need no quoting anywhere.
pub(crate) fn id(card: &ModelCard) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || ['.', '_'].contains(&letter);
    let words = card.name.split(|letter| !is_plain(letter)).filter(|word| !word.is_empty());
    let id = words.collect::<Vec<_>>().join("-");
    if id.is_empty() { "model".to_owned() } else { id }
}

/// A program means this model.
pub(crate) fn is_meant(card: &ModelCard, name: &str) -> bool {
    name.is_empty() || name.eq_ignore_ascii_case(&id(card)) || name == card.name
}

/// The list of models: the room's, if there is one.
pub(crate) fn list(state: &RoomState, created: u64) -> Value {
    let models: Vec<Value> = state.model.iter().map(|card| entry(card, state.context, created)).collect();
    json!({ "object": "list", "data": models })
}

/// A model. The served context has the names under which different programs look for it.
pub(crate) fn entry(card: &ModelCard, context: u32, created: u64) -> Value {
    json!({
        "id": id(card),
        "object": "model",
        "created": created,
        "owned_by": "potluck",
        "name": card.name,
        "context_length": context,
        "max_model_len": context,
        "metadata": { "context_length": context },
        "meta": { "n_ctx": context, "n_ctx_train": card.context, "n_params": card.parameters, "size": card.bytes.0 },
    })
}

/// What llama.cpp's server says of itself, as far as programs read it.
pub(crate) fn props(state: &RoomState, slots: usize) -> Value {
    json!({
        "default_generation_settings": { "n_ctx": state.context },
        "total_slots": slots,
        "model_alias": state.model.as_ref().map(id),
        "modalities": { "vision": false, "audio": false },
        "build_info": potluck_panel::BUILD,
    })
}

#[cfg(test)]
pub(crate) fn test_card(name: &str) -> ModelCard {
    ModelCard {
        id: potluck_panel::ModelId([0; 32]),
        source: potluck_panel::ModelSource::Relay { name: "tiny".to_owned() },
        name: name.to_owned(),
        architecture: "llama".to_owned(),
        quantization: "Q4_K_M".to_owned(),
        bytes: potluck_panel::Bytes(1_000),
        parameters: 2_000,
        active_parameters: 2_000,
        blocks: 2,
        experts: 0,
        context: 32_768,
        licence: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_needs_no_quoting() {
        assert_eq!(id(&test_card("Qwen2.5 Coder 0.5B (Instruct)")), "Qwen2.5-Coder-0.5B-Instruct");
        assert_eq!(id(&test_card("  ")), "model");
        let card = test_card("Potluck Small");
        for name in ["Potluck-Small", "potluck-small", "Potluck Small", ""] {
            assert!(is_meant(&card, name), "{name}");
        }
        assert!(!is_meant(&card, "gpt-4o"));
    }

    #[test]
    fn the_served_context_is_told_and_not_the_trained_one() {
        let state = RoomState { model: Some(test_card("tiny")), context: 4_096, is_up: true };
        let list = list(&state, 7);
        let model = &list["data"][0];
        for served in [&model["context_length"], &model["max_model_len"], &model["meta"]["n_ctx"]] {
            assert_eq!(served, &json!(4_096), "{model}");
        }
        assert_eq!(model["meta"]["n_ctx_train"], 32_768);
        assert_eq!(props(&state, 6)["default_generation_settings"]["n_ctx"], 4_096);
        assert_eq!(super::list(&RoomState::default(), 7)["data"], json!([]), "no model yet");
    }
}
