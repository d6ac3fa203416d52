import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '#test/database.ts';
import { fixturePath } from '#test/fixtures.ts';
import {
  familyDay,
  grant,
  ids,
  importDocument,
  importText,
  type Loose,
  otherOrganization,
  query,
  rejection,
  rowVersions,
  smallDocument,
  uuid,
} from './document.ts';

let database: TestDatabase;
let url: string;
beforeEach(async () => {
  database = await createTestDatabase();
  url = database.ownerUrl;
});
afterEach(() => database.drop());

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const grantRow = async (n: number) =>
  (await query(url, 'select status, end_reason, ends_at from client_grant where id = $1', [ids.grants[n]]))[0];
const seatRow = async (n: number) =>
  (await query(url, 'select ended_at, end_reason from seat where id = $1', [ids.seats[n]]))[0];
const changed = (counts: Record<string, { inserted: number; updated: number; removed: number }>) =>
  Object.entries(counts).flatMap(([kind, c]) => (c.inserted + c.updated + c.removed > 0 ? [kind] : []));

/** Returns the value with the keys of every object in the opposite order. */
function reversed(value: Loose): Loose {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, below]) => [key, reversed(below)]),
  );
}

describe('importing a document', () => {
  it('writes a row for everything in it, and reports the counts', async () => {
    const result = await importDocument(url, smallDocument());
    expect(result.organizations).toMatchObject([{ id: ids.organization, name: 'Žižka & Ünal', ownerUserId: 'u1' }]);
    const inserted = Object.fromEntries(Object.entries(result.counts).map(([kind, c]) => [kind, c.inserted]));
    expect(inserted).toEqual({
      organizations: 1,
      roles: 1,
      members: 2,
      memberRoles: 3,
      families: 3,
      seatPlans: 1,
      subscriptions: 1,
      grants: 3,
      seats: 2,
      referralCodes: 1,
      referrals: 1,
      referralInvoices: 1,
      familyDays: 2,
    });
    expect(await grantRow(0)).toEqual({ status: 'active', end_reason: null, ends_at: null });
    expect(await grantRow(1)).toMatchObject({ status: 'ended', end_reason: 'moved' });
    expect(await seatRow(0)).toEqual({ ended_at: null, end_reason: null });
    const [{ at }] = await query(url, 'select api.utc(created_at) as at from organization');
    expect(at).toBe('2025-01-02T03:04:05.678Z');
  });

  it('changes nothing the second time: every row keeps its version', async () => {
    await importDocument(url, smallDocument());
    const before = await rowVersions(url);
    const again = await importDocument(url, smallDocument());
    expect(await rowVersions(url)).toEqual(before);
    expect(changed(again.counts)).toEqual([]);
    expect(again.counts.grants).toEqual({ inserted: 0, updated: 0, removed: 0, unchanged: 3 });
  });

  it('brings addresses to the form that browsers send', async () => {
    const document = smallDocument();
    const spell = (email: string) => Object.assign(document.organizations[0].members[0], { email });
    spell('Asa@bücher.example.org');
    await importDocument(url, document);
    const stored = () => query(url, `select email, xmin from membership where person_id = 'u1'`);
    const before = await stored();
    expect(before).toMatchObject([{ email: 'asa@xn--bcher-kva.example.org' }]);
    spell('asa@xn--bcher-kva.example.org');
    await importDocument(url, document);
    expect(await stored()).toEqual(before);
  });

  it('accepts the keys of every object in any order', async () => {
    await importDocument(url, smallDocument());
    const before = await rowVersions(url);
    await importDocument(url, reversed(smallDocument()));
    expect(await rowVersions(url)).toEqual(before);

    const fresh = await createTestDatabase();
    const result = await importDocument(fresh.ownerUrl, reversed(smallDocument()));
    expect(result.counts.referrals?.inserted).toBe(1);
    await fresh.drop();
  });

  it('reads text in pieces of any size, with a byte order mark, escapes and characters of four bytes', async () => {
    const document = smallDocument();
    document.organizations[0].name = '𝒜 "quoted" \\ / é';
    const bytes = Buffer.from(`\ufeff${JSON.stringify(document).replaceAll('é', '\\u00e9')}`);
    const one = (async function* () {
      for (const byte of bytes) yield Uint8Array.of(byte);
    })();
    const result = await importText(url, '', { source: one });
    expect(result.organizations[0]?.name).toBe('𝒜 "quoted" \\ / é');
  });

  it('keeps what a later file does not mention, also whole lists', async () => {
    await importDocument(url, smallDocument());
    const before = await rowVersions(url);
    const { id, name, slug, kind, status, createdAt } = smallDocument().organizations[0];
    await importDocument(url, {
      region: 'us',
      asOf: '2026-11-20',
      organizations: [{ id, name, slug, kind, status, createdAt }],
    });
    expect(await rowVersions(url)).toEqual(before);
  });

  it('replaces all days of a mentioned family, and of no other', async () => {
    await importDocument(url, smallDocument());
    const document = smallDocument();
    document.organizations[0].familyDays = [familyDay(1, '2026-11-10')];
    const { counts } = await importDocument(url, document);
    expect(counts.familyDays).toEqual({ inserted: 1, updated: 0, removed: 2, unchanged: 0 });

    document.organizations[0].families = [{ id: ids.families[2], name: 'Family 2' }];
    document.organizations[0].familyDays = [];
    const later = await importDocument(url, document);
    expect(later.counts.familyDays?.removed).toBe(0);
  });

  it('replaces all roles of a mentioned member', async () => {
    await importDocument(url, smallDocument());
    const document = smallDocument();
    document.organizations[0].members[1].roleKeys = ['analyst'];
    const { counts } = await importDocument(url, document);
    expect(counts.memberRoles).toMatchObject({ inserted: 1, removed: 2 });
  });

  it('takes a field that may be null for null when it is missing', async () => {
    const full = smallDocument();
    const short = smallDocument();
    for (const document of [full, short]) document.organizations[0].seatPlan.pricePerSeat = null;
    full.organizations[0].seatPlan.subscriptions[0].renewsAt = null;
    const [one] = short.organizations;
    delete one.seatPlan.pricePerSeat;
    for (const [list, field] of [
      [one.members.slice(1), 'title'],
      [one.seatPlan.subscriptions, 'renewsAt'],
      [one.grants.slice(0, 1), 'endsAt'],
      [[one.grants[0], one.grants[2]], 'endReason'],
      [one.seats.slice(0, 1), 'endedAt'],
      [one.seats.slice(0, 1), 'reason'],
      [one.referralCodes, 'label'],
    ])
      for (const object of list) delete object[field];
    await importDocument(url, short);
    const before = await rowVersions(url);
    await importDocument(url, full);
    expect(await rowVersions(url)).toEqual(before);
  });

  it('keeps the roles of a member without roleKeys, and gives a new one none', async () => {
    await importDocument(url, smallDocument());
    const document = smallDocument();
    const [member] = document.organizations[0].members;
    delete member.roleKeys;
    document.organizations[0].members.push({ ...member, userId: 'u3', email: 'new@example.org' });
    const { counts } = await importDocument(url, document);
    expect(counts).toMatchObject({ members: { inserted: 1 }, memberRoles: { inserted: 0, removed: 0 } });
  });

  it('lets slugs, role keys and referral codes change hands within one file', async () => {
    const document = smallDocument();
    const [one] = document.organizations;
    document.organizations.push(otherOrganization());
    one.roles.push({ ...one.roles[0], id: uuid('b', 2), key: 'desk' });
    one.referralCodes.push({ ...one.referralCodes[0], id: uuid('1', 2), code: 'AUTUMN', referrals: [] });
    await importDocument(url, document);
    [one.slug, document.organizations[1].slug] = [document.organizations[1].slug, one.slug];
    [one.roles[0].key, one.roles[1].key] = [one.roles[1].key, one.roles[0].key];
    [one.referralCodes[0].code, one.referralCodes[1].code] = ['AUTUMN', 'SPRING'];
    const { counts } = await importDocument(url, document);
    expect(counts).toMatchObject({
      organizations: { updated: 2 },
      roles: { updated: 2 },
      referralCodes: { updated: 2 },
    });
  });

  it('ends access and its seat, and assigns the seat to another family, in one file', async () => {
    const document = smallDocument();
    const [organization] = document.organizations;
    organization.seatPlan.subscriptions = [];
    await importDocument(url, document);
    organization.grants[0] = grant(0, { endsAt: '2026-11-01T00:00:00.000Z', endReason: 'ended' });
    organization.seats = [
      { id: uuid('e', 3), grantId: ids.grants[2], givenAt: '2026-11-02T00:00:00.000Z', endedAt: null, reason: null },
    ];
    // the file does not have the seat of the ended grant: the database ends it with the access
    const { counts } = await importDocument(url, document);
    expect(counts).toMatchObject({ grants: { updated: 1 }, seats: { inserted: 1 } });
    expect(await seatRow(0)).toMatchObject({
      end_reason: 'access_ended',
      ended_at: new Date('2026-11-01T00:00:00.000Z'),
    });
  });

  it('gives every organization a plan, so that one without seats has seat counts too', async () => {
    await importDocument(url, { region: 'us', asOf: '2026-11-20', organizations: [otherOrganization()] });
    expect(await query(url, 'select invoiced, price_cents from seat_plan')).toEqual([
      { invoiced: 0, price_cents: null },
    ]);
  });

  it('accepts an empty list of organizations', async () => {
    expect((await importDocument(url, { region: 'us', asOf: '2026-11-20', organizations: [] })).organizations).toEqual(
      [],
    );
  });
});

