/** Documents with access that lies ahead. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '#test/database.ts';
import type { ImportOptions } from '../../apps/import/document/import-file.ts';
import { resultText } from '../../apps/import/result-text.ts';
import { grant, ids, importDocument, type Loose, query, rejection, rowVersions, smallDocument } from './document.ts';

let database: TestDatabase;
let url: string;
beforeEach(async () => {
  database = await createTestDatabase();
  url = database.ownerUrl;
});
afterEach(() => database.drop());

const future = '2998-01-01T00:00:00.000Z';
const past = '2026-10-01T00:00:00.000Z';

/** The small document with a fourth grant, which lies ahead. */
function documentWith(other: object = {}): Loose {
  const document = smallDocument();
  document.organizations[0].grants.push({ ...grant(0), id, familyId: ids.families[2], since: future, ...other });
  return document;
}
const id = 'd0000000-0000-4000-8000-000000000009';
const seat = (other: object = {}) => ({
  id: 'e0000000-0000-4000-8000-000000000009',
  grantId: id,
  givenAt: '2026-10-02T00:00:00.000Z',
  endedAt: null,
  reason: null,
  ...other,
});

/** Imports, after a dry run that must say the same; returns the types of the new events. */
async function importAsPlanned(document: Loose, options: Partial<ImportOptions> = {}): Promise<string[]> {
  const listEvents = async () => (await query(url, 'select id, type from event order by id')) as Loose[];
  const before = await listEvents();
  const dry = await importDocument(url, document, { ...options, dryRun: true });
  const real = await importDocument(url, document, options);
  const created = (await listEvents()).slice(before.length).map(({ type }) => type);
  expect([dry.counts, dry.ended]).toEqual([real.counts, real.ended]);
  const planned = Object.entries<Loose>(dry.organizations[0]?.events ?? {});
  expect(planned.flatMap(([type, { events }]) => new Array(events).fill(type)).sort()).toEqual(created.toSorted());
  return created;
}

it('an import and its dry run say how much access lies ahead, and when it begins', async () => {
  const later = { ...documentWith() };
  later.organizations[0].grants.push({
    ...grant(0),
    id: 'd0000000-0000-4000-8000-00000000000a',
    since: '2999-01-01T00:00:00.000Z',
  });
  for (const options of [{ dryRun: true }, {}]) {
    const result = await importDocument(url, later, options);
    expect(result.ahead).toEqual({ grants: 2, beginsOn: future });
    expect(resultText(result)).toContain(`  access ahead          2 grants, the first begins on ${future}\n`);
  }
  expect((await importDocument(url, smallDocument())).ahead).toBeUndefined();
});

const readStatus = async () => (await query(url, 'select status, since from client_grant where id = $1', [id]))[0];
const findProblems = async (document: Loose, options: Partial<ImportOptions> = {}) =>
  (await rejection(importDocument(url, document, options))).problems;
/** Lets the time of the grant come, before a worker has written it. */
const comes = () => query(url, `update client_grant set since = now() where id = $1`, [id]);

it('a grant that lies ahead is scheduled, moves, and begins when the document says that it has', async () => {
  await importAsPlanned(smallDocument());
  expect(await importAsPlanned(documentWith())).toEqual([]);
  expect(await readStatus()).toEqual({ status: 'scheduled', since: new Date(future) });
  const before = await rowVersions(url);
  expect(await importAsPlanned(documentWith())).toEqual([]);
  expect(await rowVersions(url)).toEqual(before);
  const later = '2998-02-01T00:00:00.000Z';
  expect(await importAsPlanned(documentWith({ since: later }))).toEqual([]);
  expect(await readStatus()).toEqual({ status: 'scheduled', since: new Date(later) });
  expect(await importAsPlanned(documentWith({ since: past }))).toEqual(['client.started']);
  expect(await readStatus()).toEqual({ status: 'active', since: new Date(past) });
  expect(await findProblems(documentWith())).toEqual([
    { path: '$.organizations[0].grants[3].since', problem: 'lies ahead, but the grant has begun in the database' },
  ]);
});

