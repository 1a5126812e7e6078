// Answers read as models write them: lines, maths, addresses, tasks, and languages from right to left.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { WIDTHS, anew, drawn, kitchen, wide } from '../harness/hands.mjs';
import { conversation, openChat } from '../harness/stored.mjs';
import { eventually } from '../harness/table.mjs';

const here = kitchen({ soup: { text: 'Soup is hot.' } });

const POEM = ['Roses are red', 'Violets are blue', 'Soup is hot', 'And so are you'];
const FORMULAS = ['\\(a_1 * b_2\\)', '\\[ E = m_0 * c_2 * d_3 \\]', '$x_1$', '$y_1 * z_2 * w_3$', '\\(\\mathbf{v}_i \\cdot \\mathbf{w}_j\\)'];
/** As large as a formula may be that is drawn, and wider than a screen. */
const NESTED = `\\(${'\\sqrt'.repeat(99)}{x}\\)`;
const WIDE = [`$${'x_1 + '.repeat(60)}y$`, `\\[ \\boxed{${'abc '.repeat(80)}} \\]`];
/** Formulas that stay as they were written: they cannot be read, nest too deeply, or are too long. */
const STRANGE = ['$\\nonsense{x}$', `\\(${'{'.repeat(30)}${'}'.repeat(30)}\\)`, `\\(${'\\sqrt'.repeat(400)}x\\)`, `\\[${'a+'.repeat(1_500)}a\\]`];
const DIRECTIONS = {
  'Soup is served at the long table.': 'ltr',
  'מרק חם מוגש על השולחן הארוך.': 'rtl',
  'الحساء ساخن جدا': 'rtl',
  'الخبز طازج': 'rtl',
  'فصل عن الحساء': 'rtl',
  'Bread is fresh.': 'ltr',
};
const [ENGLISH, HEBREW, SOUP, BREAD, HEADING, ITEM] = Object.keys(DIRECTIONS);

/** What is asked, and how it is answered. */
const TURNS = {
  'A poem?': `${POEM.join('\n')}\n\nA line<br>after a line<br/>and a third one<br />and a fourth.`,
  'Maths?': `In ${FORMULAS[0]} and ${FORMULAS[4]} there is ${FORMULAS[2]}, *much* like ${FORMULAS[3]}:\n\n${FORMULAS[1]}\n\nSoup for $5 or $6, *fresh*.`,
  'Strange maths?': [NESTED, ...WIDE, ...STRANGE, '$\\text{<b onclick="alert(1)">}$'].join('\n\n'),
  'Addresses?': [
    'Read https://example.org/a_b(c). Or http://example.org/?q=1&r=2!',
    '(See https://example.org/in_brackets) and **https://example.org/bold_one**.',
    'It is no link: javascript:alert(1), [press me](javascript:alert(2)), [or me](JaVaScRiPt:alert(3)), [data](data:text/html,x).',
    '`https://example.org/code`',
  ].join('\n\n'),
  'Tasks?': 'To do:\n\n- [ ] buy bread\n- [x] make soup\n- [X] set the table\n- no task',
  'Code?': '```python\n# Ladle\ndef serve(pots=2):\n    return "soup"\n```\n\n- ```json\n  {"pots": 2}\n  ```\n\n```klingon\nreturn 2\n```',
  'Languages?': `${ENGLISH}\n\n${HEBREW}\n\n- ${SOUP}\n- ${BREAD}\n\n## ${HEADING}\n\n- ${ITEM}`,
};

const inRoom = here.browser({ conversations: [conversation('Written', Object.entries(TURNS))] })('soup');

/** The answer to this question, in a window of this size. */
async function answer({ page }, asked, viewport = WIDTHS[0]) {
  await anew(page, viewport);
  await openChat(page, 'Written');
  const turn = page.locator('.turn', { has: page.getByText(asked, { exact: true }) });
  const prose = turn.locator('.answer .prose');
  await prose.getByText(/\S/).first().waitFor();
  await prose.scrollIntoViewIfNeeded();
  return { prose, question: turn.locator('.question') };
}