describe('access that time has ended', () => {
  const past = '2026-10-01T00:00:00.000Z';
  function documentWithPastEnd(): Loose {
    const document = smallDocument();
    document.organizations[0].grants[0] = grant(0, { endsAt: past });
    return document;
  }

  it('is imported as ended, together with its assigned seat, without an end event', async () => {
    await importDocument(url, documentWithPastEnd());
    expect(await grantRow(0)).toEqual({ status: 'ended', end_reason: 'ended', ends_at: new Date(past) });
    expect(await seatRow(0)).toEqual({ end_reason: 'access_ended', ended_at: new Date(past) });
  });

  it('is unchanged when the same file is imported again', async () => {
    await importDocument(url, documentWithPastEnd());
    const before = await rowVersions(url);
    const { counts } = await importDocument(url, documentWithPastEnd());
    expect(await rowVersions(url)).toEqual(before);
    expect(changed(counts)).toEqual([]);
  });

  it('is unchanged, with its assigned seat, when its end passed between two imports of one file', async () => {
    const document = smallDocument();
    const soon = new Date(Date.now() + 1_500);
    document.organizations[0].grants[0] = grant(0, { endsAt: soon.toISOString() });
    await importDocument(url, document);
    await expect.poll(() => Date.now(), { timeout: 5_000 }).toBeGreaterThan(soon.getTime());
    // as maintenance does
    await query(url, `update client_grant set status = 'ended', end_reason = 'ended' where id = $1`, [ids.grants[0]]);
    const before = await rowVersions(url);
    await importDocument(url, document);
    expect(await rowVersions(url)).toEqual(before);
    expect(await seatRow(0)).toMatchObject({ end_reason: 'access_ended' });
  });
});

