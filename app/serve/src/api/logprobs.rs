//! Log-probabilities of tokens as OpenAI's APIs have them.

use potluck_panel::{Logprob, TokenLogprobs};
use serde_json::{Value, json};

/// As in chats. A token that is no whole characters has its bytes for that.
pub(super) fn of_chat(logprobs: &[TokenLogprobs]) -> Value {
    let one = |of: &Logprob| json!({ "token": text(of), "logprob": of.logprob, "bytes": of.bytes });
    let content = logprobs.iter().map(|of| {
        let mut token = one(&of.chosen);
        token["top_logprobs"] = of.top.iter().map(one).collect();
        token
    });
    json!({ "content": content.collect::<Vec<_>>(), "refusal": null })
}

/// As in completions. `offset`: characters of the text before these tokens. Returns those after them, too.
pub(super) fn of_completion(logprobs: &[TokenLogprobs], mut offset: usize) -> (Value, usize) {
    let mut offsets = Vec::new();
    for of in logprobs {
        offsets.push(offset);
        // Each character counts with its first byte: a token may end in the middle of one.
        offset += of.chosen.bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
    }
    let top = logprobs.iter().map(|of| {
        // The chosen token is there, too, as in OpenAI's API.
        let all = of.top.iter().chain([&of.chosen]);
        Value::Object(all.map(|of| (text(of), json!(of.logprob))).collect())
    });
    let json = json!({
        "tokens": logprobs.iter().map(|of| text(&of.chosen)).collect::<Vec<_>>(),
        "token_logprobs": logprobs.iter().map(|of| of.chosen.logprob).collect::<Vec<_>>(),
        "top_logprobs": top.collect::<Vec<_>>(),
        "text_offset": offsets,
    });
    (json, offset)
}

fn text(of: &Logprob) -> String {
    match str::from_utf8(&of.bytes) {
        Ok(text) => text.to_owned(),
        // As OpenAI writes it.
        Err(_) => format!("bytes:{}", of.bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect::<String>()),
    }
}

#[cfg(test)]
pub(super) fn example(token: &[u8], logprob: f32, top: &[(&[u8], f32)]) -> TokenLogprobs {
    let of = |(bytes, logprob): (&[u8], f32)| Logprob { token: 7, bytes: bytes.to_vec(), logprob };
    TokenLogprobs { chosen: of((token, logprob)), top: top.iter().copied().map(of).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chats_have_bytes_and_the_likeliest_tokens() {
        let json = of_chat(&[example(b" a", -0.5, &[(b" a", -0.5), (&[0xc3], -1.5)])]);
        let expected = json!([{
            "token": " a", "logprob": -0.5, "bytes": [32, 97],
            "top_logprobs": [
                { "token": " a", "logprob": -0.5, "bytes": [32, 97] },
                { "token": "bytes:\\xc3", "logprob": -1.5, "bytes": [195] },
            ],
        }]);
        assert_eq!(json["content"], expected);
    }

    #[test]
    fn completions_have_lists_and_offsets() {
        let tokens = [example("ä".as_bytes(), -0.5, &[(b"b", -0.25)]), example(b"cd", -1.0, &[])];
        let (json, after) = of_completion(&tokens, 10);
        let expected = json!({
            "tokens": ["ä", "cd"], "token_logprobs": [-0.5, -1.0], "text_offset": [10, 11],
            "top_logprobs": [{ "b": -0.25, "ä": -0.5 }, { "cd": -1.0 }],
        });
        assert_eq!((json, after), (expected, 13));
    }
}
