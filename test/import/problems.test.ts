import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '#test/database.ts';
import {
  familyDay,
  grant,
  ids,
  importDocument,
  importText,
  type Loose,
  otherOrganization,
  rejection,
  rowVersions,
  smallDocument,
  uuid,
} from './document.ts';

/**
 * Invalid documents, the place of the problem, and its message. `o` is the small document's
 * organization.
 */
type Case = [what: string, change: (o: Loose, document: Loose) => void, path: string, problem: string | RegExp];

const o = '$.organizations[0]';
const free = uuid('9', 9);
const refund = { id: uuid('9', 1), month: '2026-08', currency: 'usd', shareCents: -1 };

const oneObject: Case[] = [
  ['no region', (_, d) => delete d.region, '$.region', 'is missing'],
  ['a region no one has', (_, d) => Object.assign(d, { region: 'eu' }), '$.region', /must be one of us, ca/],
  ['the other region', (_, d) => Object.assign(d, { region: 'ca' }), '$.region', /is Canada .*serves United States/],
  ['no asOf', (_, d) => delete d.asOf, '$.asOf', 'is missing'],
  ['an asOf that is no day', (_, d) => Object.assign(d, { asOf: '2026-02-30' }), '$.asOf', /must be a day/],
  [
    'an asOf after tomorrow',
    (_, d) => Object.assign(d, { asOf: '2999-01-01' }),
    '$.asOf',
    'is after tomorrow: correct it, or move the dates with --today',
  ],
  ['no organizations', (_, d) => delete d.organizations, '$.organizations', 'is missing'],
  [
    'organizations that are no list',
    (_, d) => Object.assign(d, { organizations: {} }),
    '$.organizations',
    'must be a list',
  ],
  ['an unknown key at the top', (_, d) => Object.assign(d, { version: 1 }), '$.version', /is not a key of the format/],
  ['an organization that is no object', (_, d) => d.organizations.push(7), '$.organizations[1]', 'must be an object'],
  ['a missing field', (x) => delete x.slug, `${o}.slug`, 'is missing'],
  ['an empty name', (x) => Object.assign(x, { name: ' ' }), `${o}.name`, 'is empty'],
  ['a name that is a number', (x) => Object.assign(x, { name: 5 }), `${o}.name`, 'must be a text'],
  [
    'an address with which its member could not sign in',
    (x) => Object.assign(x.members[0], { email: 'bö@example.org' }),
    `${o}.members[0].email`,
    'must be an email address with only unaccented letters, digits and symbols before the @',
  ],
  [
    'an address that is incomplete',
    (x) => Object.assign(x.members[0], { email: 'ada@example' }),
    `${o}.members[0].email`,
    /must be a complete email address/,
  ],
  [
    'an address whose domain programs read differently',
    (x) => Object.assign(x.members[0], { email: 'ada@faß.example.org' }),
    `${o}.members[0].email`,
    /must be an email address whose domain is in its ASCII form/,
  ],
  ['an unknown kind', (x) => Object.assign(x, { kind: 'bakery' }), `${o}.kind`, /must be one of direct/],
  ['an id that is no UUID', (x) => Object.assign(x, { id: 'abc' }), `${o}.id`, 'must be a UUID'],
  [
    'a date-time without Z',
    (x) => Object.assign(x, { createdAt: '2026-01-01T00:00:00' }),
    `${o}.createdAt`,
    /UTC date-time/,
  ],
  [
    'a date-time of another zone',
    (x) => Object.assign(x, { createdAt: '2026-01-01T00:00:00+01:00' }),
    `${o}.createdAt`,
    /UTC/,
  ],
  ['30 February', (x) => Object.assign(x, { createdAt: '2026-02-30T00:00:00Z' }), `${o}.createdAt`, /UTC date-time/],
  ['an unknown key of an organization', (x) => Object.assign(x, { clients: [] }), `${o}.clients`, /is not a key/],
  [
    'a misspelt key',
    (x) => Object.assign(x.grants[0], { 'ends at': null }),
    `${o}.grants[0]["ends at"]`,
    /is not a key/,
  ],
  ['a list that is null', (x) => Object.assign(x, { grants: null }), `${o}.grants`, 'must be a list'],
  ['a plan that is null', (x) => Object.assign(x, { seatPlan: null }), `${o}.seatPlan`, 'must be an object'],
  ['two plans', (x) => Object.assign(x, { seatPlan: [x.seatPlan, x.seatPlan] }), `${o}.seatPlan`, 'must be an object'],
  [
    'a price without a currency',
    (x) => delete x.seatPlan.pricePerSeat.currency,
    `${o}.seatPlan.pricePerSeat.currency`,
    'is missing',
  ],
  ['a negative count', (x) => Object.assign(x.seatPlan, { invoiced: -1 }), `${o}.seatPlan.invoiced`, 'is negative'],
  [
    'a broken count',
    (x) => Object.assign(x.seatPlan, { invoiced: 1.5 }),
    `${o}.seatPlan.invoiced`,
    'must be a whole number',
  ],
  [
    'a count beyond four bytes',
    (x) => Object.assign(x.seatPlan, { invoiced: 2 ** 31 }),
    `${o}.seatPlan.invoiced`,
    /is larger/,
  ],
  [
    'a subscription of more than ten million seats',
    (x) => Object.assign(x.seatPlan.subscriptions[0], { quantity: 10_000_001 }),
    `${o}.seatPlan.subscriptions[0].quantity`,
    'is larger than 10000000',
  ],
  [
    'more than a million messages of a family on a day',
    (x) => Object.assign(x.familyDays[0], { messages: 1_000_001 }),
    `${o}.familyDays[0].messages`,
    'is larger than 1000000',
  ],
  [
    'an unknown subscription status',
    (x) => Object.assign(x.seatPlan.subscriptions[0], { status: 'on' }),
    `${o}.seatPlan.subscriptions[0].status`,
    /must be one of/,
  ],
  ['NUL in a text', (x) => Object.assign(x.families[1], { name: 'a\0b' }), `${o}.families[1].name`, /NUL/],
  [
    'half a surrogate pair',
    (x) => Object.assign(x.families[1], { name: '\ud800' }),
    `${o}.families[1].name`,
    /surrogate/,
  ],
  ['a word too long for an index', (x) => Object.assign(x, { slug: 'x'.repeat(256) }), `${o}.slug`, /longer than 255/],
  [
    'an unknown permission',
    (x) => x.roles[0].permissions.push('org.fly'),
    `${o}.roles[0].permissions[2]`,
    /must be one of org.read/,
  ],
  ['a permission twice', (x) => x.roles[0].permissions.push('org.read'), `${o}.roles[0].permissions[2]`, /twice/],
  [
    'an unknown member status',
    (x) => Object.assign(x.members[0], { status: 'here' }),
    `${o}.members[0].status`,
    /must be one of invited/,
  ],
  [
    'an end before its beginning',
    (x) => Object.assign(x.grants[1], { endsAt: '2026-02-01T00:00:00.000Z' }),
    `${o}.grants[1].endsAt`,
    'is before since',
  ],
  [
    'an end reason without an end',
    (x) => Object.assign(x.grants[1], { endsAt: null }),
    `${o}.grants[1].endReason`,
    /endsAt is null/,
  ],
  [
    'an unknown end reason',
    (x) => Object.assign(x.grants[1], { endReason: 'bored' }),
    `${o}.grants[1].endReason`,
    /must be one of ended, moved/,
  ],
  [
    'a seat that ends before it was given',
    (x) => Object.assign(x.seats[1], { endedAt: '2026-03-01T00:00:00.000Z' }),
    `${o}.seats[1].endedAt`,
    'is before givenAt',
  ],
  [
    'a seat end without a reason',
    (x) => Object.assign(x.seats[1], { reason: null }),
    `${o}.seats[1].reason`,
    /is null/,
  ],
  [
    'a seat reason without an end',
    (x) => Object.assign(x.seats[1], { endedAt: null }),
    `${o}.seats[1].reason`,
    /endedAt is null/,
  ],
  [
    'an unknown referral state',
    (x) => Object.assign(x.referralCodes[0].referrals[0], { state: 'x' }),
    `${o}.referralCodes[0].referrals[0].state`,
    /must be one of/,
  ],
  [
    'a month that is none',
    (x) => Object.assign(x.referralInvoices[0], { month: '2026-13' }),
    `${o}.referralInvoices[0].month`,
    /must be a month/,
  ],
  [
    'more calm messages than messages',
    (x) => Object.assign(x.familyDays[0], { calmMessages: 5 }),
    `${o}.familyDays[0].calmMessages`,
    'is more than messages',
  ],
  [
    'more exchanges on time than exchanges',
    (x) => Object.assign(x.familyDays[0], { exchangesOnTime: 5 }),
    `${o}.familyDays[0].exchangesOnTime`,
    'is more than exchanges',
  ],
  [
    'more expenses answered than due',
    (x) => Object.assign(x.familyDays[0], { expensesAnsweredIn14Days: 5 }),
    `${o}.familyDays[0].expensesAnsweredIn14Days`,
    'is more than expensesDue',
  ],
  [
    'a negative number of messages',
    (x) => Object.assign(x.familyDays[0], { messages: -4, calmMessages: -4 }),
    `${o}.familyDays[0].messages`,
    'is negative',
  ],
];

