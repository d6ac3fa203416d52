/** Fields that a spreadsheet would interpret. Source: RFC 4180; OWASP, "CSV Injection". */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { measureProcessorMs } from '#test/processor-ms.ts';
import { csvField, csvLine } from '../../apps/console/web/csv.ts';

/** Parses one line as in RFC 4180, for this test only. */
function readLine(line: string, separator = ','): string[] {
  expect(line.endsWith('\r\n')).toBe(true);
  const fields: string[] = [];
  let rest = `${line.slice(0, -2)}${separator}`;
  while (rest !== '') {
    const match = rest.startsWith('"') ? /^"((?:[^"]|"")*)"(.)/su.exec(rest) : /^([^,]*)(,)/.exec(rest);
    if (match?.[2] !== separator) throw new Error(`not a line of CSV: ${line}`);
    fields.push((match[1] ?? '').replaceAll('""', '"'));
    rest = rest.slice(match[0].length);
  }
  return fields;
}

it.each([
  ['=HYPERLINK("http://evil")', `'=HYPERLINK("http://evil")`],
  ['+1', "'+1"],
  ['-1', "'-1"],
  ['@SUM(A1)', "'@SUM(A1)"],
  ['\t=1', "'\t'=1"],
  ['\r=1', "'\r'=1"],
  ['\n', "'\n"],
  ['＝1', "'＝1"],
  ['＋1', "'＋1"],
  ['－1', "'－1"],
  ['＠a', "'＠a"],
  ['  =1', "'  =1"],
  ['\u200b=1', "'\u200b=1"],
  ['\ufeff=1', "'\ufeff=1"],
])('%j would be a formula, and is written as text', (typed, written) => {
  expect(csvField(typed)).toBe(`"${written.replaceAll('"', '""')}"`);
});

it('text that begins a formula after a separator of another language is written as text too', () => {
  expect(csvField('a;=1+1')).toBe(`"a;'=1+1"`);
  expect(csvField('a\n@x')).toBe(`"a\n'@x"`);
  expect(csvField('a;"=1')).toBe(`"a;""'=1"`);
});

it('ordinary text is unchanged, also with quotes, commas, line breaks and other scripts', () => {
  for (const text of ['Rossi, Ada', 'say "hi"', 'two\nlines', 'تقرير', 'a-b=c', 'x@example.org', ''])
    expect(readLine(csvLine([text]))).toEqual([text]);
});

it('any content keeps the number of fields, and begins no formula', () => {
  const text = fc.string({ unit: fc.constantFrom(...'=+-@＝＋－＠;,"\'|\t\r\n a1é\u200b') });
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 6 }), (fields) => {
      const read = readLine(csvLine(fields));
      expect(read.length).toBe(fields.length);
      for (const [index, field] of read.entries()) {
        expect(field).not.toMatch(/^[\s\p{Cf}]*[=+\-@＝＋－＠]/u);
        // Only apostrophes were added.
        expect(field.replaceAll("'", '')).toBe((fields[index] ?? '').replaceAll("'", ''));
      }
    }),
  );
});

it('an apostrophe precedes a formula sign after a separator of any language, and nothing else changes', () => {
  const text = fc.string({ unit: fc.constantFrom(...'=+-@＝＋－＠;,"\'|\t\r\n a1é\u200b\u00a0'), maxLength: 60 });
  fc.assert(
    fc.property(text, (typed) => {
      const [written = ''] = readLine(csvLine([typed]));
      expect(written).not.toMatch(/[;|\t\r\n][\s\p{Cf}"]*[=+\-@＝＋－＠]/u);
      expect(written.replaceAll("'", '')).toBe(typed.replaceAll("'", ''));
      if (!/[=+\-@＝＋－＠\t\r\n]/u.test(typed)) expect(written).toBe(typed);
    }),
    { numRuns: 1_000 },
  );
});

it.each([
  ['tabs', '\t'],
  ['blanks after separators', ';   '],
  ['quotes after a separator', '"'],
  ['signs', '\t='],
  ['invisible characters', '\u200b'],
])('a field of thirty times as many %s is written in linear time', async (_, unit) => {
  const measure = (units: number) => {
    const field = `;${unit.repeat(units)}`;
    return measureProcessorMs(() => csvField(field), 10);
  };
  // Linear growth is 30, quadratic 900.
  expect((await measure(60_000)) / (await measure(2_000))).toBeLessThan(100);
});

it('a number stays a number, and null is an empty field', () => {
  expect(csvLine([200, null, 'x'])).toBe('200,,"x"\r\n');
});