/** How far down each of these texts begins. */
const tops = (prose, texts) =>
  prose.evaluate((prose, texts) => {
    const top = (text) => {
      const nodes = document.createTreeWalker(prose, NodeFilter.SHOW_TEXT);
      const range = document.createRange();
      while (nodes.nextNode()) {
        const at = nodes.currentNode.data.indexOf(text);
        if (at < 0) continue;
        range.setStart(nodes.currentNode, at);
        range.setEnd(nodes.currentNode, at + text.length);
        return range.getBoundingClientRect().top;
      }
      throw new Error(`${text} is not shown`);
    };
    return texts.map(top);
  }, texts);

const assertFallingLines = (tops, why) =>
  tops.slice(1).forEach((top, at) => assert.ok(top > tops[at] + 5, `${why}: ${tops.map(Math.round)}`));

for (const viewport of WIDTHS) {
  test(`each line of a poem is a line, ${viewport.width} pixels wide`, inRoom(async (device) => {
    const { prose } = await answer(device, 'A poem?', viewport);
    assertFallingLines(await tops(prose, POEM), 'a line break is seen');
    assertFallingLines(await tops(prose, ['A line', 'after a line', 'and a third one', 'and a fourth']), '<br> breaks the line');
    assert.doesNotMatch(await prose.textContent(), /<br/);
  }));
}

for (const viewport of WIDTHS) {
  test(`maths is drawn, and prices are none, ${viewport.width} pixels wide`, inRoom(async (device) => {
    const { prose } = await answer(device, 'Maths?', viewport);
    const formulas = await prose.locator('math').evaluateAll((all) => all.map((math) => {
      const { height, width } = math.getBoundingClientRect();
      return { namespace: math.namespaceURI, text: math.textContent, isSeen: height > 5 && width > 5, display: math.getAttribute('display') };
    }));
    assert.deepEqual(formulas.map(({ text }) => text), ['a1∗b2', '𝐯i⋅𝐰j', 'x1', 'y1∗z2∗w3', 'E=m0∗c2∗d3']);
    for (const { namespace, isSeen } of formulas) assert.deepEqual([namespace, isSeen], ['http://www.w3.org/1998/Math/MathML', true]);
    assert.deepEqual(formulas.map(({ display }) => display), [null, null, null, null, 'block']);
    assert.deepEqual(await prose.locator('em').allTextContents(), ['much', 'fresh'], 'only words are emphasized');
    assert.ok((await prose.textContent()).includes('Soup for $5 or $6, fresh.'));
  }));

  test(`strange maths breaks neither page nor column, ${viewport.width} pixels wide`, inRoom(async (device) => {
    const { prose } = await answer(device, 'Strange maths?', viewport);
    await drawn(device.page);
    assert.equal(await prose.locator('math').count(), 1 + WIDE.length + 1);
    // With a font for mathematics, roots are the browser's.
    const roots = await prose.locator('math').first().evaluate((math) => math.querySelectorAll('msqrt').length + math.textContent.split('√').length - 1);
    assert.equal(roots, 99);
    assert.deepEqual(await prose.locator('.as-written').allTextContents(), STRANGE, 'the rest stays as it was written');
    assert.equal(await prose.locator('math b').count(), 0, 'a text within a formula is no markup');
    assert.match(await prose.locator('math').last().textContent(), /onclick=.alert\(1\)/);
    assert.deepEqual(await wide(device.page), []);
    const scrolls = await prose.locator('.formula-long, .formula-block').evaluateAll((all) => all.map((element) => element.scrollWidth > element.clientWidth));
    if (viewport.width < 500) assert.ok(scrolls.includes(true), 'what is wide scrolls');
  }));
}

