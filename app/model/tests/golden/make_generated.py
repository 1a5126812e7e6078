"""Generates templates by a grammar of everything that Jinja offers in Transformers, and renders them with it, into generated.json.gz.

    pip install transformers==5.23.0 jinja2 && python make_generated.py [HOW MANY, FILE TO WRITE]

The same number gives the same templates. What prints an address, which differs from run to run, is left out.
"""

import gzip
import json
import pathlib
import random
import re
import sys

import make_templates
from make_templates import CASES, as_text

HERE = pathlib.Path(__file__).parent
COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 500
TARGET = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else HERE / "generated.json.gz"
TITLES = ["several turns", "after a tool's answer", "with a system prompt", "reasoning"]

WORDS = ["", "a", "Hello, World", "  spaced  out ", "naïve café", "line one\nline two\n\n  three", "straße ŐÜ", "a,b,,c", "x=1;y=2",
         "UPPER lower Title", "it's", 'say "hi"', "tab\there", "12", "-3.5", "007", "<b>&amp;</b>", "日本語 テキスト", "🦙 llama", "ǆ ß İ ı ς",
         "snake_case-and kebab", "{curly} %s {0}", "50%", "½ ² ٣", "\u2028sep\x1cfs", "aXbXc", "the quick brown fox jumps over the lazy dog"]
KEYS = ["role", "content", "name", "missing", "a", "b", "type"]


