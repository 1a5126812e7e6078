// Markdown as bad and as varied as it can be, from seeds: equal seeds give equal texts.

/** Numbers from 0 to 1 (mulberry32). */
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const WORDS = [
  'pot luck table soup bread share token device stage window memory garden weather evening silence thousand'.split(' '),
  'Ωμέγα σούπα τραπέζι ψωμί μνήμη'.split(' '),
  'щи стол хлеб память устройство'.split(' '),
  'حساء مائدة خبز ذاكرة جهاز مرحبا'.split(' '),
  'מרק שולחן לחם זיכרון מכשיר שלום'.split(' '),
  'सूप मेज़ रोटी स्मृति उपकरण क्षत्रिय'.split(' '),
  'ซุปร้อนบนโต๊ะอาหาร ขนมปังและความทรงจำ ที่นี่'.split(' '),
  '我们把汤放在桌子上 面包 记忆 设备'.split(' '),
  'テーブルの上のスープ パン メモリ 装置'.split(' '),
  '식탁 위의 수프 빵 기억 장치'.split(' '),
  ['👩‍👩‍👧‍👦', '🏳️‍🌈', '👍🏽', '🇩🇪🇫🇷', '😀', '✊🏿', '1️⃣'],
  ['é́́́', 'ñ̃', `Z${'͑ͫͣ̔'.repeat(6)}`, 'à̖̗̘', 'ﬁ', 'İi̇'],
  ['\u202eabc\u202c', '\u2067אבג\u2069', '\u200f!', '\u200b', '\ufeff', '\u2028', '\u00ad'],
  ['\u0000', '\u0001', '\u0007', '\u001b[31m', '\u007f', '\u0085', '\ufffd', '\ufffe', '\ufdd0'],
];

class Writer {
  constructor(seed) {
    this.random = random(seed);
  }

  below(end) {
    return Math.floor(this.random() * end);
  }

  /** Mostly small, sometimes up to `most`. */
  few(most) {
    return Math.floor(this.random() ** 4 * (most + 1));
  }

  of(list) {
    return list[this.below(list.length)];
  }

  many(count, make) {
    return Array.from({ length: count }, (_, index) => make.call(this, index));
  }

  word() {
    if (this.random() < 0.01) return this.of(['a', 'W', 'щ', '我', 'ซ', 'م', '_', '.', '😀', 'é']).repeat(1 + this.few(3000));
    // Most texts are of one language; all mix now and then.
    this.language = this.random() < 0.1 ? this.of(WORDS) : (this.language ?? this.of(WORDS));
    return this.of(this.language);
  }

  words(most = 12) {
    return this.many(1 + this.below(most), this.word).join(this.random() < 0.02 ? '' : ' ');
  }

  address() {
    const path = this.of(['', '/', '/a_b(c)', '/%E2%82%AC?q=*a*&b=[c]', '/long/'.repeat(1 + this.few(60)), '#_', '/a.']);
    return this.of(['https://example.org', 'http://localhost:1', 'mailto:a@example.org', 'javascript:alert(1)', 'data:text/html,x', 'file:///etc', '//example.org', ' ']) + path;
  }

  span(depth = 0) {
    const inner = () => (depth > 4 ? this.word() : this.span(depth + 1));
    const kinds = [
      () => this.words(),
      () => this.words(),
      () => `${this.words()} ${inner()}`,
      () => `**${inner()}**`,
      () => `*${inner()}*`,
      () => `_${inner()}_ __${inner()}__`,
      () => `***${inner()}*`,
      () => `~~${inner()}~~`,
      () => `\`${this.words()}\``,
      () => `\`\`${this.words()}\`${this.word()}`,
      () => `[${inner()}](${this.address()})`,
      () => `![${this.word()}](${this.address()} "${this.word()}")`,
      () => `[${inner()}][${this.word()}]`,
      () => `<${this.address()}> ${this.address()}`,
      () => this.address(),
      () => `${this.words()}  \n${inner()}`,
      () => `${this.words()}\n${inner()}`,
      () => `${this.words()}<br>${inner()}`,
      () => this.html(),
      () => this.maths(),
      () => this.many(1 + this.few(200), () => this.of(['*', '_', '~', '[', ']', '(', ')', '`', '!', '\\', '<', '>', '|', '&amp;', '&#x0;'])).join(''),
    ];
    return this.of(kinds)();
  }

