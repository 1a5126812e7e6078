//! Colours that stand on one another can be told apart, in both schemes: by the contrast of WCAG 2, level AA.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};

/// Text, and signs that carry a meaning.
const TEXT: f64 = 4.5;
const SIGN: f64 = 3.0;

/// Everything that text stands on without a colour of its own.
const GROUNDS: [&str; 4] = ["paper", "surface", "sunken", "raised"];
/// Text on any of them.
const INKS: [&str; 6] = ["ink", "ink-soft", "tomato-ink", "herb-ink", "amber-ink", "plum-ink"];
/// Other pairs of a text and what it stands on, across rules: a chip's colour and its ground, what is selected.
const PAIRS: [(&str, &str); 10] = [
    ("on-tomato", "tomato"),
    ("on-tomato", "tomato-hover"),
    ("tomato-ink", "tomato-soft"),
    ("herb-ink", "herb-soft"),
    ("amber-ink", "amber-soft"),
    ("ink", "tomato-soft"),
    ("ink", "herb-soft"),
    ("ink", "amber-soft"),
    ("paper", "ink"),
    ("ink", "wood"),
];
/// Edges of fields, rings of the focus, bars and marks.
const SIGNS: [&str; 3] = ["line-strong", "focus", "tomato"];

/// Red, green and blue, 0 to 1.
type Colour = [f64; 3];

/// The value of each custom property, light and dark.
fn tokens() -> BTreeMap<String, [Colour; 2]> {
    let text = include_str!("../styles/tokens.css");
    let declared = text.lines().filter_map(|line| line.trim().strip_prefix("--")?.split_once(':'));
    let declared: BTreeMap<&str, &str> =
        declared.map(|(name, value)| (name.trim(), value.trim().trim_end_matches(';'))).collect();
    let both = |value: &str| -> Option<[Colour; 2]> {
        let value =
            value.strip_prefix("var(--").and_then(|name| declared.get(name.trim_end_matches(')'))).unwrap_or(&value);
        match value.strip_prefix("light-dark(").and_then(|pair| pair.trim_end_matches(')').split_once(", ")) {
            Some((light, dark)) => Some([colour(light)?, colour(dark)?]),
            None => Some([colour(value)?; 2]),
        }
    };
    declared.iter().filter_map(|(name, value)| Some(((*name).to_owned(), both(value)?))).collect()
}

fn colour(hex: &str) -> Option<Colour> {
    let digits = hex.strip_prefix('#').filter(|digits| digits.len() == 6)?;
    let part = |at: usize| Some(f64::from(u8::from_str_radix(&digits[at..at + 2], 16).ok()?) / 255.0);
    Some([part(0)?, part(2)?, part(4)?])
}

/// Relative luminance, as WCAG defines it.
fn luminance(colour: Colour) -> f64 {
    let linear = |part: f64| if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) };
    0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) + 0.0722 * linear(colour[2])
}

fn contrast(a: Colour, b: Colour) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn too_close(pairs: &BTreeSet<(String, String)>, least: f64) -> Vec<String> {
    let tokens = tokens();
    let of = |name: &str| *tokens.get(name).unwrap_or_else(|| panic!("--{name} is a colour of tokens.css"));
    let mut found = Vec::new();
    for (front, ground) in pairs {
        for (scheme, index) in [("light", 0), ("dark", 1)] {
            let contrast = contrast(of(front)[index], of(ground)[index]);
            if contrast < least {
                found.push(format!("--{front} on --{ground}, {scheme}: {contrast:.2}, not {least}"));
            }
        }
    }
    found
}

fn crossed(fronts: &[&str]) -> BTreeSet<(String, String)> {
    let on = |front: &&str| GROUNDS.map(|ground| ((*front).to_owned(), ground.to_owned()));
    fronts.iter().flat_map(on).collect()
}

/// Pairs of a `color` and a `background` that stand in one rule of the style sheets.
fn of_rules() -> BTreeSet<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/styles");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut pairs = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        for rule in text.split('}').filter_map(|rule| Some(rule.rsplit_once('{')?.1)) {
            let value = |property: &str| {
                let mut declared = rule.split(';').filter_map(|line| line.trim().split_once(':'));
                let (_, value) = declared.find(|(name, _)| name.trim() == property)?;
                Some(value.trim().strip_prefix("var(--")?.strip_suffix(')')?.to_owned())
            };
            pairs.extend(value("color").zip(value("background")));
        }
    }
    pairs
}

#[test]
fn the_measure_is_that_of_wcag() {
    assert!((contrast([0.0; 3], [1.0; 3]) - 21.0).abs() < 1e-9);
    // #777777 on white is the well-known near miss.
    let grey = contrast(colour("#777777").unwrap(), [1.0; 3]);
    assert!((4.47..4.49).contains(&grey), "{grey}");
}

#[test]
fn text_can_be_read_in_both_schemes() {
    let mut pairs = crossed(&INKS);
    pairs.extend(PAIRS.map(|(front, ground)| (front.to_owned(), ground.to_owned())));
    let rules = of_rules();
    assert!(rules.len() >= 5, "the style sheets have rules with both: {rules:?}");
    pairs.extend(rules);
    let found = too_close(&pairs, TEXT);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn edges_rings_and_bars_can_be_seen_in_both_schemes() {
    let mut pairs = crossed(&SIGNS);
    pairs.extend(["herb", "amber"].map(|sign| (sign.to_owned(), "sunken".to_owned())));
    // The way of a token over the table.
    pairs.extend(["herb", "amber-ink"].map(|sign| (sign.to_owned(), "wood".to_owned())));
    let found = too_close(&pairs, SIGN);
    assert!(found.is_empty(), "{}", found.join("\n"));
}
