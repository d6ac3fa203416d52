/** The one form of an email address. Source: the URL standard's IDNA, which browsers use. */
// cspell:ignore ｅxample βόλος ΒΌΛΟΣ نامه nxasmm mgba fass brien
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { canonicalEmail, findEmailProblem, isMailable, readableEmail } from '#domain/contract/email.ts';
import { isPassword } from '#domain/identity/password.ts';
import { measureProcessorMs } from '#test/processor-ms.ts';
import { setupDatabase } from '#test/setup.ts';

it.each([
  ['info.a@bücher.example.org', 'info.a@xn--bcher-kva.example.org'],
  ['INFO.A@BU\u0308CHER.example.org', 'info.a@xn--bcher-kva.example.org'],
  [' info.a@xn--bcher-kva.example.org ', 'info.a@xn--bcher-kva.example.org'],
  ['ada@ｅxample。org', 'ada@example.org'],
  ['Ada+x@Example.ORG', 'ada+x@example.org'],
  ['no address', 'no address'],
  ['ada@my example.org', 'ada@my example.org'],
  ['@', '@'],
])('%j is %j', (typed, canonical) => {
  expect(canonicalEmail(typed)).toBe(canonical);
});

it('the canonical form of an address is its own canonical form', () => {
  const address = fc.tuple(fc.string({ unit: 'grapheme' }), fc.emailAddress(), fc.domain());
  fc.assert(
    fc.property(address, ([text, email, domain]) => {
      for (const each of [email, `${text}@${domain}`].map(canonicalEmail)) expect(canonicalEmail(each)).toBe(each);
    }),
  );
});

it.each([
  ['info.a@xn--bcher-kva.example.org', 'info.a@bücher.example.org'],
  ['ada@example.org', 'ada@example.org'],
  ['ada@xn--a', 'ada@xn--a'],
  ['ada@xn--fa-hia.example.org', 'ada@xn--fa-hia.example.org'],
  ['no address', 'no address'],
  ['', ''],
])('people read %j as %j, which is the same address', (stored, shown) => {
  expect([readableEmail(stored), canonicalEmail(shown)]).toEqual([shown, stored]);
});

it('an address has a whole domain, and ASCII only before the @', () => {
  for (const email of ['ada@bücher.example.org', "o'neil+x@example.co", 'o"brien@example.org', 'a..b.@example.org'])
    expect([email, findEmailProblem(email)]).toEqual([email, null]);
  for (const text of ['ada', 'ada@', '@example.org', 'ada@example', 'a b@example.org', 'ada@192.0.2.1', 'ada@x_y.org'])
    expect([text, findEmailProblem(text)]).toEqual([text, expect.stringMatching(/^a complete email address/)]);
  expect(findEmailProblem('bö@example.org')).toMatch(/before the @$/);
});

it('the database mails exactly the addresses that are called mailable', async () => {
  const { owner } = await setupDatabase();
  const local = fc.string({
    unit: fc.constantFrom(..."abc0.+-_'!#$%&*/=?^`{|}~,;:<>()[]\\"),
    minLength: 1,
    maxLength: 64,
  });
  const domain = fc.oneof(fc.domain(), fc.constant(`${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(60)}.org`));
  const typed = fc.sample(fc.tuple(local, domain), 5_000).map((parts) => parts.join('@'));
  const emails = ['o,neil@x.org', '"o.neil"@x.org', `a@${'d.'.repeat(120)}example.org`, ...typed]
    .filter((email) => findEmailProblem(email) === null)
    .map(canonicalEmail);
  const { rows } = await owner.pool.query(
    'select g.email, is_mail_address(g.email) as "isMailable" from unnest($1::text[]) g (email)',
    [emails],
  );
  expect(rows).toEqual(emails.map((email) => ({ email, isMailable: isMailable(email) })));
  expect(new Set(rows.map((row) => row.isMailable)).size).toBe(2);
});

it('a domain that programs map differently is rejected, and accepted in ASCII', () => {
  const labels = ['faß', 'FAß', 'FAẞ', 'βόλος', 'نامه\u200cای', 'ශ්\u200dරී', 'fa\u200dss', 'xß.bücher'];
  // By the version of Unicode: fillers that are left out, letters with a case since, corrected ideographs.
  labels.push('a\u115fb', 'a\u1160b', 'a\u3164b', 'a\uffa0b', 'a\u17b4b', '\u13a0', '\uab70', '\u{2f868}', '\ufa2e');
  labels.push('ｅxample', 'ﬁrm');
  for (const label of labels)
    expect([label, findEmailProblem(`ada@${label}.example.org`)]).toEqual([label, expect.stringMatching(/ASCII form/)]);
  const accepted = 'xn--fa-hia xn--nxasmm1c xn--mgba3gch31f060k xn--58d fass ΒΌΛΟΣ.x Σ İ ΐ 例え'.split(' ');
  accepted.push('BU\u0308CHER', 'vi\u00ea\u0323t', '\u0958');
  for (const label of accepted) expect([label, findEmailProblem(`ada@${label}.example.org`)]).toEqual([label, null]);
});

it('an address that is accepted has a domain in ASCII, whose labels have 63 letters at most', () => {
  const domains = Array.from({ length: 0x10000 }, (_, code) => `a${String.fromCharCode(code)}b.example.org`);
  for (const length of [63, 64]) domains.push(`${'a'.repeat(length)}.org`, `example.${'a'.repeat(length)}`);
  const accepted = domains.filter((domain) => findEmailProblem(`ada@${domain}`) === null);
  const canonical = accepted.map((domain) => canonicalEmail(`ada@${domain}`));
  expect(canonical.filter((email) => !/^ada@([a-z\d-]{1,63}\.)+[a-z\d-]{1,63}$/.test(email))).toEqual([]);
  expect(accepted.length).toBeGreaterThan(40_000);
});

it('a form full of text costs no more than a hash, whatever its characters are', async () => {
  const hashMs = await measureProcessorMs(() => isPassword('wrong wrong wrong', null));
  // 64 KiB in UTF-8. Each took seconds, in which the process did nothing else.
  for (const text of [`@${'ß'.repeat(32_000)}@`, `a@a${'\u0301\u0316'.repeat(15_900)}.org`])
    for (const read of [canonicalEmail, findEmailProblem, readableEmail])
      expect((await measureProcessorMs(() => read(text))) / hashMs, `${read.name} ${text.slice(0, 4)}`).toBeLessThan(2);
});
