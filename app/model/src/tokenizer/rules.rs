//! How vocabularies split text into words: one table, by the names in `tokenizer.ggml.pre`.
//!
//! The patterns are those of the models' own `tokenizer.json`, of which llama.cpp's are adaptations; where only llama.cpp's is
//! known, it is that one. Each step splits every piece of the step before; matches and the text between them are pieces.

/// A way to split text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its names in files.
    pub names: &'static [&'static str],
    /// What is done in order.
    pub(super) steps: &'static [Step],
    /// Words that are tokens skip the merges (`ignore_merges`).
    pub whole_words: bool,
    /// The beginning-of-sequence token precedes a text unless the file says otherwise.
    pub add_bos: bool,
}

/// A step of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A pattern of [`super::pattern`].
    Pattern(&'static str),
    /// `\p{N}+`, cut into threes from its end.
    NumbersFromRight,
    /// `(?=(\d{3})+(?!\d))`: cuts decimal digits into threes from the right. By hand, like the next, because a pattern would
    /// look at all of a long number at each of its digits.
    DecimalsFromRight,
    /// `\d{1,3}(?=(?:\d{3})*\b)`: decimal digits in threes from the right, unless a letter or `_` follows them.
    WholeNumbersFromRight,
}

use Step::{DecimalsFromRight, NumbersFromRight, Pattern, WholeNumbersFromRight};

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// GPT-4o (o200k): cuts where lower case ends.
const O200K: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK3: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;
const BLOOM: &str = r" ?[^(\s|.,!?…。，、।۔،)]+";
const LINES: &str = r"[^\n]+|[\n]+";

/// Letters of alphabets with cases, as DeepSeek lists them.
const DEEPSEEK_LETTERS: &str = r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+";

