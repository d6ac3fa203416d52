import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '#test/database.ts';
import { InvalidDocumentError } from '../../apps/import/document/problems.ts';
import type { ImportResult } from '../../apps/import/document/result.ts';
import { generateSample } from '../../apps/import/generate/sample.ts';
import {
  grant,
  ids,
  importDocument,
  type Loose,
  query,
  rejection,
  rowVersions,
  smallDocument,
  uuid,
} from './document.ts';
import { changeDocument, withStoredLists } from './random-documents.ts';

let database: TestDatabase;
let url: string;
beforeEach(async () => {
  database = await createTestDatabase();
  url = database.ownerUrl;
});
afterEach(() => database.drop());

/** Adds two webhooks to each organization, one of them for some events only. */
async function addWebhooks(): Promise<void> {
  await query(
    url,
    `insert into webhook (organization_id, url, event_types, number)
     select o.id, 'https://' || n || '.example.org/', case n when 1 then array['client.started', 'client.ended',
       'seat.given', 'seat.ended'] else array['client.ended'] end, n
     from organization o cross join generate_series(1, 2) n`,
  );
}

const sum = (counts: Loose) => Object.values<number>(counts ?? {}).reduce((total, count) => total + count, 0);
const outcome = (running: Promise<ImportResult>): Promise<ImportResult | InvalidDocumentError> =>
  running.catch((error: unknown) => {
    if (error instanceof InvalidDocumentError) return error;
    throw error;
  });

/** Returns events and deliveries by type, and by organization, as they are in the database. */
async function countEvents(): Promise<Record<string, number>> {
  const rows = await query(
    url,
    `select organization_id, type, count(*)::integer as events, sum(delivery_count)::integer as deliveries
     from event group by 1, 2`,
  );
  return Object.fromEntries(
    rows.flatMap((row) => [
      [`${row.organization_id} ${row.type} events`, row.events],
      [`${row.organization_id} ${row.type} deliveries`, row.deliveries],
    ]),
  );
}

function listEvents(result: ImportResult): Record<string, number> {
  const all = result.organizations.flatMap(({ id, events }) =>
    Object.entries(events ?? {}).flatMap(([type, { events: count, deliveries }]) => [
      [`${id} ${type} events`, count] as const,
      [`${id} ${type} deliveries`, deliveries] as const,
    ]),
  );
  return Object.fromEntries(all.filter(([, count]) => count > 0));
}

function subtract(after: Record<string, number>, before: Record<string, number>): Record<string, number> {
  const changes = Object.entries(after).map(([key, count]) => [key, count - (before[key] ?? 0)] as const);
  return Object.fromEntries(changes.filter(([, count]) => count > 0));
}

describe('a dry run', () => {
  it('equals the import that follows in every count, event and delivery: 40 random documents, half complete', {
    timeout: 400_000, // 80 imports
  }, async () => {
    const options = {
      region: 'us',
      asOf: '2026-11-20',
      organizations: 2,
      familiesPerOrganization: 14,
      seed: 1,
    } as const;
    let stored = JSON.parse(await text(Readable.from(generateSample({ ...options, daysPerFamily: 2 }))));
    for (const { seatPlan } of stored.organizations) seatPlan.invoiced = 500;
    await importDocument(url, stored);
    await addWebhooks();
    let [imported, ended, created] = [0, 0, 0];
    for (let seed = 1; seed <= 40; seed += 1) {
      const complete = seed % 2 === 0;
      const document = changeDocument(stored, seed);
      const dry = await outcome(importDocument(url, document, { dryRun: true, complete }));
      const before = await countEvents();
      const ending = dry instanceof InvalidDocumentError ? {} : { ending: sum(dry.ended) };
      const real = await outcome(importDocument(url, document, { complete, ...(complete && ending) }));
      if (dry instanceof InvalidDocumentError || real instanceof InvalidDocumentError) {
        expect(real, `document ${seed}`).toEqual(dry);
        continue;
      }
      const { counts, organizations } = dry;
      const changes = organizations.map((one) => one.changes);
      expect({ seed, counts, changes, ended: dry.ended }).toEqual({
        seed,
        counts: real.counts,
        changes: real.organizations.map((one) => one.changes),
        ended: real.ended,
      });
      const events = subtract(await countEvents(), before);
      expect({ seed, events: listEvents(dry) }).toEqual({ seed, events });
      [imported, ended, created] = [imported + 1, ended + sum(dry.ended), created + sum(events)];
      stored = withStoredLists(document, stored);
    }
    const never = `select count(*)::integer as withdrawn from client_grant where status = 'withdrawn'`;
    const [{ withdrawn }] = await query(url, never);
    const enough = imported >= 20 && ended > 50 && created > 100 && withdrawn > 2;
    expect(enough, JSON.stringify({ imported, ended, created, withdrawn })).toBe(true);
  });

  it('writes nothing: no row gets a new version, and PostgreSQL rejects a write of any table', async () => {
    await importDocument(url, smallDocument());
    const before = await rowVersions(url);
    const document = smallDocument();
    document.organizations[0].name = 'Renamed';
    const { counts, organizations } = await importDocument(url, document, { dryRun: true });
    expect(counts.organizations).toMatchObject({ updated: 1 });
    expect(organizations).toMatchObject([{ changes: { organizations: { updated: 1 } }, events: {} }]);
    expect(await rowVersions(url)).toEqual(before);

    // A function that the comparison calls tries to write.
    await query(
      url,
      `create function write_in_passing(text) returns boolean language plpgsql as $$
         begin insert into organization (name, slug, kind, status) values ('x', 'x', 'other', 'x'); return true; end $$;
       alter table organization rename to organization_stored;
       create view organization as select * from organization_stored where write_in_passing(name)`,
    );
    await expect(importDocument(url, document, { dryRun: true })).rejects.toMatchObject({ code: '25006' });
  });

  it('waits for no import and stops none', async () => {
    const other = new pg.Client({ connectionString: url });
    await other.connect();
    await other.query('begin; select lock_import()');
    await expect(importDocument(url, smallDocument(), { dryRun: true })).resolves.toMatchObject({ isDryRun: true });
    await other.end();
  });

  it('counts the end of a seat that the document leaves out, when its access ends', async () => {
    await importDocument(url, smallDocument());
    await addWebhooks();
    const document = smallDocument();
    const [o] = document.organizations;
    o.grants[0] = grant(0, { endsAt: '2026-11-01T00:00:00.000Z', endReason: 'ended' });
    o.seats.shift();
    const { events } = await importDocument(url, document, { dryRun: true });
    const before = await countEvents();
    await importDocument(url, document);
    expect(events).toEqual({
      'client.ended': { events: 1, deliveries: 2 },
      'seat.ended': { events: 1, deliveries: 1 },
    });
    expect(Object.values(subtract(await countEvents(), before)).sort()).toEqual([1, 1, 1, 2]);
  });

  it('lists the first changes with ids and columns, and without a value', async () => {
    await importDocument(url, smallDocument());
    const document = smallDocument();
    const [o] = document.organizations;
    o.grants[0] = grant(0, { endsAt: '2026-11-01T00:00:00.000Z', endReason: 'ended' });
    o.seats.shift();
    o.families[0].name = 'Secretname';
    o.families.push({ id: uuid('c', 9), name: 'Hidden' });
    const { list } = await importDocument(url, document, { dryRun: true, list: 3 });
    expect(list).toEqual([
      `update family ${ids.families[0]}: name`,
      `insert family ${uuid('c', 9)}`,
      `update grant ${ids.grants[0]}: ends_at, status, end_reason`,
    ]);
    expect((await importDocument(url, document, { dryRun: true, list: 1 })).list).toHaveLength(1);
  });
});