it('a grant that the document ends before it begins is withdrawn, and never comes back', async () => {
  await importAsPlanned(documentWith());
  const withdrawn = documentWith({ endsAt: future, endReason: 'ended' });
  expect(await importAsPlanned(withdrawn)).toEqual([]);
  expect(await readStatus()).toMatchObject({ status: 'withdrawn' });
  const before = await rowVersions(url);
  expect(await importAsPlanned(withdrawn)).toEqual([]);
  expect(await importAsPlanned(documentWith({ since: past, endsAt: past, endReason: 'ended' }))).toEqual([]);
  expect(await rowVersions(url)).toEqual(before);
  expect(await findProblems(documentWith({ since: past }))).toEqual([
    {
      path: '$.organizations[0].grants[3].endReason',
      problem:
        'the grant was withdrawn in the database and cannot become active again; access given again is a new grant',
    },
  ]);
});

it('a grant that the document withdraws before it brought it is stored, so that no late document begins it', async () => {
  expect(await importAsPlanned(smallDocument())).not.toEqual([]);
  expect(await importAsPlanned(documentWith({ endsAt: future, endReason: 'moved' }))).toEqual([]);
  expect(await readStatus()).toMatchObject({ status: 'withdrawn' });
});

it('a seat on a grant that has not begun is a problem', async () => {
  const document = documentWith();
  document.organizations[0].seats.push(seat());
  const path = '$.organizations[0].seats[2]';
  expect(await findProblems(document)).toEqual([{ path, problem: 'is assigned, but its grant has not begun' }]);
  document.organizations[0].seats[2] = seat({ endedAt: '2026-10-03T00:00:00.000Z', reason: 'access_ended' });
  expect(await findProblems(document)).toEqual([{ path, problem: 'was assigned, but its grant has not begun' }]);
  await importDocument(url, documentWith());
  document.organizations[0].grants.pop();
  document.organizations[0].seats[2] = seat();
  expect(await findProblems(document)).toEqual([{ path, problem: 'is assigned, but its grant has not begun' }]);
  document.organizations[0].grants.push(
    documentWith({ endsAt: future, endReason: 'ended' }).organizations[0].grants[3],
  );
  expect(await findProblems(document)).toEqual([{ path, problem: 'is assigned, but its grant was withdrawn' }]);
});

it('a complete document withdraws what it leaves out and has not begun', async () => {
  await importAsPlanned(documentWith());
  expect(await importAsPlanned(smallDocument(), { complete: true, ending: 1 })).toEqual([]);
  expect(await readStatus()).toMatchObject({ status: 'withdrawn' });
  expect(await importAsPlanned(smallDocument(), { complete: true, ending: 0 })).toEqual([]);
});

it('a grant whose time has come has begun, also before the worker has written it', async () => {
  await importAsPlanned(documentWith());
  await comes();
  expect(await findProblems(documentWith())).toMatchObject([{ path: '$.organizations[0].grants[3].since' }]);
  const complete = { complete: true, ending: 1 };
  expect(await importAsPlanned(smallDocument(), complete)).toEqual(['client.started', 'client.ended']);
});

it('a seat of a grant whose time has come begins it, in the document or not', async () => {
  await importAsPlanned(documentWith());
  await comes();
  const document = smallDocument();
  document.organizations[0].seats.push(seat());
  expect(await importAsPlanned(document)).toEqual(['client.started', 'seat.given']);
  expect(await readStatus()).toMatchObject({ status: 'active' });
});

it('a grant that began and ended since the last document has both events', async () => {
  await importAsPlanned(documentWith());
  const document = documentWith({ since: past, endsAt: '2026-10-02T00:00:00.000Z', endReason: 'moved' });
  expect(await importAsPlanned(document)).toEqual(['client.started', 'client.ended']);
});