const acrossObjects: Case[] = [
  [
    'an organization twice',
    (x, d) => d.organizations.push({ ...otherOrganization(), id: x.id }),
    '$.organizations[1].id',
    /already in the file/,
  ],
  [
    'a slug twice',
    (x, d) => d.organizations.push({ ...otherOrganization(), slug: x.slug }),
    '$.organizations[1].slug',
    /in the file/,
  ],
  ['a role id twice', (x) => x.roles.push({ ...x.roles[0], key: 'x' }), `${o}.roles[1].id`, /already in the file/],
  ['a role key twice', (x) => x.roles.push({ ...x.roles[0], id: free }), `${o}.roles[1].key`, /in the file/],
  [
    'the key of a system role',
    (x) => Object.assign(x.roles[0], { key: 'owner' }),
    `${o}.roles[0].key`,
    /every organization has/,
  ],
  [
    'the id of a system role',
    (x) => Object.assign(x.roles[0], { id: '0a1f0000-0000-7000-8000-000000000001' }),
    `${o}.roles[0].id`,
    /another organization/,
  ],
  ['an unknown role key', (x) => x.members[1].roleKeys.push('pilot'), `${o}.members[1].roleKeys[2]`, /no role/],
  ['a role key twice', (x) => x.members[1].roleKeys.push('member'), `${o}.members[1].roleKeys[2]`, /twice/],
  ['a member twice', (x) => x.members.push(x.members[0]), `${o}.members[2].userId`, /already in the file/],
  ['a family twice', (x) => x.families.push(x.families[0]), `${o}.families[3].id`, /already in the file/],
  ['a grant twice', (x) => x.grants.push(x.grants[2]), `${o}.grants[3].id`, /already in the file/],
  [
    'a grant of an unknown family',
    (x) => Object.assign(x.grants[2], { familyId: free }),
    `${o}.grants[2].familyId`,
    /no family/,
  ],
  [
    'a grant of an unknown professional',
    (x) => Object.assign(x.grants[2], { professionalUserId: 'u9' }),
    `${o}.grants[2].professionalUserId`,
    /no member/,
  ],
  [
    'an end reason with an end ahead',
    (x) => Object.assign(x.grants[2], { endReason: 'ended' }),
    `${o}.grants[2].endReason`,
    /lies ahead/,
  ],
  [
    'a seat ended ahead',
    (x) => Object.assign(x.seats[1], { endedAt: '2999-01-01T00:00:00.000Z' }),
    `${o}.seats[1].endedAt`,
    'lies ahead',
  ],
  ['a seat twice', (x) => x.seats.push(x.seats[1]), `${o}.seats[2].id`, /already in the file/],
  [
    'a seat of an unknown grant',
    (x) => Object.assign(x.seats[0], { grantId: free }),
    `${o}.seats[0].grantId`,
    /no grant/,
  ],
  [
    'a second assigned seat',
    (x) => x.seats.push({ ...x.seats[0], id: free }),
    `${o}.seats[2].grantId`,
    /already has a seat in the file/,
  ],
  [
    'a seat assigned on ended access',
    (x) => Object.assign(x.seats[0], { grantId: ids.grants[1] }),
    `${o}.seats[0]`,
    /its grant has ended/,
  ],
  [
    'more seats than it has',
    (x) =>
      Object.assign(x, {
        seatPlan: { ...x.seatPlan, invoiced: 0, subscriptions: [{ ...x.seatPlan.subscriptions[0], status: 'paused' }] },
      }),
    `${o}.seats`,
    '1 seat would be assigned, but the organization has 0 seats (0 invoiced, 0 paid)',
  ],
  [
    'seats without a plan',
    (x) => delete x.seatPlan,
    `${o}.seatPlan`,
    'is missing: 1 seat would be assigned, but the organization has 0 seats (0 invoiced, 0 paid)',
  ],
  [
    'a subscription twice',
    (x) => x.seatPlan.subscriptions.push(x.seatPlan.subscriptions[0]),
    `${o}.seatPlan.subscriptions[1].id`,
    /already/,
  ],
  [
    'a referral code twice',
    (x) => x.referralCodes.push({ ...x.referralCodes[0], id: free, referrals: [] }),
    `${o}.referralCodes[1].code`,
    /in the file/,
  ],
  [
    'a referral twice',
    (x) => x.referralCodes[0].referrals.push(x.referralCodes[0].referrals[0]),
    `${o}.referralCodes[0].referrals[1].id`,
    /already/,
  ],
  [
    'shares of a month that sum to more than a JSON reader reads exactly',
    (x) => x.referralInvoices.push({ ...x.referralInvoices[0], id: free, shareCents: Number.MAX_SAFE_INTEGER }),
    `${o}.referralInvoices`,
    /sum to more than 9007199254740991/,
  ],
  ['an invoice twice', (x) => x.referralInvoices.push(x.referralInvoices[0]), `${o}.referralInvoices[1].id`, /already/],
  ['a day twice', (x) => x.familyDays.push(x.familyDays[0]), `${o}.familyDays[2].day`, /already has this day/],
  [
    'a day of an unknown family',
    (x) => x.familyDays.push({ ...familyDay(0, '2026-11-01'), familyId: free }),
    `${o}.familyDays[2].familyId`,
    /no family/,
  ],
];

