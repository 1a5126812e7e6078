//! A template is a stranger's program: whatever it does, it ends with a text or an error, on a small stack.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_model::{ChatTemplate, RenderOptions, TemplateError};
use potluck_plan::ReasoningEffort;

/// As small as the stack of a worker in a page.
const STACK: usize = 1 << 20;

fn run(source: &str) -> Result<String, TemplateError> {
    ChatTemplate::new(source, String::new(), String::new())?.render(&[], &RenderOptions::default())
}

/// The templates, each of one kind of attack.
fn hostile() -> Vec<String> {
    const LEAST: &str = "(-170141183460469231731687303715884105727 - 1)";
    let mut templates: Vec<String> = [
        // Panics.
        "{{ [1, 2].index(1, 9) }}",
        "{{ '%.65536f' % 1.5 }}",
        "{{ '%.65535g' % 0.00015 }}",
        "{{ '%.*g' % (65535, 0.00015) }}",
        "{{ '{:.65536f}'.format(1.5) }}",
        "{{ '{:.32768}'.format(0.00015) | length }}",
        "{% set nan = 'nan' | float %}{{ ([3, nan, 1, nan, 2, 5, nan, 4] * 20) | sort | length }}",
        "{% set nan = 'nan' | float %}{{ ([3, nan, 1, nan, 2] * 20) | map('string') | list | length }}",
        "{{ ([9007199254740993, 9007199254740992.0, 9007199254740994, 1, 3.5] * 20) | sort | length }}",
        "{{ ([1, 'a', none, [], {}] * 20) | sort }}",
        "{{ dict.fromkeys(range(40), 'nan' | float) | dictsort(by='value') | length }}",
        "{% set nan = 'nan' | float %}{{ ([[nan], [1.5], [nan], [0]] * 20) | groupby(0) | length }}",
        "{{ dict((range(30) | list + ['a']) | batch(1) | map('first') | map('list')) | tojson(sort_keys=true) }}",
        "{{ 0 in range(0, 8, 4)[::4611686018427387904] }}",
        "{{ 0 in range(0, 8, 4)[::170141183460469231731687303715884105727] }}",
        // Numbers without end.
        "{{ 'abc'[::170141183460469231731687303715884105727] }}",
        "{{ 'abc'[::-170141183460469231731687303715884105727] }}",
        "{{ 170141183460469231731687303715884105727 | round(-38) }}",
        "{{ 'abc' | truncate(170141183460469231731687303715884105727) }}",
        "{{ [1] | truncate(170141183460469231731687303715884105727) }}",
        "{{ [] * 1000000000000000000 }}{{ '' * 1000000000000000000 }}",
        // Stacks.
        "{{ 'a' | map(*(['map'] * 1500)) | list }}",
        "{{ ['a'] | map(*(['map'] * 200)) | list }}",
        "{% for i in [1] %}{{ loop.changed(loop) }}{% for j in range(300) %}{{ loop.changed(loop) }}{% endfor %}{% endfor %}",
        "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}",
        "{% macro m(n) %}{% if n %}{% call m(n - 1) %}{{ caller() if caller }}{% endcall %}{% else %}{{ caller() }}{% endif %}{% endmacro %}{% call m(60) %}x{% endcall %}",
        "{% set ns = namespace(m=none) %}{% macro first() %}{% macro f() %}{% endmacro %}{% set ns.m = f %}{% endmacro %}{% for i in range(50000) %}{{ first() }}{% endfor %}",
    ]
    .map(str::to_owned)
    .into();
    for expression in [
        "LEAST // -1",
        "LEAST % -1",
        "LEAST is divisibleby(-1)",
        "LEAST in range(5, 0, -1)",
        "-LEAST",
        "LEAST | abs",
        "5 | round(LEAST)",
        "5.5 | round(LEAST)",
        "LEAST | round(-38)",
        "[1, 2] | batch(LEAST, 0) | list",
        "'abc'[::LEAST]",
        "'abc'[LEAST:LEAST:LEAST]",
        "[1][LEAST]",
        "range(9)[::LEAST]",
        "'abc'.find('a', LEAST, LEAST)",
        "'%d %x' % (LEAST, LEAST)",
        "'{:,} {:x}'.format(LEAST, LEAST)",
    ] {
        templates.push(format!("{{{{ {} }}}}", expression.replace("LEAST", LEAST)));
    }
    // A step a tag, as often as a template has room for.
    for (start, step) in [
        ("{% set v = 1 %}", "{% set v = cycler(v) %}"),
        ("{% set v = 1 %}", "{% set v = cycler(v, v, v).next %}"),
        ("{% set v = 1 %}", "{% set v = 'a' | map(attribute='q', default=v) %}"),
        ("{% set v = '' %}", "{% set v = joiner(v ~ joiner(v)) %}"),
        ("{% set v = namespace() %}", "{% set n = namespace() %}{% set v.n = n %}{% set v = n %}"),
        ("{% set v = namespace() %}{% set first = v %}", "{% set n = namespace() %}{% set v.n = n %}{% set v = n %}"),
        ("{% set v = namespace(l=1) %}", "{% for i in [v.l] %}{% set v.l = loop %}{% endfor %}"),
        ("{% set v = namespace(l=1) %}", "{% for i in [1] %}{{ loop.changed(v.l) }}{% set v.l = loop %}{% endfor %}"),
        (
            "{% set v = namespace(m=1) %}",
            "{% with old = v.m %}{% macro f() %}{% endmacro %}{% set v.m = f %}{% endwith %}",
        ),
    ] {
        templates.push(format!("{start}{}", step.repeat((1_000_000 - start.len()) / step.len())));
    }
    let linked = "{% set ns = namespace(first=namespace()) %}{% set ns.last = ns.first %}{% for i in range(90000) %}{% set n = namespace() %}\
        {% set last = ns.last %}{% set last.next = n %}{% set ns.last = n %}{% endfor %}";
    templates.push(linked.to_owned());
    // Filled from the first to the last, so that none knows how much it holds. Comparing long texts spends most of the steps at
    // once, which printing would spend one by one.
    let doubled = "{% set s = 'x' * 25000000 %}{% set equal = [s == s, s == s, s == s] %}\
        {% set n = namespace() %}{% set ns = namespace(n=n, last=n) %}{% for i in range(90) %}{% set a = ns.last %}\
        {% set n = namespace() %}{% set a.p = n %}{% set a.q = n %}{% set ns.last = n %}{% endfor %}";
    assert_eq!(run(doubled).as_deref(), Ok(""), "it is printing that reaches the limit");
    for end in [
        "{{ ns.n }}",
        "{{ ns }}",
        "{{ '%r' % ns.n }}",
        "{{ ns.n | string | length }}",
        "{{ {}[ns.n] }}",
        "{{ [1].index(ns.n) }}",
    ] {
        templates.push(format!("{doubled}{end}"));
    }
    // Texts, long enough to reach a limit, or to take forever where time grows with the square of their length.
    for expression in [
        "([1, 1, 1, 1] * 1000) | tojson(separators=('x' * 1000000, 'y'))",
        "([1, 1, 1, 1] * 1000) | tojson(indent='x' * 1000000)",
        "dict.fromkeys(range(9000), 1) | tojson(separators=(',', 'y' * 1000000))",
        "([{'k' * 1000000: 1}] * 100000) | tojson",
        "('a ' * 100000) | wordwrap(1, wrapstring='x' * 1000000)",
        "('a' * 1000000) | wordwrap(1)",
        "('é' * 70000000) | urlencode",
        "('\\n' * 30000000).splitlines()",
        "('a ' * 30000000).split()",
        "('a,' * 30000000).rsplit(',')",
        "('<' * 100000000) | escape",
        "('x' * 10000000) % ()",
        "(('x' * 10000000) ~ '%s') % 1",
        "strftime_now('%1024Y' * 1000000)",
        "('a' * 3000000).center(30000) | upper | title",
        "'x' | default([1]) | reverse | list | reverse | join('y' * 1000000000)",
        "range(100000) | map('center', 32000) | list",
        "range(100000) | map('indent', 32000) | list",
    ] {
        templates.push(format!("{{{{ {expression} | length }}}}"));
    }
    for (open, chain, close) in [
        ("(", " + 1", ")"),
        ("[", " | e", "]"),
        ("(", ".a", ")"),
        ("(", " or 1", ")"),
        ("(", " is none", ")"),
        ("[", " if 1", "]"),
        ("1 == (", " ~ 1", ")"),
        ("f(", "[0]", ")"),
        ("not (", " < 1", ")"),
    ] {
        for (nested, chained) in [(78, 149), (30, 60), (70, 2), (1, 10000)] {
            let close = format!("{}{close}", chain.repeat(chained));
            templates.push(format!("{{{{ {}1{} }}}}", open.repeat(nested), close.repeat(nested)));
        }
    }
    templates
}

