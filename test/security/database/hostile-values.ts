/**
 * Values of a PostgreSQL type as texts that a caller might send: the limits of the type, values that
 * compare differently than they add, infinities, SQL, odd encodings, and ids that exist.
 */
import fc from 'fast-check';

/** A value as text; null is NULL. */
export type Value = string | null;

const texts = [
  '',
  'x',
  "'; drop table audit_entry; --",
  '$$ || pg_sleep(9) || $$',
  '%s%n{0}',
  '\u202Eabc\u2066',
  '\uFFFD\uFEFF',
  '\uFF21\uFF24',
  '😀'.repeat(200),
  'a\nb\r\n',
  '\\x00',
  'x'.repeat(2_000),
  'api.getOrg',
  'api.console',
  'key.create',
  'webhook.delete',
  'person.name',
  '2026-02-31',
  '2026-13',
  '0000-00',
];
const moments = [
  'now',
  'infinity',
  '-infinity',
  '0001-01-01 BC',
  '4713-01-01 BC',
  '294276-12-31',
  'epoch',
  '2026-02-28',
];
const days = ['today', 'infinity', '-infinity', '4713-01-01 BC', '5874897-12-31', '2026-01-01', '1970-01-01'];
/** A month compares as 30 days and is added as a month, so that these are long and reach forward. */
const intervals = [
  '-1200 months 36090 days',
  '1200 months -36000 days',
  '178000000 years',
  '-178000000 years',
  'infinity',
  '-infinity',
  '0',
  '1 microsecond',
  '31 days',
  '90 days',
  '400 days',
  '-2147483648 months 2147483647 days',
  '2147483647 days -999999999 hours',
  '1 mon -1 day',
];
const documents = [
  '{}',
  '[]',
  'null',
  '1e400',
  '"x"',
  '{"webhookId":"x"}',
  '{"webhookId":null,"eventId":{"a":[1]}}',
  '{"keyId":["00000000-0000-0000-0000-000000000000"],"seatId":1}',
  `{"Id":"${'x'.repeat(5_000)}"}`,
];
const addresses = ['0.0.0.0/0', '::/0', '255.255.255.255', '::ffff:127.0.0.1', '198.51.100.7', 'fe80::1/10'];

const some = (values: readonly string[], random: fc.Arbitrary<string>): fc.Arbitrary<Value> =>
  fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...values) },
    { weight: 3, arbitrary: random },
    { weight: 1, arbitrary: fc.constant(null) },
  );
const number = (max: bigint, usual: readonly string[]) =>
  some([...usual, `${max}`, `${-max - 1n}`, `${max - 1n}`, '0', '1', '-1', '2'], fc.bigInt(-max - 1n, max).map(String));
const signed = fc.integer({ min: -100_000, max: 100_000 });

/** Returns values of a type by its name in the catalog; `ids` are UUIDs and texts that exist. */
export function valuesOfType(type: string, ids: readonly string[]): fc.Arbitrary<Value> {
  if (type.endsWith('[]')) return generateArrays(valuesOfType(type.slice(0, -2), ids));
  const uuids = ids.filter((id) => /^[0-9a-f-]{36}$/.test(id));
  switch (type) {
    case 'smallint':
      return number(2n ** 15n - 1n, ['99', '100', '200', '403']);
    case 'integer':
      return number(2n ** 31n - 1n, ['30', '31', '89', '90', '91', '10000']);
    case 'bigint':
    case 'numeric':
      return number(2n ** 63n - 1n, ['1000', '-1000']);
    case 'double precision':
    case 'real':
      return some(['NaN', 'Infinity', '-Infinity', '1e37', '-0', '1'], fc.double().map(String));
    case 'boolean':
      return some(['true', 'false'], fc.constant('true'));
    case 'interval':
      return some(
        intervals,
        fc.tuple(signed, signed, signed).map(([month, day, hour]) => `${month} months ${day} days ${hour} hours`),
      );
    case 'date':
      return some(
        days,
        signed.map((day) => new Date(day * 86_400_000).toISOString().slice(0, 10)),
      );
    case 'timestamp with time zone':
    case 'timestamp without time zone':
      return some(
        moments,
        signed.map((hour) => new Date(Date.now() + hour * 3_600_000).toISOString()),
      );
    case 'uuid':
      return some([...uuids, '00000000-0000-0000-0000-000000000000', 'f'.repeat(32), 'x'], fc.uuid());
    case 'bytea':
      return some(['\\x', '\\x00', `\\x${'ff'.repeat(32)}`, `\\x${'00'.repeat(500)}`], hexBytes);
    case 'inet':
    case 'cidr':
      return some([...addresses, 'x'], fc.ipV4());
    case 'json':
    case 'jsonb':
      return some(documents, fc.json());
    default:
      return some([...texts, ...ids], fc.string({ maxLength: 40 }));
  }
}

const hexBytes = fc.uint8Array({ maxLength: 40 }).map((bytes) => `\\x${Buffer.from(bytes).toString('hex')}`);

/** Returns arrays: none, empty, with NULL, of two dimensions, and long. */
function generateArrays(values: fc.Arbitrary<Value>): fc.Arbitrary<Value> {
  const quoted = values.map((value) => (value === null ? 'NULL' : `"${value.replace(/["\\]/g, '\\$&')}"`));
  const list = fc.array(quoted, { maxLength: 4 }).map((each) => `{${each.join(',')}}`);
  return fc.oneof(
    { weight: 8, arbitrary: list },
    { weight: 1, arbitrary: quoted.map((value) => `{{${value},${value}},{${value},${value}}}`) },
    { weight: 1, arbitrary: quoted.map((value) => `{${Array.from({ length: 100 }, () => value).join(',')}}`) },
    { weight: 1, arbitrary: fc.constant(null) },
  );
}