/** These are imported into a database that contains the small document and another organization. */
const againstDatabase: Case[] = [
  ['a slug of the database', (x) => Object.assign(x, { slug: 'other' }), `${o}.slug`, /in the database/],
  [
    'a grant of another organization',
    (x) => Object.assign(x, { id: ids.otherOrganization, slug: 'other' }),
    `${o}.grants[0].id`,
    /another organization/,
  ],
  [
    'a role of another organization',
    (x) => Object.assign(x, { id: ids.otherOrganization, slug: 'other' }),
    `${o}.roles[0].id`,
    /another organization/,
  ],
  [
    'a referral of another organization',
    (x) => Object.assign(x, { id: ids.otherOrganization, slug: 'other' }),
    `${o}.referralCodes[0].referrals[0].id`,
    /another organization/,
  ],
  [
    'a grant given to another family',
    (x) => Object.assign(x.grants[2], { familyId: ids.families[1] }),
    `${o}.grants[2].familyId`,
    /another family/,
  ],
  [
    'ended access made active',
    (x) => Object.assign(x.grants[1], { endsAt: null, endReason: null }),
    `${o}.grants[1].endReason`,
    /cannot become active again/,
  ],
  [
    'an ended seat assigned again',
    (x) => Object.assign(x.seats[1], { endedAt: null, reason: null }),
    `${o}.seats[1].endedAt`,
    /cannot be assigned again/,
  ],
  [
    'a seat put on another grant',
    (x) => Object.assign(x.seats[0], { grantId: ids.grants[2] }),
    `${o}.seats[0].grantId`,
    /another grant/,
  ],
  [
    'a second seat beside one in the database',
    (x) => Object.assign(x, { seats: [{ ...x.seats[0], id: free }] }),
    `${o}.seats[0].grantId`,
    /in the database, which the file does not end/,
  ],
  [
    'a role key of the database',
    (x) => Object.assign(x, { roles: [{ ...x.roles[0], id: free }] }),
    `${o}.roles[0].key`,
    /in the database/,
  ],
  [
    'a referral code of the database',
    (x) => Object.assign(x, { referralCodes: [{ ...x.referralCodes[0], id: free, referrals: [] }] }),
    `${o}.referralCodes[0].code`,
    /in the database/,
  ],
  [
    'shares that sum to too much with those of the database',
    (x) =>
      Object.assign(x, {
        referralInvoices: [{ ...x.referralInvoices[0], id: free, shareCents: Number.MAX_SAFE_INTEGER }],
      }),
    `${o}.referralInvoices`,
    /sum to more than 9007199254740991/,
  ],
  [
    'a refund that the file moves out of a month, which then sums to too much',
    (x) => Object.assign(x, { referralInvoices: [{ ...refund, month: '2026-07' }] }),
    `${o}.referralInvoices`,
    /sum to more than 9007199254740991/,
  ],
  [
    'a role key that the file takes away',
    (x) => {
      x.roles[0].key = 'desk';
    },
    `${o}.members[1].roleKeys[1]`,
    /no role/,
  ],
  [
    'fewer places than the database has seats',
    (x) => {
      x.seats = [];
      x.seatPlan = {
        invoiced: 0,
        pricePerSeat: null,
        subscriptions: [{ ...x.seatPlan.subscriptions[0], quantity: 0 }],
      };
    },
    `${o}.seats`,
    /1 seat would be assigned/,
  ],
];