describe('--today', () => {
  const now = new Date('2026-12-02T23:59:59.000Z');

  it('moves every timestamp and day by the whole days since asOf, and no invoice month', async () => {
    const { shiftedDays } = await importDocument(url, smallDocument(), { today: true, now });
    expect(shiftedDays).toBe(12);
    const [row] = await query(
      url,
      `select api.utc(o.created_at) as created, api.utc(g.since) as since, api.utc(g.ends_at) as ends,
        api.utc(s.given_at) as given,
         api.utc(s.ended_at) as ended, api.utc(b.renews_at) as renews, i.month,
         (select array_agg(day::text order by day) from family_day) as days
       from organization o, client_grant g, seat s, subscription b, referral_invoice i
         where g.id = $1 and s.grant_id = g.id`,
      [ids.grants[1]],
    );
    expect(row).toEqual({
      created: '2025-01-14T03:04:05.678Z',
      since: '2026-03-13T00:00:00.000Z',
      ends: '2026-06-13T00:00:00.000Z',
      given: '2026-04-13T00:00:00.000Z',
      ended: '2026-06-13T00:00:00.000Z',
      renews: '2027-01-13T00:00:00.000Z',
      month: '2026-09',
      days: ['2026-11-30', '2026-12-01'],
    });
  });

  it('changes nothing the second time on the same day', async () => {
    await importDocument(url, smallDocument(), { today: true, now });
    const before = await rowVersions(url);
    await importDocument(url, smallDocument(), { today: true, now: new Date('2026-12-02T00:00:00.000Z') });
    expect(await rowVersions(url)).toEqual(before);
  });

  it('moves back when asOf is in the future, and rejects years beyond the format', async () => {
    const document = { ...smallDocument(), asOf: '2026-12-05' };
    expect((await importDocument(url, document, { today: true, now })).shiftedDays).toBe(-3);
    document.organizations[0].grants[2] = grant(2, { endsAt: '9999-12-31T00:00:00.000Z' });
    const { problems } = await rejection(
      importDocument(url, { ...document, asOf: '2026-11-20' }, { today: true, now }),
    );
    expect(problems).toEqual([
      { path: '$.organizations[0].grants[2].endsAt', problem: 'is moved out of the years 1 to 9999 by --today' },
    ]);
  });
});

