/** Addresses and ranges: what is accepted as one is one for PostgreSQL, which stores and compares them. */
// cspell:ignore ffff
import type { IncomingMessage } from 'node:http';
import { BlockList } from 'node:net';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { isIpRange } from '#domain/contract/ip-range.ts';
import { clientAddress } from '#runtime/client.ts';
import { setupDatabase } from '#test/setup.ts';

const digits = fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 0, maxLength: 4 });
const prefix = fc.oneof(
  fc.integer({ min: 0, max: 140 }).map(String),
  digits,
  fc.constantFrom('00', '032', '0128', '+8', '-1', '8 ', ' 8', '8.0', '0x8', '١', '/8', '255.255.255.0'),
);
/** Addresses as people, programs and attackers write them. */
const address = fc.oneof(
  fc.ipV4(),
  fc.ipV4Extended(),
  fc.ipV6(),
  fc.array(digits, { minLength: 3, maxLength: 5 }).map((parts) => parts.join('.')),
  fc
    .array(fc.oneof(fc.constant(''), fc.string({ unit: fc.constantFrom(...'0123456789abcdefABCDEF'), maxLength: 5 })), {
      minLength: 2,
      maxLength: 10,
    })
    .map((groups) => groups.join(':')),
  fc.tuple(fc.constantFrom('::', '::ffff:', '64:ff9b::', '1:2:3:4:5:6:'), fc.ipV4()).map((parts) => parts.join('')),
  fc.tuple(fc.ipV6(), fc.constantFrom('%eth0', '%', '\n', ' ', '\t')).map((parts) => parts.join('')),
);
const written = fc.oneof(
  address,
  fc.tuple(address, prefix).map(([host, bits]) => `${host}/${bits}`),
);

/** What was found by hand, and by this test. */
const known = [
  '2001:db8::/032',
  '2001:db8::/00',
  '10.0.0.0/08',
  '::/0',
  '0.0.0.0/0',
  '1:2:3:4:5:6:7::',
  '::1.2.3.4/128',
];

it('PostgreSQL reads whatever is accepted as an address or a range', async () => {
  const { owner } = await setupDatabase();
  const texts = [...known, ...fc.sample(written, 20_000)].filter((text) => !text.includes('\0'));
  const accepted = texts.filter(isIpRange);
  expect(accepted.length).toBeGreaterThan(1_000);
  const { rows } = await owner.pool.query(
    `select g.text from unnest($1::text[]) g (text) where not pg_input_is_valid(g.text, 'inet')`,
    [accepted],
  );
  expect(rows.map(({ text }) => text)).toEqual([]);
});

it('whatever PostgreSQL writes of an address or a range is accepted', async () => {
  const { owner } = await setupDatabase();
  const { rows } = await owner.pool.query<{ text: string }>(
    `select unnest(array[a::text, host(a), network(a)::text, abbrev(a)]) as text from (
       select set_masklen(g.text::inet, (random() * case family(g.text::inet) when 4 then 32 else 128 end)::int) as a
       from unnest($1::text[]) g (text)) r`,
    [[...fc.sample(fc.ipV4(), 500), ...fc.sample(fc.ipV6(), 500)]],
  );
  expect(rows.map(({ text }) => text).filter((text) => !isIpRange(text))).toEqual([]);
});

it('PostgreSQL reads the address of every request, whatever a proxy sends', async () => {
  const { owner } = await setupDatabase();
  const trusted = new BlockList();
  trusted.addAddress('127.0.0.1');
  const sent = [
    ...known,
    ...fc.sample(
      fc.oneof(
        address,
        address.map((host) => `[${host}]:80`),
      ),
      5_000,
    ),
  ];
  const addresses = sent.map((text) =>
    clientAddress(
      { socket: { remoteAddress: '127.0.0.1' }, headers: { 'x-forwarded-for': text } } as unknown as IncomingMessage,
      trusted,
    ),
  );
  expect(new Set(addresses).size).toBeGreaterThan(1_000);
  const { rows } = await owner.pool.query(
    `select g.text from unnest($1::text[]) g (text) where not pg_input_is_valid(g.text, 'inet')`,
    [addresses.filter((found) => found !== null)],
  );
  expect(rows).toEqual([]);
});