class Generator:
    """One template. Methods are named by what an expression gives."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = {"s": ["bos_token", "eos_token"], "i": [], "l": ["messages"], "d": [], "b": ["add_generation_prompt"]}
        self.macros = []
        self.loops = 0
        self.fresh = 0

    def pick(self, *options):
        return self.random.choice(options)

    def chance(self, share):
        return self.random.random() < share

    def word(self):
        text = self.pick(*WORDS)
        quote = "'" if '"' in text or self.chance(0.5) and "'" not in text else '"'
        escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace(quote, "\\" + quote)
        return quote + escaped.replace("\x1c", "\\x1c").replace("\u2028", "\\u2028") + quote

    def number(self):
        return str(self.pick(0, 1, 2, 3, 5, 7, 10, 42, 100, 1000, 123456))

    def any(self, depth):
        # A few expressions have a kind that does not fit.
        return self.pick(self.s, self.i, self.f, self.l, self.d, self.b, self.other)(depth)

    def maybe(self, kind, depth):
        return self.any(depth) if self.chance(0.03) else getattr(self, kind)(depth)

    def other(self, depth):
        return self.pick("none", "undefined_name", "messages[0].missing", "(1, 2)", "('a',)", "()", "range(3)", "tools", "enable_thinking",
                         "messages[0].items()", "messages[-1].keys()", "messages[0]['items']")

    def s(self, depth):
        if depth <= 0 or self.chance(0.1):
            return self.pick(self.word, self.word, lambda: self.pick(*self.names["s"]),
                             lambda: f"messages[{self.pick(0, 1, -1)}].{self.pick('role', 'content')}")()
        n = depth - 1
        s, i, l, a = (lambda: self.maybe("s", n)), (lambda: self.maybe("i", n)), (lambda: self.maybe("l", n)), (lambda: self.any(n))
        base = lambda: f"({s()})"
        method = lambda: base() + self.pick(
            ".upper()", ".lower()", ".title()", ".capitalize()", ".swapcase()", ".casefold()", ".strip()", ".lstrip()", ".rstrip()",
            f".strip({s()})", f".replace({s()}, {s()})", f".replace({s()}, {s()}, {self.pick(0, 1, 2, -1)})", f".removeprefix({s()})",
            f".removesuffix({s()})", f".zfill({self.pick(0, 3, 12)})", f".ljust({self.pick(5, 20)}, '*')", f".rjust({self.pick(5, 20)})",
            f".center({self.pick(4, 9, 20)}, '-')", f".center({self.pick(5, 8, 21)})", f".join({self.strings(n)})", ".expandtabs(4)",
            ".translate({97: 'b', 98: none})", f".format({a()}, {a()})", f".split({self.word()})[0]", ".split()[-1]",
            f".partition({self.word()})[{self.pick(0, 1, 2)}]", f".rpartition({self.word()})[0]", f".rsplit({self.word()}, 1)[-1]")
        filtered = lambda: base() + "|" + self.pick(
            "upper", "lower", "title", "capitalize", "trim", "trim('xs ')", "string", "urlencode", "reverse", "indent",
            "indent(2, true)", "indent(width='> ', blank=true)", "indent(3, first=false)", f"truncate({self.pick(5, 9, 12, 30)})",
            f"truncate({self.pick(5, 8)}, true, '…')", f"truncate({self.pick(8, 12)}, false, '..', 0)", f"center({self.pick(6, 15, 80)})",
            f"replace({s()}, {s()})", "wordwrap(10)", "wordwrap(8, false)", "wordwrap(6, wrapstring='|')", f"default({s()})")
        formats = lambda: self.pick(
            f"'%s and %r' % ({a()}, {s()})", f"'%5d|%-5d|%05d|%+d' % ({i()}, {i()}, {i()}, {i()})", f"'%.2f|%e|%g|%8.3f' % ({i()}, {i()}, {self.f(n)}, {self.f(n)})",
            f"'%x %X %o %#x' % ({i()}, {i()}, {i()}, {i()})", f"'%(a)s-%(b)5s' % {{'a': {a()}, 'b': {s()}}}", f"'%s' % {s()}", f"'%5.2s|%-6s|' % ({s()}, {s()})",
            f"'%s: %s'|format({s()}, {a()})", f"'%c%%' % {self.pick(65, 960)}", f"'%*d' % ({self.pick(3, 6)}, {i()})", f"'%a' % ({s()},)",
            f"'{{}} {{}}'.format({a()}, {s()})", f"'{{0}}{{1}}{{0}}'.format({s()}, {i()})", f"'{{x!r:>12}}|{{y:^9}}'.format(x={s()}, y={s()})",
            f"'{{:>8}}|{{:<8}}|{{:^8}}|{{:*^9}}'.format({s()}, {i()}, {s()}, {i()})", f"'{{:05d}} {{:+}} {{:,}} {{:_}}'.format({i()}, {i()}, {i()}, {i()})",
            f"'{{:.3f}} {{:.2e}} {{:g}} {{:%}}'.format({self.f(n)}, {self.f(n)}, {self.f(n)}, {self.f(n)})", f"'{{:x}} {{:#b}} {{:o}} {{:#010x}}'.format({i()}, {i()}, {i()}, {i()})",
            f"'{{0[role]}} {{0.content}}'.format(messages[0])", f"'{{:{{}}}}'.format({s()}, {self.pick(3, 9)})", f"'{{:.{{p}}f}}'.format({self.f(n)}, p=1)",
            f"'{{:>{{w}}.3}}'.format({s()}, w=6)", f"'{{a[0]}}{{a[1]}}'.format(a={self.strings(n)})", f"'{{:{self.pick('10', '<10', '010', '.4', '+.3', ',.2f', 'n')}}}'.format({self.f(n)})")
        return self.pick(
            method, method, method, filtered, filtered, formats, formats,
            # What is escaped stays so only as a plain text: see decision 0049.
            lambda: f"({base()}|{self.pick('e', 'escape', 'forceescape', 'safe')} ~ '')", lambda: f"{base()} ~ {a()}", lambda: f"{base()} + {s()}", lambda: f"{base()} * {self.pick(0, 2, -1)}", lambda: f"{base()}{self.slice(n)}",
            lambda: f"{base()}[{self.pick(0, -1, 1, 99)}]", lambda: f"({l()})|join({self.word()})", lambda: f"({a()})|tojson", lambda: f"({a()})|string",
            lambda: f"({a()})|tojson({self.pick('indent=2', 'sort_keys=true', 'ensure_ascii=true', 'indent=1, sort_keys=true')})",
            lambda: f"({s()} if {self.b(n)} else {s()})", lambda: f"({self.d(n)})|urlencode", lambda: f"({self.d(n)})|xmlattr",
            lambda: f"({s()} or {s()})", lambda: f"({i()})|filesizeformat", lambda: f"strftime_now({self.word_of_time()})", lambda: f"({self.strings(n)})|{self.pick('first', 'last', 'min', 'max')}",
            lambda: f"({l()})|map('string')|join(',')", lambda: f"messages|map(attribute={self.pick(*map(repr, KEYS))})|join('/')",
            lambda: f"messages|map(attribute='missing', default={s()})|join", lambda: f"{self.pick(*self.macros)}" if self.macros else self.word())()

    def word_of_time(self):
        codes = ["%Y", "%m", "%d", "%H", "%M", "%S", "%B", "%b", "%A", "%a", "%p", "%I", "%j", "%U", "%W", "%V", "%G", "%u", "%w", "%y", "%C", "%e",
                 "%D", "%F", "%T", "%R", "%c", "%x", "%X", "%-d", "%-m", "%%", "%f", "%h", "%n", "%s"]
        return repr(self.pick(" ", "-", ", ").join(self.random.sample(codes, self.pick(1, 2, 3))))

    def i(self, depth):
        if depth <= 0 or self.chance(0.2):
            return self.pick(self.number(), self.number(), *self.names["i"])
        n = depth - 1
        s, i, l = (lambda: self.maybe("s", n)), (lambda: self.maybe("i", n)), (lambda: self.maybe("l", n))
        return self.pick(
            lambda: f"({i()} {self.pick('+', '-', '*')} {i()})", lambda: f"({i()} // {self.pick(2, 3, -4, 7)})", lambda: f"({i()} % {self.pick(2, 5, -3)})",
            lambda: f"-{i()}", lambda: f"({l()})|length", lambda: f"({s()})|length", lambda: f"({s()})|int", lambda: f"({s()})|int({i()})", lambda: f"({s()})|int(base=16)",
            lambda: f"({s()})|wordcount", lambda: f"({s()}).find({s()})", lambda: f"({s()}).rfind({s()}, {self.pick(0, 1, -3)})", lambda: f"({s()}).count({s()})",
            lambda: f"({self.numbers(n)})|{self.pick('sum', 'min', 'max', 'first', 'last')}", lambda: f"({i()})|abs", lambda: f"({self.pick(2, 3)} ** {self.pick(0, 1, 5)})",
            lambda: f"({self.f(n)})|int", lambda: f"({l()}).index({self.any(n)})", lambda: f"({l()}).count({self.any(n)})", lambda: f"messages|{self.pick('length', 'count')}",
            lambda: f"({i()})|round", lambda: f"({i()}).bit_length()", lambda: f"({s()}).index({s()})")()

    def f(self, depth):
        if depth <= 0 or self.chance(0.3):
            return self.pick("0.5", "1.0", "3.14159", "1e10", "2.5e-7", "100.0", "1e22", "0.1", "2.675", "123456.789")
        n = depth - 1
        return self.pick(
            lambda: f"({self.i(n)} / {self.pick(1, 2, 3, 7)})", lambda: f"({self.f(n)} {self.pick('+', '-', '*')} {self.i(n)})", lambda: f"({self.s(n)})|float",
            lambda: f"({self.f(n)})|round({self.pick(0, 1, 2, 3)})", lambda: f"({self.f(n)})|round({self.pick(0, 1)}, '{self.pick('ceil', 'floor', 'common')}')", lambda: f"-({self.f(n)})",
            lambda: f"({self.f(n)} // {self.pick(2, 3)})", lambda: f"({self.f(n)} % {self.pick(2, 3)})", lambda: f"({self.f(n)})|abs", lambda: f"({self.i(n)})|float",
            lambda: f"({self.numbers(n)})|sum(start=0.5)", lambda: f"({self.i(n)} ** -1)", lambda: f"({self.i(n)})|round(method='{self.pick('ceil', 'floor')}')")()

    def b(self, depth):
        if depth <= 0 or self.chance(0.1):
            return self.pick("true", "false", "True", "none", *self.names["b"])
        n = depth - 1
        s, i, l, a = (lambda: self.maybe("s", n)), (lambda: self.maybe("i", n)), (lambda: self.maybe("l", n)), (lambda: self.any(n))
        test = self.pick("defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence", "iterable",
                         "callable", "true", "false", "not none", "not defined", "sameas true", "sameas none", "not string")
        return self.pick(
            lambda: f"({a()} is {test})", lambda: f"({i()} {self.pick('<', '<=', '>', '>=', '==', '!=')} {i()})", lambda: f"({s()} {self.pick('<', '>=', '==', '!=')} {s()})",
            lambda: f"({s()} {self.pick('in', 'not in')} {s()})", lambda: f"({a()} {self.pick('in', 'not in')} {l()})", lambda: f"({a()} == {a()})", lambda: f"(not {a()})",
            lambda: f"({a()} and {a()})", lambda: f"({a()} or {a()})", lambda: f"({i()} is {self.pick('odd', 'even', 'divisibleby 3', 'divisibleby(2)', 'lt 5', 'ge(3)', 'eq 1', 'in [1, 2, 3]')})",
            lambda: f"({s()} is {self.pick('lower', 'upper', 'filter', 'test')})", lambda: f"({s()}).{self.pick('startswith', 'endswith')}({s()})",
            lambda: f"({s()}).startswith(({s()}, {s()}))", lambda: f"({s()}).is{self.pick('alpha', 'digit', 'alnum', 'space', 'upper', 'lower', 'title', 'numeric', 'decimal', 'identifier', 'ascii', 'printable')}()",
            lambda: f"({i()} < {i()} <= {i()})", lambda: f"({self.d(n)} == {self.d(n)})", lambda: f"({s()} in {self.d(n)})", lambda: f"({self.strings(n)} < {self.strings(n)})")()

    def slice(self, depth):
        part = lambda: self.pick("", "", "0", "1", "2", "-1", "-2", "5", "-9", "none")
        return self.pick(f"[{part()}:{part()}]", f"[{part()}:{part()}:{self.pick('2', '-1', '-2', '1', '')}]", "[::-1]", "[1:]", "[:-1]")

    def strings(self, depth):
        return self.pick(f"[{self.s(depth - 1)}, {self.s(depth - 1)}]", f"[{', '.join(self.word() for _ in range(self.pick(1, 3, 4)))}]", f"({self.s(depth - 1)}).split()",
                         f"({self.s(depth - 1)}).split({self.word()})", f"({self.s(depth - 1)}).splitlines()", f"({self.s(depth - 1)}).rsplit(none, 1)", f"({self.s(depth - 1)})|list",
                         f"({self.s(depth - 1)}).partition(' ')", f"({self.s(depth - 1)}).split(maxsplit=1)", f"({self.s(depth - 1)}).splitlines(true)")

    def numbers(self, depth):
        return self.pick(f"[{self.i(depth - 1)}, {self.i(depth - 1)}, {self.i(depth - 1)}]", f"range({self.pick(0, 3, 5)})|list", f"range({self.pick(1, 2)}, {self.pick(5, 9)}, {self.pick(2, 3)})|list",
                         "range(5, 0, -2)|list", f"[{self.i(depth - 1)}]")

    def l(self, depth):
        if depth <= 0 or self.chance(0.15):
            return self.pick("[]", "[1, 2, 3]", "['b', 'a', 'C']", "messages", "messages[1:]", *self.names["l"])
        n = depth - 1
        l, a = (lambda: self.maybe("l", n)), (lambda: self.any(n))
        return self.pick(
            lambda: self.strings(depth), lambda: self.numbers(depth), lambda: f"[{a()}, {a()}]", lambda: f"({l()}){self.slice(n)}", lambda: f"({l()} + {l()})", lambda: f"({l()}) * {self.pick(0, 2)}",
            lambda: f"({self.strings(n)})|{self.pick('sort', 'sort(reverse=true)', 'sort(case_sensitive=true)', 'unique|list', 'reverse|list', 'map(^upper^)|list'.replace('^', chr(39)))}",
            lambda: f"({self.numbers(n)})|{self.pick('sort', 'unique|list', 'reverse|list', 'select(^odd^)|list'.replace('^', chr(39)), 'reject(^gt^, 2)|list'.replace('^', chr(39)))}",
            lambda: f"({l()})|batch({self.pick(1, 2, 3)}{self.pick('', ', 0')})|list", lambda: f"({l()})|slice({self.pick(1, 2, 3)}{self.pick('', ', 9')})|list", lambda: f"({l()})|list",
            lambda: f"messages|selectattr('role', '{self.pick('equalto', '==', 'ne', 'in')}', {self.pick(chr(39) + 'user' + chr(39), self.s(0))})|list",
            lambda: f"messages|{self.pick('selectattr', 'rejectattr')}('{self.pick('tool_calls', 'content', 'missing.x')}'{self.pick('', ', ^defined^'.replace('^', chr(39)))})|list",
            lambda: f"messages|groupby('{self.pick('role', 'missing', 'content')}'{self.pick('', ', default=^x^'.replace('^', chr(39)))})", lambda: f"messages|map(attribute='role')|unique|list",
            lambda: f"({self.d(n)})|dictsort{self.pick('', '(by=^value^)', '(reverse=true)', '(true)').replace('^', chr(39))}", lambda: f"({self.d(n)}).{self.pick('items', 'keys', 'values')}()|list",
            lambda: f"({self.d(n)})|items|list", lambda: f"messages|sort(attribute='{self.pick('role', 'content', 'role,content')}')", lambda: f"({l()})|select|list", lambda: f"({l()})|map('tojson')|list")()

    def d(self, depth):
        if depth <= 0 or self.chance(0.2):
            return self.pick("{}", "{'a': 1, 'b': 'x'}", "messages[0]", "{'b': none, 'A': [1], 'items': 2}", "{1: 'one', true: 'yes', 2.0: 'two'}", *self.names["d"])
        n = depth - 1
        return self.pick(lambda: f"{{{self.s(n)}: {self.any(n)}, 'k': {self.any(n)}}}", lambda: f"dict({self.d(n)}, c={self.any(n)})", lambda: f"dict(a={self.any(n)}, b={self.i(n)})",
                         lambda: f"dict([('x', {self.any(n)}), ['y', 2]])", lambda: f"({self.d(n)} or {{}})", lambda: "messages[-1]", lambda: f"dict.fromkeys({self.strings(n)}, {self.i(n)})",
                         lambda: f"({self.d(n)}).copy()")()

    def name(self, kind):
        self.fresh += 1
        name = f"{kind}{self.fresh}"
        self.names[kind].append(name)
        return name

    def scoped(self, depth, size=2):
        """Statements in a scope of their own."""
        names = {kind: list(names) for kind, names in self.names.items()}
        body = self.body(depth, size)
        self.names = names
        return body

    def tag(self, inner):
        left, right = self.pick("", "", "-", "+"), self.pick("", "", "-", "+")
        return f"{{%{left} {inner} {right}%}}"

    def text(self):
        return self.pick("\n", " ", "text\n", "  indented\n", "\n\n", "line ", "", "{ not a tag }", "\t")

    def out(self, depth):
        left, right = self.pick("", "", "-"), self.pick("", "", "-")
        value = self.pick(self.s, self.any, self.any)(depth)
        return f"{{{{{left} {value} {right}}}}}"

    def statement(self, depth):
        n = depth - 1
        tag = self.tag
        if depth <= 0:
            return self.out(2)

        def loop():
            self.loops += 1
            target, items = self.pick(
                ("m", "messages"), ("m", f"messages{self.slice(n)}"), ("x", self.l(n)), ("c", self.s(n)), ("k, v", f"({self.d(n)}).items()"), ("k, v", f"({self.d(n)})|dictsort"), ("x", "range(4)"),
                ("k", self.d(n)), ("g, ms", "messages|groupby('role')"), ("(p, q)", "[[1, 2], (3, 4)]"), ("x", "messages|map(attribute='content')"))
            condition = self.pick("", "", "", f" if {self.b(1)}", " if loop is undefined or true")
            names = {kind: list(names) for kind, names in self.names.items()}
            inside = self.pick("{{ loop.index }}", "{{ loop.first }}{{ loop.last }}", "{{ loop.revindex0 }}/{{ loop.length }}", "{{ loop.cycle('odd', 'even', 3) }}", "{{ loop.previtem }}|{{ loop.nextitem }}",
                               "{{ loop.changed(loop.index // 2) }}", "{{ loop.depth }}{{ loop.index0 }}", "")
            inside += f"{{{{ {target.split(',')[0].strip('( ')} }}}}"
            if self.chance(0.25):
                inside += tag(f"if {self.b(1)}") + tag(self.pick("break", "continue")) + tag("endif")
            body = inside + self.body(n, 1)
            self.names = names
            otherwise = tag("else") + self.scoped(n, 1) if self.chance(0.2) else ""
            self.loops -= 1
            return tag(f"for {target} in {items}{condition}") + body + otherwise + tag("endfor")

        def setting():
            kind = self.pick("s", "i", "l", "d", "b")
            value = getattr(self, kind)(depth)
            return tag(f"set {self.name(kind)} = {value}")

        def block_set():
            body = self.scoped(n, 1)
            return tag(f"set {self.name('s')}{self.pick('', ' | upper', ' | trim | title', ' | replace(^a^, ^b^)').replace('^', chr(39))}") + body + tag("endset")

        def condition():
            rest = tag(f"elif {self.b(n)}") + self.body_kept(n) if self.chance(0.3) else ""
            rest += tag("else") + self.body_kept(n) if self.chance(0.5) else ""
            return tag(f"if {self.b(depth)}") + self.body_kept(n) + rest + tag("endif")

        def macro():
            self.fresh += 1
            name = f"macro{self.fresh}"
            kept, self.names = self.names, {kind: list(names) for kind, names in self.names.items()}
            self.names["s"].append("p")
            body = self.body(n, 1) + self.pick("", "{{ p }}", "{{ q }}", "{{ varargs }}", "{{ kwargs }}", "{{ varargs|length }}{{ kwargs|dictsort }}", "{{ caller is defined }}", "{{ p ~ q }}")
            self.names = kept
            self.macros += [f"{name}({self.word()})", f"{name}({self.word()}, q={self.number()})", f"{name}(p={self.word()})", f"{name}()", f"{name}(1, 2, 3, z=4)", f"{name}(*['x', 'y'], **{{'z': 1}})", f"{name}.name", f"{name}.arguments|join"]
            return tag(f"macro {name}(p, q={self.s(1)})") + body + tag("endmacro")

        def call():
            self.fresh += 1
            name = f"called{self.fresh}"
            return (tag(f"macro {name}(x='d')") + "<{{ x }}{{ caller(1) if true }}{{ caller.arguments|length }}>" + tag("endmacro")
                    + tag(f"call(y) {name}({self.word()})") + "{{ y }}" + self.scoped(n, 1) + tag("endcall"))

        def namespace():
            self.fresh += 1
            name = f"ns{self.fresh}"
            return (tag(f"set {name} = namespace(a={self.i(1)}, b=[])") + tag("for m in messages") + tag(f"set {name}.a = {name}.a + loop.index") + tag(f"set {name}.b = {name}.b + [m.role]") + tag("endfor")
                    + f"{{{{ {name}.a }}}}{{{{ {name}.b }}}}{{{{ {name}.c is defined }}}}")

        return self.pick(
            loop, loop, loop, setting, setting, condition, condition, block_set, macro, call, namespace, lambda: self.out(depth), lambda: self.out(depth + 1),
            lambda: tag(f"with w = {self.any(n)}, z = {self.s(n)}") + "{{ w }}{{ z }}" + self.scoped(n, 1) + tag("endwith"), lambda: tag("filter upper") + self.scoped(n, 1) + tag("endfilter"),
            lambda: tag(self.pick("filter trim", "filter indent(2)", "filter replace('e', 'E')|title")) + self.scoped(n, 1) + tag("endfilter"),
            lambda: "{% generation %}" + self.scoped(n, 1) + "{%- endgeneration %}", lambda: self.pick("{# a comment #}", "{#- trimmed -#}\n", "  {# line #}\n"), lambda: "{% raw %}{{ raw }}{% x %}{% endraw %}",
            lambda: tag("set cy = cycler('a', 'b')") + "{{ cy.next() }}{{ cy.next() }}{{ cy.current }}" + tag("set jo = joiner('; ')") + "{{ jo() }}x{{ jo() }}y",
            lambda: tag("for x in [1, [2, [3]]] recursive") + "{{ loop.depth }}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}{% endif %}" + tag("endfor"),
            lambda: tag(f"set s0, i0 = {self.s(n)}, {self.i(n)}") + "{{ s0 }}{{ i0 }}", lambda: tag(f"if {self.b(1)}") + "{{ raise_exception('no ' ~ messages[0].role) }}" + tag("endif") if self.chance(0.2) else "",
            lambda: tag(f"block b{self.random.randrange(10**6)}") + self.out(2) + tag("endblock"))()

    def body_kept(self, depth):
        # What is set in a branch stays, so that undefined names occur.
        return self.body(depth, 1)

    def body(self, depth, size):
        return "".join(self.text() + self.statement(depth) for _ in range(self.random.randint(1, size))) + self.text()

    def template(self):
        return self.body(self.pick(2, 3, 3, 4), self.pick(1, 2, 4))


ADDRESS = re.compile(r"0x[0-9a-f]{6,}|<built-in|<generator| object at | object>", re.IGNORECASE)


def main():
    results = []
    seed = 0
    skipped = 0
    while len(results) < COUNT:
        seed += 1
        source = Generator(seed).template()
        title = TITLES[seed % len(TITLES)]
        result = {"seed": seed, "source": source, "title": title}
        if len(source) > (600 if COUNT < 2000 else 6000):
            skipped += 1
            continue
        try:
            result["text"] = make_templates.render(source, CASES[title], ("<s>", "</s>"))
        except Exception as error:  # Python's errors and Jinja2's
            result["error"] = f"{type(error).__name__}: {error}"[:100]
        written = result.get("text", "")
        # A text too long, or one of surrogates, is no use.
        if len(written) > (1500 if COUNT < 2000 else 200_000) or ADDRESS.search(written) or any("\ud800" <= c <= "\udfff" for c in written):
            skipped += 1
            continue
        results.append(result)
    cases = ",\n".join(f"  {json.dumps(title)}: {json.dumps(as_text(CASES[title]), ensure_ascii=False)}" for title in TITLES)
    rows = ",\n".join(json.dumps(result, ensure_ascii=False) for result in results)
    text = f'{{"cases": {{\n{cases}\n}},\n"results": [\n{rows}\n]}}\n'.encode()
    TARGET.write_bytes(gzip.compress(text, mtime=0) if TARGET.suffix == ".gz" else text)
    errors = sum("error" in result for result in results)
    print(f"{len(results)} templates, {errors} with an error, {skipped} left out")


if __name__ == "__main__":
    main()
