//! What the lexer knows of each language.

/// A kind of string.
#[derive(Debug, PartialEq, Eq)]
pub struct Quotes {
    /// What it begins with.
    pub open: &'static str,
    /// What it ends with.
    pub close: &'static str,
    /// How far it may reach.
    pub reach: Reach,
    /// A backslash hides what follows it.
    pub escapes: bool,
}

/// How far a string may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// One letter: what is longer is no string, such as a lifetime in Rust.
    Letter,
    /// To the end of its line.
    Line,
    /// Over many lines.
    Lines,
}

/// How code is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Words and signs.
    Program,
    /// Keys with values: a key stands before one of these letters.
    Keys(&'static [u8]),
    /// Tags.
    Markup,
    /// The first letter of a line says what it is.
    Diff,
}

/// What the lexer knows of a language.
#[derive(Debug, PartialEq, Eq)]
pub struct Grammar {
    names: &'static [&'static str],
    /// How it is laid out.
    pub form: Form,
    /// What comments to the end of the line begin with.
    pub line_comments: &'static [&'static str],
    /// What other comments are between.
    pub block_comment: Option<(&'static str, &'static str)>,
    /// Strings; the longest beginning first.
    pub quotes: &'static [Quotes],
    /// A line that begins with this letter begins with a keyword.
    pub directive: Option<u8>,
    /// Capitals do not matter.
    pub any_case: bool,
    keywords: &'static str,
}

impl Grammar {
    /// The grammar for the name that a model gives a language.
    pub fn of(language: &str) -> Option<&'static Self> {
        let name = language.trim().to_ascii_lowercase();
        GRAMMARS.iter().find(|grammar| grammar.names.contains(&name.as_str()))
    }

    /// True for a word of the language.
    pub fn is_keyword(&self, word: &str) -> bool {
        self.keywords
            .split_ascii_whitespace()
            .any(|known| if self.any_case { known.eq_ignore_ascii_case(word) } else { known == word })
    }
}

const fn quotes(open: &'static str, close: &'static str, reach: Reach, escapes: bool) -> Quotes {
    Quotes { open, close, reach, escapes }
}

const DOUBLE: Quotes = quotes("\"", "\"", Reach::Line, true);
const SINGLE: Quotes = quotes("'", "'", Reach::Line, true);
const LETTER: Quotes = quotes("'", "'", Reach::Letter, true);
const BACKTICK: Quotes = quotes("`", "`", Reach::Lines, true);
const TRIPLE_DOUBLE: Quotes = quotes("\"\"\"", "\"\"\"", Reach::Lines, true);
const TRIPLE_SINGLE: Quotes = quotes("'''", "'''", Reach::Lines, true);

const NOTHING: Grammar = Grammar {
    names: &[],
    form: Form::Program,
    line_comments: &[],
    block_comment: None,
    quotes: &[DOUBLE, SINGLE],
    directive: None,
    any_case: false,
    keywords: "",
};
const BRACES: Grammar = Grammar { line_comments: &["//"], block_comment: Some(("/*", "*/")), ..NOTHING };
const HASHES: Grammar = Grammar { line_comments: &["#"], ..NOTHING };