#[test]
fn hostile_templates_end() {
    let all = || {
        for source in hostile() {
            let shown: String = source.chars().take(120).collect();
            // The last line that is printed names the template that does not come back.
            println!("{} bytes: {shown}", source.len());
            if let Ok(text) = run(&source) {
                println!("  {} bytes", text.len());
            }
        }
    };
    std::thread::Builder::new().stack_size(STACK).spawn(all).unwrap().join().unwrap();
}

#[test]
fn hostile_templates_are_refused_or_stopped() {
    let loops = "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}";
    assert_eq!(run(loops), Err(TemplateError::Runaway));
    let writes = "{% set s = 'x' * 100000 %}{% for i in range(1000) %}{{ s }}{% endfor %}";
    assert_eq!(run(writes), Err(TemplateError::Runaway));
    let calls_itself = "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}";
    assert!(matches!(run(calls_itself), Err(TemplateError::Invalid(_))));
    assert!(matches!(run("{% if %}"), Err(TemplateError::Invalid(_))));
    assert!(matches!(run("{% include 'secrets' %}"), Err(TemplateError::Invalid(_))));
    assert!(matches!(run(&"x".repeat(2 << 20)), Err(TemplateError::Invalid(_))));
}

/// Each of these looks at a megabyte, or a hundred thousand items, in a few steps. A thousand of them, or more, are too many.
#[test]
fn what_is_looked_at_at_once_is_counted() {
    for expression in [
        "'y' in s",
        "s in 'y'",
        "s in {}",
        "{}[s]",
        "{s: 1}",
        "{}.get(s)",
        "'a'.find(s)",
        "'a'.count(s)",
        "'a'.strip(s)",
        "'a' | trim(s)",
        "s is lower",
        "s is sameas(t)",
        "s | int",
        "s | float",
        "s == t",
        "loop.changed(s)",
        "'a' in range(100000)",
        "range(100000)[::2]",
        "[s] | min",
        "[s, t] | max(true)",
        "[s] | sort",
        "[{}] | map(attribute='k' ~ '.k' * 100000, default={}) | list",
    ] {
        let source = format!(
            "{{% set s = '1' * 1000000 %}}{{% set t = s ~ '' %}}{{% for i in range(1000) %}}{{% set a = {expression} %}}{{% endfor %}}"
        );
        assert_eq!(run(&source), Err(TemplateError::Runaway), "a thousand times {expression}");
    }
}