/// All rules.
pub(super) const RULES: &[Rule] = &[
    Rule {
        names: &["default"],
        steps: &[Pattern(r"[\p{P}\$\+<=>\^~\|]+"), Pattern(GPT2), Pattern(r"\p{N}+"), Pattern("[0-9][0-9][0-9]")],
        whole_words: false,
        add_bos: false,
    },
    Rule {
        names: &[
            "gpt-2",
            "phi-2",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "granite-docling",
            "exaone4",
            "gigachat",
            "a.x-4.0",
            "mellum",
            "jina-es",
            "jina-de",
            "roberta-bpe",
        ],
        steps: &[Pattern(GPT2)],
        whole_words: false,
        add_bos: false,
    },
    Rule {
        names: &["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"],
        steps: &[Pattern(r"\p{N}"), Pattern(GPT2)],
        whole_words: false,
        add_bos: false,
    },
    Rule {
        names: &[
            "llama3",
            "llama-v3",
            "llama-bpe",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "midm-2.0",
            "lfm2",
            "jina-v5-nano",
        ],
        steps: &[Pattern(LLAMA3)],
        whole_words: true,
        add_bos: true,
    },
    Rule { names: &["glm4", "glm5"], steps: &[Pattern(LLAMA3)], whole_words: true, add_bos: false },
    Rule {
        names: &["dbrx", "smaug-bpe", "chatglm-bpe"],
        steps: &[Pattern(LLAMA3)],
        whole_words: false,
        add_bos: false,
    },
    Rule {
        names: &["minicpm5"],
        steps: &[
            Pattern(r"\p{N}{1,3}"),
            Pattern(
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            ),
        ],
        whole_words: true,
        add_bos: false,
    },
    Rule {
        names: &["jais-2"],
        steps: &[Pattern(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}",
        )],
        whole_words: false,
        add_bos: false,
    },
    Rule {
        names: &["qwen2", "deepseek-r1-qwen", "kormo", "stablelm2", "hunyuan", "megrez", "solar-open", "grok-2"],
        steps: &[Pattern(QWEN2)],
        whole_words: false,
        add_bos: false,
    },
    // Marks belong to words.
    Rule {
        names: &["qwen35"],
        steps: &[Pattern(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        )],
        whole_words: false,
        add_bos: false,
    },
    Rule { names: &["laguna"], steps: &[Pattern(LINES), Pattern(QWEN2)], whole_words: false, add_bos: false },
    Rule {
        names: &["ufakzeka"],
        steps: &[Pattern(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")],
        whole_words: false,
        add_bos: false,
    },
    Rule {
        names: &["seed-coder"],
        steps: &[Pattern(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+",
        )],
        whole_words: false,
        add_bos: false,
    },
    Rule {
        names: &["bailingmoe", "bailingmoe2", "llada-moe"],
        steps: &[Pattern(
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
        )],
        whole_words: false,
        add_bos: false,
    },
    // Words with the spaces between them are one piece.
    Rule {
        names: &["exaone-moe"],
        steps: &[Pattern(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
        )],
        whole_words: false,
        add_bos: false,
    },
    Rule {
        names: &["tekken"],
        steps: &[Pattern(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        )],
        whole_words: true,
        add_bos: true,
    },
    Rule {
        names: &["gpt-4o", "llama4", "minimax-m2", "kanana2", "talkie"],
        steps: &[Pattern(O200K)],
        whole_words: false,
        add_bos: false,
    },
    Rule {
        names: &["tiny_aya", "cohere2moe"],
        steps: &[WholeNumbersFromRight, Pattern(O200K)],
        whole_words: false,
        add_bos: false,
    },
    Rule {
        names: &["youtu"],
        steps: &[
            Pattern(r"[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+"),
            Pattern(
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            ),
        ],
        whole_words: true,
        add_bos: false,
    },
    // Chinese characters are words of their own.
    Rule {
        names: &["kimi-k2"],
        steps: &[Pattern(
            r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        )],
        whole_words: false,
        add_bos: false,
    },
    Rule {
        names: &["deepseek-llm"],
        steps: &[
            Pattern(r"[\r\n]"),
            Pattern(DEEPSEEK_LETTERS),
            Pattern(r"\s?[!-/:-~！-／：-～‘-‟　-。]+"),
            Pattern(r"\s+$"),
            Pattern(r"[一-龥ࠀ-一가-퟿]+"),
            Pattern(r"\p{N}+"),
        ],
        whole_words: false,
        add_bos: false,
    },
    Rule {
        names: &["deepseek-coder"],
        steps: &[
            Pattern(r"[\r\n]"),
            Pattern(r"\s?\p{L}+"),
            Pattern(r"\s?\p{P}+"),
            Pattern(r"[一-龥ࠀ-一가-퟿]+"),
            Pattern(r"\p{N}"),
        ],
        whole_words: false,
        add_bos: false,
    },
    Rule {
        names: &["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
        steps: &[Pattern(r"\p{N}{1,3}"), Pattern(r"[一-龥぀-ゟ゠-ヿ]+"), Pattern(DEEPSEEK3)],
        whole_words: false,
        add_bos: false,
    },
    Rule {
        names: &["spark2_5"],
        steps: &[
            Pattern(r"\p{N}{1,3}"),
            Pattern(r"[一-龥぀-ゟ゠-ヿ]+"),
            Pattern(
                r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+"##,
            ),
            Pattern(r"\p{N}"),
        ],
        whole_words: false,
        add_bos: false,
    },
    Rule {
        names: &["afmoe"],
        steps: &[
            NumbersFromRight,
            Pattern(r"[一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+"),
            Pattern(DEEPSEEK3),
        ],
        whole_words: false,
        add_bos: false,
    },
    Rule { names: &["superbpe"], steps: &[Pattern(r"\p{N}+"), DecimalsFromRight], whole_words: false, add_bos: false },
    Rule {
        names: &["falcon"],
        steps: &[Pattern(r"[\p{P}\$\+<=>\^~\|`]+"), Pattern(GPT2), Pattern("[0-9][0-9][0-9]")],
        whole_words: false,
        add_bos: false,
    },
    Rule {
        names: &["bloom", "poro-chat", "gpt3-finnish"],
        steps: &[Pattern(BLOOM)],
        whole_words: false,
        add_bos: false,
    },
    Rule { names: &["viking"], steps: &[Pattern(BLOOM), Pattern(r"\p{N}")], whole_words: false, add_bos: false },
];

/// Names of vocabularies whose merges run over whole lines of raw text, with `▁` for a space (`tokenizer.ggml.model` is
/// `gemma4`, or `gpt2` with one of these).
pub(super) const RAW_TEXT: &[&str] = &["gemma4", "sarvam-moe"];

/// The rule of a name.
pub(super) fn find(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.names.contains(&name))
}