static GRAMMARS: [Grammar; 22] = [
    Grammar {
        names: &["python", "py", "python3"],
        quotes: &[TRIPLE_DOUBLE, TRIPLE_SINGLE, DOUBLE, SINGLE],
        directive: Some(b'@'),
        keywords: "and as assert async await break case class continue def del elif else except False finally for from global if \
                   import in is lambda match None nonlocal not or pass raise return self True try while with yield",
        ..HASHES
    },
    Grammar {
        names: &["javascript", "js", "jsx", "typescript", "ts", "tsx", "mjs"],
        quotes: &[DOUBLE, SINGLE, BACKTICK],
        keywords: "abstract as async await break case catch class const continue debugger declare default delete do else enum \
                   export extends false finally for from function get if implements import in instanceof interface keyof let \
                   namespace new null of private protected public readonly return satisfies set static super switch this throw \
                   true try type typeof undefined var void while with yield",
        ..BRACES
    },
    Grammar {
        names: &["rust", "rs"],
        quotes: &[quotes("r#\"", "\"#", Reach::Lines, false), quotes("\"", "\"", Reach::Lines, true), LETTER],
        keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move \
                   mut pub ref return self Self static struct super trait true type union unsafe use where while",
        ..BRACES
    },
    Grammar {
        names: &["c", "cpp", "c++", "h", "hpp", "arduino", "cuda", "glsl"],
        quotes: &[DOUBLE, LETTER],
        directive: Some(b'#'),
        keywords: "alignas alignof auto bool break case catch char class const constexpr continue default delete do double else \
                   enum explicit extern false final float for friend goto if inline int long mutable namespace new noexcept \
                   nullptr NULL operator override private protected public register return short signed sizeof static \
                   static_cast struct switch template this throw true try typedef typename union unsigned using virtual void \
                   volatile while",
        ..BRACES
    },
    Grammar {
        names: &["csharp", "cs", "c#"],
        quotes: &[quotes("@\"", "\"", Reach::Lines, false), DOUBLE, LETTER],
        directive: Some(b'#'),
        keywords: "abstract as async await base bool break byte case catch char class const continue decimal default do double \
                   else enum event explicit false finally float for foreach get if implicit in init int interface internal is \
                   lock long namespace new null object out override params private protected public readonly record ref return \
                   sealed set short static string struct switch this throw true try typeof uint ulong using var virtual void \
                   when where while yield",
        ..BRACES
    },
    Grammar {
        names: &["java", "kotlin", "kt", "scala", "groovy", "gradle"],
        quotes: &[TRIPLE_DOUBLE, DOUBLE, LETTER],
        directive: Some(b'@'),
        keywords: "abstract assert boolean break byte case catch char class companion const continue data def default do double \
                   else enum extends false final finally float for fun given if implements implicit import in init instanceof int \
                   interface internal is lateinit lazy long match native new null object open override package private protected \
                   public record return sealed short static super suspend switch synchronized this throw throws trait true try \
                   type typealias val var void volatile when while with yield",
        ..BRACES
    },
    Grammar {
        names: &["go", "golang"],
        quotes: &[DOUBLE, quotes("`", "`", Reach::Lines, false), LETTER],
        keywords: "any bool break byte case chan const continue default defer else error fallthrough false float64 for func go \
                   goto if import int int64 interface iota make map new nil package range return rune select string struct switch \
                   true type uint var",
        ..BRACES
    },
    Grammar {
        names: &["swift", "dart", "zig"],
        quotes: &[TRIPLE_DOUBLE, TRIPLE_SINGLE, DOUBLE, SINGLE],
        directive: Some(b'@'),
        keywords: "actor any as async await break case catch class comptime const continue default defer deinit do dynamic else \
                   enum export extension extends factory false final fn for func guard if implements import in init inout is late \
                   let mixin mutating nil null operator override private protocol pub public required return self static struct \
                   super switch test this throw throws true try typealias undefined var void where while with yield",
        ..BRACES
    },
    Grammar {
        names: &["php"],
        line_comments: &["//", "#"],
        keywords: "abstract and array as break case catch class const continue declare default do echo else elseif empty enum \
                   extends false final finally fn for foreach function global if implements include instanceof interface isset \
                   list match namespace new null or print private protected public readonly require require_once return static \
                   switch this throw trait true try unset use var while yield",
        ..BRACES
    },
    Grammar {
        names: &["ruby", "rb", "elixir", "ex"],
        keywords: "alias and begin break case class cond def defmodule defp do else elsif end ensure false fn for if in module \
                   next nil not or private raise redo require rescue retry return self super then true unless until use when \
                   while with yield",
        ..HASHES
    },
    Grammar {
        names: &["bash", "sh", "shell", "zsh", "console", "fish"],
        quotes: &[quotes("\"", "\"", Reach::Lines, true), quotes("'", "'", Reach::Lines, false)],
        keywords: "alias break case cd continue do done echo elif else esac eval exec exit export fi for function if in local \
                   printf read return select set shift source sudo then trap unset until while",
        ..HASHES
    },
    Grammar {
        names: &["powershell", "ps1"],
        block_comment: Some(("<#", "#>")),
        any_case: true,
        keywords: "begin break catch class continue do else elseif end exit false filter finally foreach for function if in null \
                   param process return switch throw trap true try until using while",
        ..HASHES
    },
    Grammar {
        names: &["sql", "mysql", "postgresql", "sqlite", "plsql"],
        line_comments: &["--"],
        quotes: &[quotes("'", "'", Reach::Lines, false), quotes("\"", "\"", Reach::Line, false)],
        any_case: true,
        keywords: "add all alter and any as asc begin between bigint boolean by cascade case cast check column commit constraint \
                   count create cross date decimal default delete desc distinct drop else end exists false foreign from full \
                   function group having if in index inner insert int integer interval into is join key left like limit not null \
                   numeric offset on or order outer over partition primary references replace returning right rollback row select \
                   serial set sum table text then timestamp transaction trigger true union unique update using values varchar view \
                   when where with",
        ..BRACES
    },
    Grammar {
        names: &["r", "julia", "jl", "perl", "pl", "makefile", "make", "cmake", "dockerfile", "docker", "nix"],
        keywords: "ADD ARG begin break CMD COPY do else elseif else if end endif ENTRYPOINT ENV EXPOSE export FALSE false FROM for \
                   foreach function global if import in include inherit let library local macro module my mutable next NULL our \
                   package quote repeat return RUN set struct sub then TRUE true unless use USER using VOLUME while with WORKDIR",
        ..HASHES
    },
    Grammar {
        names: &["lua", "haskell", "hs", "elm", "ada"],
        line_comments: &["--"],
        keywords: "and as begin break case class data deriving do else elseif end false for forall function goto if import in infix \
                   instance is let local loop module newtype nil not of or package procedure qualified repeat return then true \
                   type until where while",
        ..NOTHING
    },
    Grammar {
        names: &["lisp", "clojure", "clj", "scheme", "racket", "elisp", "asm", "assembly", "ini"],
        line_comments: &[";"],
        quotes: &[quotes("\"", "\"", Reach::Lines, true)],
        keywords: "call cond def defmacro defn defun fn if jmp lambda let loop mov ns pop push recur ret",
        ..NOTHING
    },
    Grammar {
        names: &["wgsl", "hlsl", "proto", "protobuf", "solidity", "sol", "graphql", "verilog"],
        directive: Some(b'@'),
        keywords: "address alias array bool break case const contract default do else enum event f16 f32 false fn for function if \
                   import int32 int64 interface let loop mapping message module override package payable pragma public query \
                   repeated return returns rpc service storage string struct switch syntax true type u32 uint256 uniform var vec2 \
                   vec3 vec4 view while",
        ..BRACES
    },
    Grammar {
        names: &["json", "jsonc", "json5", "jsonl"],
        form: Form::Keys(b":"),
        keywords: "true false null",
        ..BRACES
    },
    Grammar {
        names: &["yaml", "yml", "toml", "properties", "env", "dotenv", "conf"],
        form: Form::Keys(b":="),
        quotes: &[TRIPLE_DOUBLE, TRIPLE_SINGLE, DOUBLE, SINGLE],
        keywords: "true false null yes no on off",
        ..HASHES
    },
    Grammar {
        names: &["css", "scss", "less", "sass"],
        form: Form::Keys(b":"),
        directive: Some(b'@'),
        keywords: "important from to",
        ..BRACES
    },
    Grammar {
        names: &["html", "xml", "svg", "vue", "svelte", "xhtml", "mathml"],
        form: Form::Markup,
        block_comment: Some(("<!--", "-->")),
        ..NOTHING
    },
    Grammar { names: &["diff", "patch"], form: Form::Diff, quotes: &[], ..NOTHING },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_name_belongs_to_one_language() {
        let mut seen = BTreeSet::new();
        for name in GRAMMARS.iter().flat_map(|grammar| grammar.names) {
            assert!(seen.insert(name), "{name} is there twice");
        }
        assert!(Grammar::of("Python").is_some_and(|grammar| grammar.is_keyword("def")));
        assert_eq!(Grammar::of("klingon"), None);
    }

    #[test]
    fn capitals_matter_where_they_do() {
        let known = |language, word| Grammar::of(language).is_some_and(|grammar| grammar.is_keyword(word));
        assert!(known("sql", "SELECT") && known("sql", "select"));
        assert!(known("rust", "Self") && !known("rust", "FN"));
    }

    #[test]
    fn the_longest_beginning_of_a_string_stands_first() {
        for quotes in GRAMMARS.iter().map(|grammar| grammar.quotes) {
            for (at, one) in quotes.iter().enumerate() {
                let hidden = quotes[at + 1..].iter().find(|later| later.open.starts_with(one.open));
                assert_eq!(hidden, None, "{} comes too soon", one.open);
            }
        }
    }
}
