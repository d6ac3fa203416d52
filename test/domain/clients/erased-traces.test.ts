/** After an erasure, no byte of the family is left in the database, Redis, Temporal or a log. */
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Redis } from 'ioredis';
import { expect, inject, it, vi } from 'vitest';
import type { ErasureCertificate } from '#domain/clients/erase-family.ts';
import { changeKey } from '#domain/keys/change.ts';
import { readLedger } from '#domain/webhooks/ledger.ts';
import { childEnvironment } from '#test/child-environment.ts';
import { unescaped } from '#test/http-visitor.ts';
import { startReceiver } from '#test/receiver.ts';
import { type Ran, runCommand } from '#test/run-command.ts';
import { startTestApi } from '#test/setup.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { dumpTables, listTraces, readServerLog, readTemporalStore } from '#test/traces.ts';
import { startTestWorker } from '#test/worker.ts';
import { setupConsole } from '../../console/setup.ts';
import { ids, smallDocument } from '../../import/document.ts';
import { connectAs, verify } from './erasures.ts';

const timeout = 300_000;
const patient = { timeout: 60_000, interval: 20 };
const name = 'Quillfeather-Žyx family';
const familyId = 'beefcafe-0000-4abc-8000-1234567890ab';
const idBytes = Buffer.from(familyId.replaceAll('-', ''), 'hex');
const spellings = [familyId, familyId.toUpperCase(), familyId.replaceAll('-', ''), idBytes.toString('base64')];

/** The name and the id as they may be written; the id also as its bytes. */
const traces = [
  idBytes.toString('latin1'),
  ...[
    name,
    name.toUpperCase(),
    name.normalize('NFD'),
    name.slice(1, 11),
    name.replace('Ž', '\\u017d'),
    ...spellings.map((spelling) => spelling.replace(/=+$/, '')),
  ].flatMap(listTraces),
].map((trace) => trace.toLowerCase());
function tracesIn(text: string): string[] {
  const folded = text.toLowerCase();
  return traces.filter((trace) => folded.includes(trace));
}
const placesIn = (tables: Map<string, string>) =>
  [...tables].flatMap(([table, text]) => (tracesIn(text).length > 0 ? [table] : [])).sort();

async function readRedis(): Promise<string> {
  const redis = new Redis(inject('redisUrl'));
  const keys = await redis.keys('*');
  const values = await Promise.all(keys.map((key) => redis.dumpBuffer(key)));
  redis.disconnect();
  return [...keys, ...values.map((value) => value?.toString('latin1') ?? '')].join('\n');
}

/**
 * Imports the family into another organization: rejected, tried, and carried out. Without `--list`,
 * which prints ids for the reader.
 */
async function importFamily(file: string, importFile: (...flags: string[]) => Promise<Ran>): Promise<Ran[]> {
  const document = JSON.parse(JSON.stringify(smallDocument()).replaceAll(ids.families[0], familyId));
  document.organizations[0].families[0].name = name;
  const broken = structuredClone(document);
  broken.organizations[0].families.push({ id: familyId, name: `${name}\0` });
  await writeFile(file, JSON.stringify(broken));
  const rejected = await importFile();
  await writeFile(file, JSON.stringify(document));
  const ran = [rejected, await importFile('--dry-run'), await importFile('--json')];
  expect(ran.map(({ code, stderr }) => [code, code === 0 ? '' : stderr])).toEqual([
    [1, expect.stringContaining('families[3]')],
    [0, ''],
    [0, ''],
  ]);
  return ran;
}