describe('a complete document', () => {
  const complete = { complete: true } as const;

  it('ends what its lists leave out: access with its seat, members, subscriptions and codes, and deletes nothing', async () => {
    await importDocument(url, smallDocument());
    await addWebhooks();
    const document = smallDocument();
    const [o] = document.organizations;
    Object.assign(o, { grants: [], seats: [], referralCodes: [], families: [], familyDays: undefined });
    o.members.splice(0, 1);
    o.seatPlan.subscriptions = [];
    const { ended, counts } = await importDocument(url, document, { ...complete, ending: 6 });
    expect(ended).toEqual({ members: 1, subscriptions: 1, grants: 2, seats: 1, referralCodes: 1 });
    expect(counts).toMatchObject({ families: { removed: 0 }, grants: { updated: 2 }, seats: { updated: 1 } });
    const [row] = await query(
      url,
      `select (select array_agg(status || ' ' || end_reason order by id) from client_grant) as grants,
         (select array_agg(end_reason order by id) from seat) as seats,
         (select array_agg(status order by person_id) from membership) as members,
         (select array_agg(status) from subscription) as subscriptions,
         (select array_agg(active) from referral_code) as codes, (select count(*)::integer from family) as families`,
    );
    expect(row).toEqual({
      grants: ['ended ended', 'ended moved', 'ended ended'],
      seats: ['access_ended', 'access_ended'],
      members: ['left', 'active'],
      subscriptions: ['canceled'],
      codes: [false],
      families: 3,
    });
    const before = await rowVersions(url);
    const again = await importDocument(url, document, { ...complete, ending: 0 });
    expect(sum(again.ended)).toBe(0);
    expect(await rowVersions(url)).toEqual(before);
  });

  it('leaves a list alone that is absent, and other organizations', async () => {
    await importDocument(url, smallDocument());
    const before = await rowVersions(url);
    const { id, name, slug, kind, status, createdAt } = smallDocument().organizations[0];
    const only = { region: 'us', asOf: '2026-11-20', organizations: [{ id, name, slug, kind, status, createdAt }] };
    await importDocument(url, only, { ...complete, ending: 0 });
    await importDocument(url, { ...only, organizations: [] }, { ...complete, ending: 0 });
    expect(await rowVersions(url)).toEqual(before);
  });

  it('is rejected when it ends another number than expected, as a truncated one does', async () => {
    await importDocument(url, smallDocument());
    const document = smallDocument();
    document.organizations[0].grants.splice(2, 1);
    const { problems } = await rejection(importDocument(url, document, { ...complete, ending: 0 }));
    expect(problems).toEqual([{ path: '$', problem: 'would end 1 object, and not the 0 that --ending names' }]);
  });

  it('is rejected when it assigns a seat on a grant that it leaves out, or leaves out the plan of a seat', async () => {
    await importDocument(url, smallDocument());
    const document = smallDocument();
    document.organizations[0].grants.splice(0, 1);
    const { problems } = await rejection(importDocument(url, document, { ...complete, dryRun: true }));
    expect(problems).toEqual([
      { path: '$.organizations[0].seats[0]', problem: 'is assigned, but its grant has ended' },
    ]);
    const unpaid = smallDocument();
    Object.assign(unpaid.organizations[0].seatPlan, { invoiced: 0, subscriptions: [] });
    expect((await rejection(importDocument(url, unpaid, { ...complete, dryRun: true }))).problems).toMatchObject([
      { path: '$.organizations[0].seats' },
    ]);
  });
});
