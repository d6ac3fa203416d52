import { expect, it } from 'vitest';
import { axisTicks } from '../../../apps/console/components/bar-chart.ts';
import { highlightJson } from '../../../apps/console/components/json.ts';

const plain = (markup: unknown) =>
  String(markup)
    .replace(/<[^>]*>/g, '')
    .replaceAll('&quot;', '"');

it('JSON is rendered in lines, and keeps numbers, escapes and repeated names as they were sent', () => {
  const sent = '{"n":1.0e400,"a":[],"n":12345678901234567890,"o":{"t":"a\\u00e9\\" {,:}","b":[true,null,{}]}}';
  const rendered = plain(highlightJson(sent));
  expect(rendered.replace(/\n */g, '').replaceAll('": ', '":')).toBe(sent);
  expect(rendered.split('\n').slice(0, 4)).toEqual([
    '{',
    '  "n": 1.0e400,',
    '  "a": [],',
    '  "n": 12345678901234567890,',
  ]);
  expect(String(highlightJson(sent))).toContain('<span class="name"><bdi>&quot;n&quot;</bdi></span>: ');
});

it('text that is not a JSON object or array is left to be rendered as it is', () => {
  for (const text of ['', 'ok', '"ok"', '12', '{"a":1', '<html>']) expect(highlightJson(text)).toBeNull();
});

it('markup and hidden characters in JSON are inert', () => {
  const rendered = String(highlightJson('{"<script>":"\u202Egnp.exe"}'));
  expect(rendered).toContain('&lt;script&gt;');
  expect(rendered).toContain('U+202E');
});

it('the axis of a chart has few whole numbers, one step apart, and reaches the highest bar', () => {
  for (let highest = 1; highest < 3_000; highest += 7) {
    const ticks = axisTicks(highest);
    const apart = ticks.map((tick, index) => tick - (ticks[index - 1] ?? 0)).slice(1);
    expect([highest, new Set(apart).size, ticks.every(Number.isInteger)]).toEqual([highest, 1, true]);
    expect([highest, (ticks.at(-1) ?? 0) >= highest, ticks.length <= 7]).toEqual([highest, true, true]);
  }
});