it('erases a family everywhere, while answers of receivers are in flight', { timeout }, async () => {
  const installation = await setupConsole();
  const { owner, database, make, logLines } = installation;
  const api = await startTestApi(database, {}, logLines);
  const query = async (text: string, values: unknown[] = []) => (await owner.pool.query(text, values)).rows;
  const receiver = await startReceiver();
  const held: (() => void)[] = [];
  let isHeld = false;
  // The receiver writes the family into each answer, also to events of another family.
  receiver.respond = (response) => {
    const end = () => response.writeHead(200).end(JSON.stringify({ saved: name, ids: spellings }));
    if (isHeld) held.push(end);
    else end();
  };
  const person = await installation.enrol({});
  const { orgId, personId: userId } = person;
  const webhook = await make.webhook({
    orgId,
    url: `${receiver.url}/hook`,
    description: `Only for ${name.toUpperCase()}`,
  });
  await query(`select record_orgctl_entry($1, null, 'webhook.pause', jsonb_build_object('webhookId', $2::text))`, [
    orgId,
    webhook.id,
  ]);
  const { logLines: workerLines } = await startTestWorker(database);
  const file = path.join(temporaryFolder(), 'organizations.json');
  const importFile = async (...flags: string[]) => {
    const env = { ...childEnvironment, REGION: 'us', DATABASE_URL: database.ownerUrl };
    return runCommand(['apps/import/main.ts', ...flags, file], env);
  };
  const imported = await importFamily(file, importFile);
  const call = await connectAs(database.urls.platform);
  await call('select platform.put_family($1, $2, $3)', [orgId, familyId, name]);
  const other = await make.family({ orgId, name: 'Quill family' });
  const [grant, otherGrant, late] = [randomUUID(), randomUUID(), randomUUID()];
  await call(`select platform.start_grant($1, $2, 'attorney', $3, $4)`, [orgId, grant, userId, familyId]);
  await call(`select platform.start_grant($1, $2, 'neutral', $3, $4)`, [orgId, otherGrant, userId, other]);
  await call('select platform.put_plan($1, 3)', [orgId]);
  await call('select platform.give_seat($1, $2, $3)', [orgId, randomUUID(), grant]);
  await query(
    `insert into family_day select $1, $2, (now() at time zone 'UTC')::date - n, 1, 1, 1, 1, 1, 1
     from generate_series(1, 120) n`,
    [orgId, familyId],
  );
  const { id: keyId, key } = await make.apiKey({ creator: { orgId, userId, roleId: null }, label: `For ${name}` });
  await changeKey(owner, { organizationId: orgId, keyId, by: 'orgctl', label: 'For a family' });
  expect(await (await api.get(`/v1/orgs/${orgId}/clients`, { key })).text()).toContain(name);
  const browser = installation.http(person);
  for (const page of ['', `/${grant}`, `?q=${encodeURIComponent(name)}`, `?q=${familyId}&state=none`])
    expect(unescaped((await browser.get(`/o/${orgId}/clients${page}`)).text)).toContain(
      page.includes(familyId) ? familyId : name,
    );
  await browser.get(`/o/${orgId}/clients/${familyId}`);
  const countOpen = async () => (await query('select from delivery where settled_at is null')).length;
  await vi.waitFor(async () => expect(await countOpen()).toBe(0), patient);
  await query('analyze');
  const planted = placesIn(await dumpTables(installation, { statistics: true }));
  expect(planted).toEqual(
    expect.arrayContaining([
      'pg_catalog.pg_statistic',
      'public.client_grant',
      'public.delivery_attempt',
      'public.family',
      'public.family_day',
      'public.seat',
      'public.webhook',
    ]),
  );
  expect(planted.some((table) => table.startsWith('public.audit_entry_'))).toBe(true);

  // What PostgreSQL rejects would be in its log, as the row and as the statement.
  const duplicate = `insert into family values ('${orgId}', '${familyId}', '${name}')`;
  await expect(query(duplicate)).rejects.toMatchObject({ code: '23505' });

  // One answer to an event of the other family is on its way while the family is erased.
  isHeld = true;
  await call('select platform.end_grant($1, $2)', [orgId, otherGrant]);
  await vi.waitFor(() => expect(held).toHaveLength(1), patient);
  const erase = () => call('select platform.erase_family($1, $2)', [familyId, 'case-17']);
  const certificates = (await erase()) as ErasureCertificate[];
  expect(certificates).toHaveLength(2);
  expect(certificates.filter(({ organizationId }) => organizationId === orgId)).toMatchObject([
    {
      organizationId: orgId,
      erasedBy: 'platform',
      reference: 'case-17',
      completedAt: null,
      mentions: [{ place: 'webhook', id: webhook.id }],
      counts: {
        names: 1,
        grants: 1,
        grantsEnded: 1,
        grantsWithdrawn: 0,
        seats: 1,
        familyDaysDeleted: 30,
        familyDaysUnnamed: 90,
        responses: 3,
        deliveriesInFlight: 2,
        entriesWithoutNames: 4,
      },
    },
  ]);
  expect(await erase()).toEqual(certificates);
  await query(`update webhook set description = '' where id = $1`, [webhook.id]);

  // What comes late does not bring it back.
  const erased = { constraint: 'family_erased', code: '23514' };
  await expect(call('select platform.put_family($1, $2, $3)', [orgId, familyId, name])).rejects.toMatchObject(erased);
  await expect(
    call(`select platform.start_grant($1, $2, 'neutral', $3, $4)`, [orgId, late, userId, familyId]),
  ).rejects.toMatchObject(erased);
  await expect(query('insert into family values ($1, $2, $3)', [orgId, familyId, name])).rejects.toMatchObject(erased);
  expect(tracesIn(JSON.stringify(certificates))).toEqual([]);
  const repeated = await importFile('--complete', '--ending', '0');
  expect([repeated.code, repeated.stderr]).toEqual([
    1,
    expect.stringContaining('is the id of a family that was erased'),
  ]);

  // Three answers arrive after the erasure. They are erased, and only then is it completed.
  await vi.waitFor(async () => {
    for (const end of held.splice(0)) end();
    expect(await countOpen()).toBe(0);
  }, patient);
  expect(tracesIn((await dumpTables(installation)).get('public.delivery_attempt') ?? '')).not.toEqual([]);
  await query('select repeat_erasures()');
  expect(await query('select completed_at from erasure')).toEqual([{ completed_at: null }, { completed_at: null }]);
  await query(`update delivery set settled_at = settled_at - interval '6 minutes'`);
  await query(`update erasure set erased_at = erased_at - interval '6 minutes'`);
  await query('select repeat_erasures()');
  expect(await erase()).toMatchObject([{ completedAt: expect.any(String) }, { completedAt: expect.any(String) }]);

  const store = await readTemporalStore(installation);
  const places = {
    tables: placesIn(await dumpTables(installation, { statistics: true })),
    redis: tracesIn(await readRedis()),
    temporal: tracesIn(store),
    logs: tracesIn([...logLines, ...workerLines].join('\n')),
    imports: tracesIn([...imported, repeated].map(({ stdout, stderr }) => stdout + stderr).join('\n')),
    serverLog: tracesIn(await readServerLog(installation)),
  };
  expect(places).toEqual({ tables: [], redis: [], temporal: [], logs: [], imports: [], serverLog: [] });
  // All of them wrote: the webhook is in the workflows, and each process in its log.
  expect(store).toContain(webhook.id);
  const writers = [...logLines, ...workerLines].map((line) => JSON.parse(line).app);
  expect([...new Set(writers)].sort()).toEqual(['api', 'console', 'worker']);
  const roster = await (await api.get(`/v1/orgs/${orgId}/clients`, { key })).json();
  expect(roster).toMatchObject({
    clients: [{ grantId: grant, family: 'Erased family', status: 'ended' }, { family: 'Quill family' }],
  });
  expect(await verify(installation)).toMatchObject({ faults: [] });
  expect(await readLedger(owner)).toMatchObject({ difference: 0, missing: 0, surplus: 0, unexplained: 0 });
});