describe('an import', () => {
  it.each([false, true])('rejects the platform’s login before it reads the file (backfill: %s)', async (backfill) => {
    const unread = (async function* () {
      yield '{';
      throw new Error('the file was read');
    })();
    await expect(importText(database.urls.platform, '', { backfill, source: unread })).rejects.toMatchObject({
      code: '42501',
    });
  });

  it('writes one audit entry for each changed organization, and none when nothing changed', async () => {
    const document = smallDocument();
    document.organizations.push(otherOrganization());
    await importDocument(url, document);
    await importDocument(url, document);
    document.organizations[1].name = 'Renamed';
    await importDocument(url, document, { backfill: true });
    const entries = await query(
      url,
      'select organization_id, action, detail from audit_entry order by at, organization_id',
    );
    expect(entries).toEqual([
      { organization_id: ids.organization, action: 'import', detail: expect.anything() },
      { organization_id: ids.otherOrganization, action: 'import', detail: expect.anything() },
      {
        organization_id: ids.otherOrganization,
        action: 'import.backfill',
        detail: { sha256: sha256(JSON.stringify(document)), changes: { organizations: { updated: 1 } } },
      },
    ]);
  });

  it('renames a member whose names are longer than an audit entry, and records how both begin', async () => {
    const document = smallDocument();
    const [member] = document.organizations[0].members;
    member.name = '"'.repeat(10_000);
    await importDocument(url, document);
    member.name = "'".repeat(10_000);
    await importDocument(url, document);
    expect(
      await query(url, `select names -> 'renamed' as renamed from audit_entry where action = 'member.change'`),
    ).toEqual([{ renamed: { from: '"'.repeat(1000), to: "'".repeat(1000) } }]);
  });

  it('accepts shares whose sum is exact only when all rows of the file are written', async () => {
    const document = smallDocument();
    const of = (id: number, shareCents: number) => ({
      id: uuid('9', id),
      month: '2026-08',
      currency: 'usd',
      shareCents,
    });
    document.organizations[0].referralInvoices = [of(1, Number.MAX_SAFE_INTEGER - 1), of(2, 1)];
    await importDocument(url, document);
    document.organizations[0].referralInvoices = [of(1, Number.MAX_SAFE_INTEGER), of(2, 2), of(3, -2)];
    const { counts } = await importDocument(url, document);
    expect(counts.referralInvoices).toMatchObject({ inserted: 1, updated: 2 });
  });

  it('records each rename of a member with the old and the new name, and no other change', async () => {
    const document = smallDocument();
    await importDocument(url, document);
    const [member] = document.organizations[0].members;
    const from = member.name;
    member.name = 'Renamed Person';
    await importDocument(url, document);
    member.title = 'Partner';
    await importDocument(url, document);
    expect(await query(url, `select person_id, detail, names from audit_entry where action = 'member.change'`)).toEqual(
      [
        {
          person_id: null,
          detail: { memberId: member.userId, changed: ['name'] },
          names: { member: 'Renamed Person', renamed: { from, to: 'Renamed Person' } },
        },
      ],
    );
  });

  it('writes a backfill as org_api_backfill, which triggers distinguish from the platform', async () => {
    await query(
      url,
      `create table writer (name text); grant insert on writer to public;
       create function note_writer() returns trigger language plpgsql as $$ begin insert into writer
         values (current_user); return null; end $$;
       create trigger note_writer after insert on client_grant for each statement execute function note_writer()`,
    );
    await importDocument(url, smallDocument(), { backfill: true });
    expect(await query(url, 'select name from writer')).toEqual([{ name: 'org_api_backfill' }]);
  });

  it('can run twice at once: the second waits and finds nothing to change', async () => {
    const results = await Promise.all([1, 2, 3].map(() => importDocument(url, smallDocument())));
    expect(results.map((result) => result.counts.grants?.inserted).sort()).toEqual([0, 0, 3]);
  });
});

describe.each(['us', 'ca'] as const)('the fixture %s.json', (region) => {
  it('is imported, moved to today or not, and changes nothing the second time', async () => {
    const text = await readFile(fixturePath(`${region}.json`));
    for (const today of [false, true]) {
      const fresh = await createTestDatabase();
      const first = await importText(fresh.ownerUrl, text, { region, today });
      expect(first.organizations).toHaveLength(4);
      expect(first.organizations.every((organization) => organization.ownerUserId !== null)).toBe(true);
      const before = await rowVersions(fresh.ownerUrl);
      await importText(fresh.ownerUrl, text, { region, today });
      expect(await rowVersions(fresh.ownerUrl)).toEqual(before);
      await fresh.drop();
    }
  });
});
