// Answers read as models write them: lines, maths, addresses, tasks, and languages from right to left.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { WIDTHS, kitchen } from '../harness/hands.mjs';
import { conversation, openChat, store } from '../harness/stored.mjs';
import { assertQuiet } from '../harness/table.mjs';

const here = kitchen({ soup: { text: 'Soup is hot.' } });

/** The element that shows this answer. */
async function written(viewport, text) {
  const device = await here.start('host', { viewport });
  const { page } = device;
  await store(page, here.relay, [conversation('Written', [['Well?', text]])]);
  await here.open(page, 'soup');
  await openChat(page, 'Written');
  const prose = page.locator('.answer .prose');
  await prose.getByText(/\S/).first().waitFor();
  return { device, page, prose };
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
  test(`each line of a poem is a line, ${viewport.width} pixels wide`, async () => {
    const poem = ['Roses are red', 'Violets are blue', 'Soup is hot', 'And so are you'];
    const { device, prose } = await written(viewport, `${poem.join('\n')}\n\nA line<br>after a line<br/>and a third one<br />and a fourth.`);
    assertFallingLines(await tops(prose, poem), 'a line break is seen');
    assertFallingLines(await tops(prose, ['A line', 'after a line', 'and a third one', 'and a fourth']), '<br> breaks the line');
    assert.doesNotMatch(await prose.textContent(), /<br/);
    assertQuiet(device);
  });
}

test('maths is left exactly as it was written', async () => {
  const formulas = ['\\(a_1 * b_2\\)', '\\[ E = m_0 * c_2 * d_3 \\]', '$x_1$', '$y_1 * z_2 * w_3$', '\\(\\mathbf{v}_i \\cdot \\mathbf{w}_j\\)'];
  const text = `In ${formulas[0]} and ${formulas[4]} there is ${formulas[2]}, *much* like ${formulas[3]}:\n\n${formulas[1]}\n\nSoup for $5 or $6, *fresh*.`;
  const { device, prose } = await written(WIDTHS[0], text);
  const shown = await prose.textContent();
  for (const formula of formulas) assert.ok(shown.includes(formula), `${formula} stays: ${shown}`);
  assert.deepEqual(await prose.locator('em').allTextContents(), ['much', 'fresh'], 'only words are emphasized');
  assertQuiet(device);
});

test('bare addresses are links, and what is no address is none', async () => {
  const text = [
    'Read https://example.org/a_b(c). Or http://example.org/?q=1&r=2!',
    '(See https://example.org/in_brackets) and **https://example.org/bold_one**.',
    'It is no link: javascript:alert(1), [press me](javascript:alert(2)), [or me](JaVaScRiPt:alert(3)), [data](data:text/html,x).',
    '`https://example.org/code`',
  ].join('\n\n');
  const { device, prose } = await written(WIDTHS[1], text);
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
  assertQuiet(device);
});

test('tasks have boxes that show what is done', async () => {
  const { device, prose } = await written(WIDTHS[0], 'To do:\n\n- [ ] buy bread\n- [x] make soup\n- [X] set the table\n- no task');
  const boxes = prose.getByRole('checkbox');
  assert.equal(await boxes.count(), 3);
  for (const [box, done] of [false, true, true].entries()) {
    assert.equal(await boxes.nth(box).isChecked(), done);
    assert.ok(await boxes.nth(box).isDisabled(), 'nobody can change it');
  }
  assert.doesNotMatch(await prose.textContent(), /\[[ xX]\]/);
  const marks = await prose.locator('li').evaluateAll((items) => items.map((item) => item.innerText.trim()));
  assert.deepEqual(marks, ['buy bread', 'make soup', 'set the table', 'no task']);
  assertQuiet(device);
});

for (const viewport of WIDTHS) {
  test(`each paragraph is read in its own direction, ${viewport.width} pixels wide`, async () => {
    const texts = {
      'Soup is served at the long table.': 'ltr',
      'מרק חם מוגש על השולחן הארוך.': 'rtl',
      'الحساء ساخن جدا': 'rtl',
      'الخبز طازج': 'rtl',
      'فصل عن الحساء': 'rtl',
      'Bread is fresh.': 'ltr',
    };
    const [english, hebrew, soup, bread, heading, item] = Object.keys(texts);
    const { device, prose, page } = await written(viewport, `${english}\n\n${hebrew}\n\n- ${soup}\n- ${bread}\n\n## ${heading}\n\n- ${item}`);
    for (const [text, direction] of Object.entries(texts)) {
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
    assert.deepEqual([await side(hebrew), await side(english)], ['right', 'left']);
    assert.equal(await page.locator('.question').evaluate((question) => getComputedStyle(question).direction), 'ltr');
    assertQuiet(device);
  });
}
