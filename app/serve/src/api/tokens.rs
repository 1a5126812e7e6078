//! `/tokenize`, `/detokenize` and `/apply-template`, as llama.cpp's server and vLLM have them.

use potluck_model::SpecialText;
use potluck_panel::PromptRequest;
use serde_json::{Value, json};

use super::chat;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::text_side::TextSide;

/// Tokens of a request, at most.
const MAX_TOKENS: usize = 1 << 20;

/// `POST /tokenize`. llama.cpp's field is `content`, vLLM's are `prompt` and `messages`.
pub(crate) fn tokenize(side: &TextSide, context: u32, body: &Value) -> Result<Value, ApiError> {
    let fields = &Fields::of(body)?;
    let tokens = match (fields.text("content")?, fields.text("prompt")?) {
        (Some(text), _) => side.tokens(text, fields.boolean("add_special")? == Some(true), special(fields)?)?,
        (None, Some(text)) => {
            side.tokens(text, fields.boolean("add_special_tokens")? != Some(false), SpecialText::Parse)?
        }
        (None, None) if fields.get("messages").is_some() => side.rendered(&conversation(body)?)?,
        (None, None) => return Err(ApiError::invalid("content", "expected a string")),
    };
    let pieces = fields.boolean("with_pieces")? == Some(true);
    let listed = match pieces {
        true => tokens.iter().map(|id| piece(side, *id)).collect::<Result<Value, _>>()?,
        false => json!(tokens),
    };
    let mut reply = json!({ "tokens": listed, "count": tokens.len(), "max_model_len": context });
    if fields.boolean("return_token_strs")? == Some(true) {
        let text = |id: &u32| Ok(String::from_utf8_lossy(&side.piece(*id)?).into_owned());
        reply["token_strs"] = tokens.iter().map(text).collect::<Result<Value, ApiError>>()?;
    }
    Ok(reply)
}

/// Whether control tokens are recognised in a text: they are, unless told otherwise.
fn special(fields: &Fields<'_>) -> Result<SpecialText, ApiError> {
    Ok(if fields.boolean("parse_special")? == Some(false) { SpecialText::Literal } else { SpecialText::Parse })
}

/// A token with its text, or with its bytes if they are only a part of a sign.
fn piece(side: &TextSide, id: u32) -> Result<Value, ApiError> {
    let piece = match String::from_utf8(side.piece(id)?) {
        Ok(text) => json!(text),
        Err(error) => json!(error.as_bytes()),
    };
    Ok(json!({ "id": id, "piece": piece }))
}

/// `POST /detokenize`: the text has both servers' names.
pub(crate) fn detokenize(side: &TextSide, body: &Value) -> Result<Value, ApiError> {
    let expected = || ApiError::invalid("tokens", format!("expected an array of at most {MAX_TOKENS} token ids"));
    let tokens = Fields::of(body)?.get("tokens").and_then(Value::as_array).ok_or_else(expected)?;
    if tokens.len() > MAX_TOKENS {
        return Err(expected());
    }
    let id = |token: &Value| token.as_u64().and_then(|id| u32::try_from(id).ok());
    let tokens = tokens.iter().map(id).collect::<Option<Vec<u32>>>().ok_or_else(expected)?;
    let text = side.text(&tokens)?;
    Ok(json!({ "content": text, "prompt": text }))
}

/// `POST /apply-template`: the prompt as the model would get it.
pub(crate) fn apply_template(side: &TextSide, body: &Value) -> Result<Value, ApiError> {
    let prompt = side.text(&side.rendered(&conversation(body)?)?)?;
    Ok(json!({ "prompt": prompt }))
}

fn conversation(body: &Value) -> Result<PromptRequest, ApiError> {
    Ok(chat::question(body)?.into_prompt())
}