  html() {
    return this.of(['<b>', '</div>', '<script>alert(1)</script>', '<img src=x onerror=alert(1)>', '<!-- ', '<style>*{display:none}</style>', '<details><summary>', '<a href="javascript:alert(1)">x</a>', '<table><tr><td>', '<input autofocus>', '<br/>']) + this.words(3);
  }

  maths() {
    return this.of(['$x_1$', '$$\n\\frac{a_1 * b_2}{c}\n$$', '\\(a_1 * b_2\\)', '\\[\n\\sum_{i=0}^{n} i^2\n\\]', '$ 5 and $ 6', `$${'x_{1}^{2}+'.repeat(1 + this.few(80))}$`]);
  }

  table() {
    const columns = 1 + this.few(39);
    const row = () => {
      const cells = this.many(this.random() < 0.8 ? columns : this.below(42), () => this.span(4).replaceAll('\n', ' '));
      return `| ${cells.join(' | ')}${this.random() < 0.8 ? ' |' : ''}`;
    };
    const rule = `|${this.many(columns, () => this.of(['---', ':--', '--:', ':-:', '-'])).join('|')}|`;
    return [row(), this.random() < 0.9 ? rule : '', ...this.many(this.few(30), row)].join('\n');
  }

  code() {
    const fence = this.of(['```', '~~~', '````']);
    const line = () => ' '.repeat(this.few(80)) + this.words(this.random() < 0.05 ? 200 : 8);
    const lines = this.many(this.few(60), line).join('\n');
    return `${fence}${this.of(['', 'rust', 'js', 'c++ {a=b}', this.word()])}\n${lines}\n${this.random() < 0.8 ? fence : ''}`;
  }

  list() {
    const item = () => {
      const mark = this.of(['- ', '* ', '+ ', `${this.below(1e10)}. `, '1) ', '- [ ] ', '- [x] ', '-']);
      return `${'  '.repeat(this.few(40))}${mark}${this.random() < 0.1 ? this.block(2) : this.span(2)}`;
    };
    return this.many(1 + this.few(40), item).join(this.random() < 0.8 ? '\n' : '\n\n');
  }

  nest() {
    const mark = this.of(['>', '> ', '- ', '* ', '1. ', '> - ', '**', '_', '[', '#', '`', '((', '~~', '|', '***', '<b>']);
    return mark.repeat(1 + this.few(this.random() < 0.05 ? 20_000 : 300)) + this.words();
  }

  quote() {
    return this.block(2).split('\n').map((line) => '> '.repeat(1 + this.few(20)) + line).join('\n');
  }

  block(depth = 0) {
    const kinds = [
      () => this.many(1 + this.below(4), () => this.span()).join(' '),
      () => this.many(1 + this.below(4), () => this.span()).join(' '),
      () => `${'#'.repeat(1 + this.below(8))} ${this.span()}`,
      () => `${this.span()}\n${this.of(['===', '---', '-'])}`,
      () => this.of(['---', '***', '_ _ _', '- - -']),
      () => this.code(),
      () => this.table(),
      () => this.maths(),
      () => this.html(),
      () => this.nest(),
      () => `[${this.word()}]: ${this.address()}`,
      () => `    ${this.words()}\n\t${this.words()}`,
      () => (depth > 1 ? this.span() : this.list()),
      () => (depth > 1 ? this.span() : this.quote()),
    ];
    return this.of(kinds)();
  }
}

/** The text of a seed: of 0 to 64 KB, mostly small, and cut off anywhere. */
export function markdown(seed) {
  const writer = new Writer(seed);
  const kind = writer.random();
  const size = kind < 0.02 ? 0 : kind > 0.99 ? 65_536 : Math.floor(writer.random() ** 5 * 16_000);
  let text = '';
  while (text.length < size) text += writer.block() + writer.of(['\n\n', '\n', '\r\n', ' ', '\n\n\n']);
  // Not in the middle of a character, which no model writes and JSON could not carry to the page.
  return text.slice(0, size).replace(/[\ud800-\udbff]$/, '');
}