const texts: [what: string, text: string | Uint8Array, problem: RegExp][] = [
  ['nothing', '', /is empty/],
  ['spaces only', '  \n ', /is empty/],
  [
    'a broken document, with the position',
    '{"region": "us",\n "asOf" 5}',
    /not JSON at line 2, column 9: expected ':'/,
  ],
  ['a document cut off', '{"region":"us","organizations":[{"id":', /ends before the document does/],
  ['something after the document', '{"region":"us"} x', /not JSON at line 1, column 17/],
  ['a list', '[]', /must be an object/],
  ['a bare word', 'null', /must be an object/],
  ['a lone quote', '"abc', /ends before|not JSON/],
  ['bytes that are not UTF-8', Uint8Array.of(0x7b, 0xff, 0x7d), /is not UTF-8/],
  ['a nest of brackets', '['.repeat(100_000), /nested deeper/],
  ['one huge text', `{"region":"${'x'.repeat(3_000_000)}`, /longer than|larger than/],
  ['one huge object', `{"x":[${'1,'.repeat(700_000)}1]}`, /larger than/],
];

describe('a document with a problem', () => {
  let empty: TestDatabase;
  let filled: TestDatabase;
  beforeAll(async () => {
    [empty, filled] = await Promise.all([createTestDatabase(), createTestDatabase()]);
    const document = smallDocument();
    document.organizations.push(otherOrganization());
    const [large, small] = [
      { ...refund, id: uuid('9', 2), shareCents: Number.MAX_SAFE_INTEGER },
      { ...refund, id: uuid('9', 3), shareCents: 1 },
    ];
    document.organizations[0].referralInvoices.push(refund, large, small);
    await importDocument(filled.ownerUrl, document);
  });
  afterAll(async () => {
    await Promise.all([empty.drop(), filled.drop()]);
  });

  async function expectRejected(databaseUrl: string, [, change, path, problem]: Case): Promise<void> {
    const document = smallDocument();
    change(document.organizations[0], document);
    const { problems } = await rejection(importDocument(databaseUrl, document));
    const found = problems.filter((one) => one.path === path).map((one) => one.problem);
    expect(found, JSON.stringify(problems)).toContainEqual(
      typeof problem === 'string' ? problem : expect.stringMatching(problem),
    );
    expect(found).toHaveLength(1);
  }

  it.each([...oneObject, ...acrossObjects])('is rejected with the path: %s', async (...theCase) => {
    await expectRejected(empty.ownerUrl, theCase);
  });

  it.each(againstDatabase)('is rejected with the path, by a look into the database: %s', async (...theCase) => {
    await expectRejected(filled.ownerUrl, theCase);
  });

  it.each(texts)('is rejected when it is %s', async (_what, text, problem) => {
    const { problems } = await rejection(importText(empty.ownerUrl, text));
    expect(problems).toContainEqual({ path: expect.stringMatching(/^\$/), problem: expect.stringMatching(problem) });
  });

  it('is rejected when a key occurs twice, at any depth', async () => {
    const text = JSON.stringify(smallDocument())
      .replace('"region":"us"', '"region":"us","region":"us"')
      .replace('"kind":"attorney"', '"kind":"attorney","kind":"neutral"')
      .replace('"families":', '"families":[],"families":');
    const { problems } = await rejection(importText(empty.ownerUrl, text));
    for (const path of ['$.region', `${o}.grants[0].kind`, `${o}.families`])
      expect(problems).toContainEqual({ path, problem: 'is given twice' });
  });

  it('lists every problem, in the order of the document, not only the first', async () => {
    const document = smallDocument();
    const [organization] = document.organizations;
    organization.name = '';
    organization.grants[0].kind = 'cook';
    organization.grants[2].familyId = free;
    organization.members[1].roleKeys.push('pilot');
    organization.seats.push({ ...organization.seats[0], id: free });
    const { problems, total } = await rejection(importDocument(empty.ownerUrl, document));
    expect(problems.map((one) => one.path)).toEqual([
      `${o}.grants[0].kind`,
      `${o}.grants[2].familyId`,
      `${o}.members[1].roleKeys[2]`,
      `${o}.name`,
      `${o}.seats[2].grantId`,
    ]);
    expect(total).toBe(5);
  });

  it('reports the number of problems when they are too many to list', async () => {
    const document = smallDocument();
    document.organizations[0].grants = Array.from({ length: 5_000 }, (_, n) =>
      grant(0, { id: uuid('d', n), familyId: free }),
    );
    const { problems, total } = await rejection(importDocument(empty.ownerUrl, document));
    expect(problems).toHaveLength(200);
    expect(total).toBeGreaterThanOrEqual(5_000);
  });

  it('changes no row, not even of valid objects', async () => {
    const before = await rowVersions(filled.ownerUrl);
    const document = smallDocument();
    const [organization] = document.organizations;
    Object.assign(organization, { name: 'New name' });
    organization.families.push({ id: free, name: 'New family' });
    organization.grants[2].familyId = uuid('9', 8);
    await rejection(importDocument(filled.ownerUrl, document));
    expect(await rowVersions(filled.ownerUrl)).toEqual(before);
  });

  it('never repeats a value of the file', async () => {
    const text = JSON.stringify(smallDocument()).replaceAll('"Family 1"', '"Secretname\\u0000"').replace('"usd"', '5');
    const { problems } = await rejection(importText(empty.ownerUrl, text));
    expect(JSON.stringify(problems)).not.toContain('Secretname');
  });
});