test('bare addresses are links, and what is no address is none', inRoom(async (device) => {
  const { prose } = await answer(device, 'Addresses?', WIDTHS[1]);
  const links = await prose.locator('a').evaluateAll((links) => links.map((link) => [link.textContent, link.href, link.rel, link.target]));
  const addresses = [
    'https://example.org/a_b(c)', 'http://example.org/?q=1&r=2',
    'https://example.org/in_brackets', 'https://example.org/bold_one',
  ];
  assert.deepEqual(links.map(([text]) => text), addresses, 'without the punctuation around them');
  assert.deepEqual(links.map(([, href]) => href), addresses);
  for (const [text, , rel, target] of links) {
    assert.match(rel, /\bnoopener\b/, text);
    assert.equal(target, '_blank', text);
  }
  const shown = await prose.textContent();
  for (const words of ['press me', 'or me', 'javascript:alert(1)']) assert.ok(shown.includes(words), `${words} is text: ${shown}`);
}));

test('comments, strings, numbers and keywords of code have colours, and its text stays one', inRoom(async (device) => {
  const { prose } = await answer(device, 'Code?');
  const coloured = await device.page.evaluate(() =>
    Object.fromEntries([...CSS.highlights].map(([name, ranges]) => [name, [...ranges].map(({ startContainer, startOffset, endOffset }) => startContainer.data.slice(startOffset, endOffset))])));
  assert.deepEqual(coloured['code-comment'], ['# Ladle']);
  assert.deepEqual(coloured['code-literal'], ['"soup"']);
  assert.deepEqual(coloured['code-number'], ['2', '2']);
  assert.deepEqual(coloured['code-keyword'], ['def', 'return', '"pots"']);
  assert.deepEqual(await prose.locator('pre code').evaluateAll((all) => all.map((code) => code.childNodes.length)), [1, 1, 1]);
  await openChat(device.page, 'Written');
  await device.page.getByRole('button', { name: 'New', exact: true }).click();
  const left = () => device.page.evaluate(() => [...CSS.highlights.values()].reduce((sum, { size }) => sum + size, 0));
  await eventually(async () => ({ left: await left() }), ({ left }) => left === 0, 'colours go with their answer');
}));

test('tasks have boxes that show what is done', inRoom(async (device) => {
  const { prose } = await answer(device, 'Tasks?');
  const boxes = prose.getByRole('checkbox');
  assert.equal(await boxes.count(), 3);
  for (const [box, done] of [false, true, true].entries()) {
    assert.equal(await boxes.nth(box).isChecked(), done);
    assert.ok(await boxes.nth(box).isDisabled(), 'nobody can change it');
  }
  assert.doesNotMatch(await prose.textContent(), /\[[ xX]\]/);
  const marks = await prose.locator('li').evaluateAll((items) => items.map((item) => item.innerText.trim()));
  assert.deepEqual(marks, ['buy bread', 'make soup', 'set the table', 'no task']);
}));

for (const viewport of WIDTHS) {
  test(`each paragraph is read in its own direction, ${viewport.width} pixels wide`, inRoom(async (device) => {
    const { prose, question } = await answer(device, 'Languages?', viewport);
    for (const [text, direction] of Object.entries(DIRECTIONS)) {
      const found = await prose.getByText(text).evaluate((element) => getComputedStyle(element).direction);
      assert.equal(found, direction, text);
    }
    const lists = await prose.locator('ul').evaluateAll((lists) => lists.map((list) => getComputedStyle(list).direction));
    assert.deepEqual(lists, ['rtl', 'ltr'], 'a list has its marks on the side where its items begin');
    const side = (text) => prose.getByText(text).evaluate((element) => {
      const range = document.createRange();
      range.selectNodeContents(element);
      const [inner, outer] = [range.getBoundingClientRect(), element.closest('.prose').getBoundingClientRect()];
      return inner.left - outer.left > outer.right - inner.right ? 'right' : 'left';
    });
    assert.deepEqual([await side(HEBREW), await side(ENGLISH)], ['right', 'left']);
    assert.equal(await question.evaluate((question) => getComputedStyle(question).direction), 'ltr');
  }));
}
