//! By which markers models separate reasoning, answer and tool calls. From the makers' chat templates; llama.cpp's
//! `common/chat.cpp` and vLLM's `reasoning` list most of them as well.

/// A pair of markers around a part of an answer.
pub(crate) struct Tags {
    /// Begins it.
    pub open: &'static str,
    /// Ends it; empty: it ends with the answer.
    pub close: &'static str,
}

pub(crate) const fn tags(open: &'static str, close: &'static str) -> Tags {
    Tags { open, close }
}

/// Around reasoning. The first is looked for at the start of every model's answer, the others where the vocabulary or the
/// template has them.
pub(super) const REASONING: [Tags; 16] = [
    // DeepSeek, Qwen, GLM, Granite 3.3, Kimi K2, MiniMax, Hunyuan, Ernie, Nemotron, SmolLM3 and many more.
    tags("<think>", "</think>"),
    tags("<thinking>", "</thinking>"),
    // EXAONE Deep.
    tags("<thought>", "</thought>"),
    tags("<reasoning>", "</reasoning>"),
    // Magistral, Ministral.
    tags("[THINK]", "[/THINK]"),
    // Seed-OSS.
    tags("<seed:think>", "</seed:think>"),
    // MiniMax M3.
    tags("<mm:think>", "</mm:think>"),
    // LongCat.
    tags("<longcat_think>", "</longcat_think>"),
    // Cohere's Command.
    tags("<|START_THINKING|>", "<|END_THINKING|>"),
    // Apertus.
    tags("<|inner_prefix|>", "<|inner_suffix|>"),
    // OpenThinker, Sky-T1.
    tags("<|begin_of_thought|>", "<|end_of_thought|>"),
    // Kimi-VL.
    tags("◁think▷", "◁/think▷"),
    // Pangu.
    tags("[unused16]", "[unused17]"),
    // Granite 3.2, also as it is often misquoted.
    tags("Here is my thought process:", "Here is my response:"),
    tags("Here's my thought process:", "Here's my response:"),
    // Apriel.
    tags("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"),
];

/// Around the answer itself, behind the reasoning.
pub(super) const ANSWER: [Tags; 6] = [
    // Hunyuan.
    tags("<answer>", "</answer>"),
    // Granite 3.3, Ernie.
    tags("<response>", "</response>"),
    tags("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    tags("<|START_TEXT|>", "<|END_TEXT|>"),
    tags("<|begin_of_solution|>", "<|end_of_solution|>"),
    tags("[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]"),
];

/// Around calls of functions.
pub(crate) const TOOL_CALLS: [Tags; 16] = [
    // Hermes, Qwen, GLM, Granite 4.
    tags("<tool_call>", "</tool_call>"),
    tags("<tool_calls>", "</tool_calls>"),
    tags("<function_call>", "</function_call>"),
    tags("<TOOLCALL>", "</TOOLCALL>"),
    // Gemma 4.
    tags("<|tool_call>", "<tool_call|>"),
    tags("[TOOL_CALLS]", ""),
    // Granite 3.
    tags("<|tool_call|>", ""),
    // Llama 3.
    tags("<|python_tag|>", ""),
    // Kimi K2.
    tags("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    tags("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
    tags("<minimax:tool_call>", "</minimax:tool_call>"),
    tags("<seed:tool_call>", "</seed:tool_call>"),
    // LFM2.
    tags("<|tool_call_start|>", "<|tool_call_end|>"),
    // Apertus.
    tags("<|tools_prefix|>", "<|tools_suffix|>"),
    tags("<|START_ACTION|>", "<|END_ACTION|>"),
    tags("<|tool_calls|>", ""),
];

/// What a control token does in a format with headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderMarker {
    /// The name of a channel follows.
    Header,
    /// The name of a channel that ends follows.
    Closing,
    /// The name ends, the channel's text begins.
    Body,
    /// The name of a channel follows, and ends with its line.
    Line,
    /// The channel's text ends.
    End,
    /// Reasoning begins.
    Reasoning,
    /// The answer begins.
    Answer,
    /// A call begins.
    ToolCall,
}

/// A format that names its channels.
#[derive(Debug)]
pub(super) struct Headers {
    /// Control tokens, all of which a vocabulary with this format has.
    pub markers: &'static [(&'static str, HeaderMarker)],
    /// Written in front of reasoning, where an answer is continued.
    pub reasoning: &'static str,
    /// Written between reasoning and answer.
    pub between: &'static str,
    /// Written in front of an answer without reasoning.
    pub answer: &'static str,
}

pub(super) const HEADERS: [Headers; 5] = [
    // gpt-oss (harmony).
    Headers {
        markers: &[
            ("<|start|>", HeaderMarker::Header),
            ("<|channel|>", HeaderMarker::Header),
            ("<|message|>", HeaderMarker::Body),
            ("<|end|>", HeaderMarker::End),
        ],
        reasoning: "<|channel|>analysis<|message|>",
        between: "<|end|><|start|>assistant<|channel|>final<|message|>",
        answer: "<|channel|>final<|message|>",
    },
    // Muse Glimmer.
    Headers {
        markers: &[
            ("<|start|>", HeaderMarker::Header),
            ("<|message|>", HeaderMarker::Body),
            ("<|eom|>", HeaderMarker::End),
        ],
        reasoning: " to=self<|message|>",
        between: "<|eom|><|start|>assistant to=user<|message|>",
        answer: " to=user<|message|>",
    },
    // Solar Open.
    Headers {
        markers: &[
            ("<|begin|>", HeaderMarker::Header),
            ("<|think|>", HeaderMarker::Reasoning),
            ("<|content|>", HeaderMarker::Answer),
            ("<|tool_calls|>", HeaderMarker::ToolCall),
            ("<|end|>", HeaderMarker::End),
        ],
        reasoning: "<|think|>",
        between: "<|end|><|begin|>assistant<|content|>",
        answer: "<|content|>",
    },
    // Kimi K3.
    Headers {
        markers: &[
            ("<|open|>", HeaderMarker::Header),
            ("<|close|>", HeaderMarker::Closing),
            ("<|sep|>", HeaderMarker::Body),
        ],
        reasoning: "<|open|>think<|sep|>",
        between: "<|close|>think<|sep|><|open|>response<|sep|>",
        answer: "<|open|>response<|sep|>",
    },
    // Gemma 4.
    Headers {
        markers: &[("<|channel>", HeaderMarker::Line), ("<channel|>", HeaderMarker::End)],
        reasoning: "<|channel>thought\n",
        between: "\n<channel|>",
        answer: "",
    },
];
