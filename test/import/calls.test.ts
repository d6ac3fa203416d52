import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { platformViews } from '#domain/contract/platform.ts';
import { createTestDatabase } from '#test/database.ts';
import { generateCalls, generateSample, type SampleOptions } from '../../apps/import/generate/sample.ts';
import { importText } from './document.ts';

const options: SampleOptions = {
  region: 'us',
  organizations: 4,
  familiesPerOrganization: 30,
  seed: 'Calls & é',
  asOf: new Date().toISOString().slice(0, 10),
};

async function connect(connectionString: string) {
  const client = new pg.Client({ connectionString });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

async function createRegion() {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  return { database, client: await connect(database.urls.platform), owner: await connect(database.ownerUrl) };
}

it.each([{}, { familiesPerOrganization: 3, grantsPerFamily: 3, daysPerFamily: 110 }, { familiesPerOrganization: 0 }])(
  'the generated calls leave the rows that the import of the document leaves: %o',
  async (others) => {
    const imported = await createRegion();
    const called = await createRegion();
    await importText(imported.database.ownerUrl, await text(Readable.from(generateSample({ ...options, ...others }))));
    const calls = await text(Readable.from(generateCalls({ ...options, ...others })));
    await called.client.query(calls);
    const views = Object.keys(platformViews).filter((view) => view !== 'event');
    for (const view of views) {
      const list = async ({ client }: typeof called) =>
        (await client.query(`select * from platform.${view} v order by v::text`)).rows;
      expect([view, await list(called)]).toEqual([view, await list(imported)]);
    }
    const listDays = async ({ owner }: typeof called) =>
      (await owner.query('select * from family_day order by family_id, day')).rows;
    expect(await listDays(called)).toEqual(await listDays(imported));
    expect(calls.match(/^begin;$/gm)).toHaveLength(options.organizations);
    // Repeated, the same calls change nothing.
    const returned = [await called.client.query<Record<string, string>>(calls)].flat().flatMap(({ rows }) => rows);
    const repeated = new Map(Object.entries(Object.groupBy(returned, (row) => Object.values(row)[0] as string)));
    expect([...repeated.keys()]).toEqual(['unchanged']);
  },
);