/// What a template refuses is tried in other words, and without its system message, in one budget.
#[test]
fn tries_share_their_steps() {
    let loops = "{% for i in range(100) %}{% for j in range(15000) %}{% endfor %}{% endfor %}";
    let source = format!("{loops}{{% if reasoning_effort is defined %}}{{{{ raise_exception('no') }}}}{{% endif %}}");
    let template = ChatTemplate::new(&source, String::new(), String::new()).unwrap();
    let options = RenderOptions::default();
    assert_eq!(template.render(&[], &options).as_deref(), Ok(""), "one try has steps enough");
    let options = options.with_effort(Some(ReasoningEffort::High));
    assert_eq!(template.render(&[], &options), Err(TemplateError::Runaway), "a second one has not");
}

/// Without a bound each of these would take all memory, or the stack.
#[test]
fn a_variable_does_not_grow_without_bound() {
    let grow = |start: &str, next: &str| {
        run(&format!(
            "{{% set ns = namespace(v={start}) %}}{{% for i in range(100000) %}}{{% set ns.v = {next} %}}{{% endfor %}}{{{{ ns.v }}}}"
        ))
    };
    for (start, next) in [
        ("'x'", "ns.v + ns.v"),
        ("'x'", "ns.v ~ ns.v"),
        // In few steps: each found one takes time.
        ("'x' * 1000", "ns.v.replace('x' * 1000, 'x' * 2000)"),
        ("'x'", "'%s%s' % (ns.v, ns.v)"),
        ("'x'", "[ns.v, ns.v] | join"),
        ("[1]", "ns.v + ns.v"),
        ("[1]", "[ns.v, ns.v]"),
        ("{}", "{'a': ns.v}"),
        ("none", "namespace(v=ns.v)"),
        ("none", "[ns]"),
        ("none", "ns.v is none and 'y' * 10**12"),
    ] {
        assert_eq!(grow(start, next), Err(TemplateError::Runaway), "{start}, {next}");
    }
    for source in ["'%999999999d' % 1", "'x'.center(10**9)", "'{:>999999999}'.format(1)", "10**99", "range(10**9)|list"]
    {
        let found = run(&format!("{{{{ {source} }}}}"));
        assert!(matches!(found, Err(TemplateError::Invalid(_))), "{source}: {found:?}");
    }
    for (open, close) in
        [("(", ")"), ("[", "]"), ("not ", ""), ("-", ""), ("1+", ""), ("1 or ", ""), ("", ".a"), ("", "|e")]
    {
        let source = format!("{{{{ {}1{} }}}}", open.repeat(50_000), close.repeat(50_000));
        assert!(matches!(run(&source), Err(TemplateError::Invalid(_))), "{open}{close}");
    }
    let nested = format!("{}{}", "{% if 1 %}".repeat(20_000), "{% endif %}".repeat(20_000));
    assert!(matches!(run(&nested), Err(TemplateError::Invalid(_))));
}

#[test]
fn what_is_odd_but_right_still_renders() {
    for (source, text) in [
        ("{{ [3, 1, 2] | sort }}{{ range(50) | sort(reverse=true) | first }}", "[1, 2, 3]49"),
        ("{{ range(60) | map('string') | sort | join(' ') | truncate(20) }}", "0 1 10 11 12 13..."),
        ("{{ [1, 2, 1].index(1, 1) }}{{ -7 // 2 }}{{ -7 % 2 }}{{ 25 | round(-1) }}{{ 35 | round(-1) }}", "2-412040"),
        ("{{ range(0, 9)[::2] | list }}{{ range(9)[::-3] | list }}", "[0, 2, 4, 6, 8][8, 5, 2]"),
    ] {
        assert_eq!(run(source).as_deref(), Ok(text), "{source}");
    }
}
