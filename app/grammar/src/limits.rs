//! What a form may cost. A guest may send any, and the host has one thread for everything: what takes longer is refused.

use llguidance::api::ParserLimits;

/// Limits of the parser. The comments say what they allow natively; in a browser it takes about twice as long.
pub(crate) fn of_parser() -> ParserLimits {
    ParserLimits {
        max_items_in_row: 2_000,
        // 10 ms.
        initial_lexer_fuel: 500_000,
        // 5 ms a token.
        step_lexer_fuel: 70_000,
        // 1 ms a token.
        step_max_items: 20_000,
        // 40 MB.
        max_lexer_states: 20_000,
        max_grammar_size: 100_000,
        // It would try large expressions on all tokens at the beginning.
        precompute_large_lexemes: false,
        verbose_errors: false,
    }
}
