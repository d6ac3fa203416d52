/** After an erasure, no byte of the family is left in the database, Redis, Temporal or a log. */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { expect, inject, it, onTestFinished, vi } from 'vitest';
import { verifyAuditLog } from '#domain/audit-log/verify.ts';
import type { ErasureCertificate } from '#domain/clients/erase-family.ts';
import { readLedger } from '#domain/webhooks/ledger.ts';
import { startReceiver } from '#test/receiver.ts';
import { setup, setupDatabase, type TestInstallation } from '#test/setup.ts';
import { openTestTemporal } from '#test/temporal.ts';
import { dumpTables, listTraces } from '#test/traces.ts';
import { startTestWorker } from '#test/worker.ts';
import { importDocument, rejection, smallDocument } from '../../import/document.ts';

const timeout = 120_000;
const patient = { timeout: 60_000, interval: 20 };
const name = 'Quillfeather-Žyx family';
const familyId = 'beefcafe-0000-4abc-8000-1234567890ab';
const idBytes = Buffer.from(familyId.replaceAll('-', ''), 'hex');

/** The name as it may be written, and the id in four spellings. */
const traces = [
  name,
  name.toUpperCase(),
  name.normalize('NFD'),
  name.slice(1, 11),
  name.replace('Ž', '\\u017d'),
  familyId,
  familyId.replaceAll('-', ''),
  idBytes.toString('base64').slice(0, 20),
].flatMap(listTraces);
const tracesIn = (text: string) => traces.filter((trace) => text.toLowerCase().includes(trace.toLowerCase()));
const placesIn = (tables: Map<string, string>) =>
  [...tables].flatMap(([table, text]) => (tracesIn(text).length > 0 ? [table] : [])).sort();

async function readRedis(): Promise<string> {
  const redis = new Redis(inject('redisUrl'));
  const keys = await redis.keys('*');
  const values = await Promise.all(keys.map((key) => redis.dumpBuffer(key)));
  redis.disconnect();
  return [...keys, ...values.map((value) => value?.toString('latin1') ?? '')].join('\n');
}

async function readHistories(): Promise<string> {
  const client = await openTestTemporal();
  const histories: string[] = [];
  for await (const execution of client.workflow.list()) {
    const { workflowId, runId, memo, searchAttributes } = execution;
    const history = await client.workflow.getHandle(workflowId, runId).fetchHistory();
    histories.push(JSON.stringify([workflowId, memo, searchAttributes, history]));
    for (const { data } of history.events?.flatMap((event) => listPayloads(event)) ?? [])
      if (data) histories.push(Buffer.from(data).toString('utf8'));
  }
  return histories.join('\n');
}

async function readServerLog({ owner }: TestInstallation): Promise<string> {
  const { rows } = await owner.pool.query(`select current_setting('data_directory') as folder`);
  return readFile(path.join(rows[0].folder, '../../postgres.log'), 'utf8');
}

/** Returns the payloads of an event of a history, at any depth. */
function listPayloads(value: unknown): { data?: Uint8Array }[] {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return [];
  if ('data' in value && value.data instanceof Uint8Array) return [value as { data: Uint8Array }];
  return Object.values(value).flatMap(listPayloads);
}

async function connectAs(url: string): Promise<(text: string, values?: unknown[]) => Promise<unknown>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  return async (text, values = []) => Object.values((await client.query(text, values)).rows[0] ?? {})[0];
}

async function verify({ owner }: Pick<TestInstallation, 'owner'>) {
  await vi.waitFor(async () => {
    const { rows } = await owner.pool.query('select is_all_done from append_audit_chain(1000)');
    expect(rows).toEqual([{ is_all_done: true }]);
  }, patient);
  return verifyAuditLog(owner, { organizationId: null, month: null });
}

it('erases a family everywhere, while answers of receivers are in flight', { timeout }, async () => {
  const installation = await setup({ LOG_LEVEL: 'trace' });
  const { owner, database, make, api, logLines } = installation;
  const query = async (text: string, values: unknown[] = []) => (await owner.pool.query(text, values)).rows;
  const receiver = await startReceiver();
  const held: (() => void)[] = [];
  let isHeld = false;
  // The receiver writes the family into each answer, also to events of another family.
  receiver.respond = (response) => {
    const end = () => response.writeHead(200).end(`{"saved":${JSON.stringify(name)},"id":"${familyId.toUpperCase()}"}`);
    if (isHeld) held.push(end);
    else end();
  };
  const creator = await make.member({ signedIn: true });
  const { orgId, userId } = creator;
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
  const { key } = await make.apiKey({ creator });
  expect(await (await api.get(`/v1/orgs/${orgId}/clients`, { key })).text()).toContain(name);
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
  expect(certificates).toMatchObject([
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
        entriesWithoutNames: 2,
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

  // Three answers arrive after the erasure. They are erased, and only then is it completed.
  await vi.waitFor(async () => {
    for (const end of held.splice(0)) end();
    expect(await countOpen()).toBe(0);
  }, patient);
  expect(tracesIn((await dumpTables(installation)).get('public.delivery_attempt') ?? '')).not.toEqual([]);
  await query('select repeat_erasures()');
  expect(await query('select completed_at from erasure')).toEqual([{ completed_at: null }]);
  await query(`update delivery set settled_at = settled_at - interval '6 minutes'`);
  await query(`update erasure set erased_at = erased_at - interval '6 minutes'`);
  await query('select repeat_erasures()');
  expect(await erase()).toMatchObject([{ completedAt: expect.any(String) }]);

  const places = {
    tables: placesIn(await dumpTables(installation, { statistics: true })),
    redis: tracesIn(await readRedis()),
    temporal: tracesIn(await readHistories()),
    logs: tracesIn([...logLines, ...workerLines].join('\n')),
    serverLog: tracesIn(await readServerLog(installation)),
  };
  expect(places).toEqual({ tables: [], redis: [], temporal: [], logs: [], serverLog: [] });
  expect(workerLines.length * logLines.length).toBeGreaterThan(0);
  const roster = await (await api.get(`/v1/orgs/${orgId}/clients`, { key })).json();
  expect(roster).toMatchObject({
    clients: [{ grantId: grant, family: 'Erased family', status: 'ended' }, { family: 'Quill family' }],
  });
  expect(await verify(installation)).toMatchObject({ faults: [] });
  expect(await readLedger(owner)).toMatchObject({ difference: 0, missing: 0, surplus: 0, unexplained: 0 });
});

it('erases by name as whole words and in any case, and lists what people wrote', { timeout }, async () => {
  const { owner, make, call, orgId, familyId, userId } = await setupPlatform('Rossi "Ü"');
  const webhooks = [`for rossi "ü"`, 'for Rossini "Ü"', '', ''].map((description, n) =>
    make.webhook({ orgId, description, url: `https://x.example/${n === 2 ? familyId : 'hook'}` }),
  );
  const ids = (await Promise.all(webhooks)).map(({ id }) => id);
  for (const id of ids)
    await owner.pool.query(
      `select record_orgctl_entry($1, null, 'webhook.pause', jsonb_build_object('webhookId', $2::text))`,
      [orgId, id],
    );
  await owner.pool.query(`update membership set title = 'Friend of Rossi "Ü".' where person_id = $1`, [userId]);
  const [certificate] = (await call('select platform.erase_family($1, $2)', [familyId, 'c/1'])) as ErasureCertificate[];
  expect(certificate).toMatchObject({
    // Of its creation and its pause.
    counts: { entriesWithoutNames: 2 },
    mentions: [
      { place: 'membership', id: userId },
      { place: 'webhook', id: ids[0] },
      { place: 'webhook', id: ids[2] },
    ].sort((a, b) => (`${a.place}${a.id}` < `${b.place}${b.id}` ? -1 : 1)),
  });
  expect(await verify({ owner })).toMatchObject({ faults: [] });
});

it('lists more entries than one entry of the log may have', { timeout }, async () => {
  const { owner, make, call, orgId, familyId } = await setupPlatform('Quillfeather');
  const { id } = await make.webhook({ orgId, description: 'Quillfeather' });
  await owner.pool.query(
    `insert into audit_entry (organization_id, action, detail)
     select $1, 'webhook.pause', jsonb_build_object('webhookId', $2::text) from generate_series(1, 699)`,
    [orgId, id],
  );
  await call('select platform.erase_family($1, $2)', [familyId, 'c']);
  const { rows } = await owner.pool.query(
    `select jsonb_array_length(detail -> 'entries') as n from audit_entry where action = 'family.erase' order by 1`,
  );
  expect(rows).toEqual([{ n: 100 }, { n: 300 }, { n: 300 }]);
  expect(await verify({ owner })).toMatchObject({ faults: [] });
});

it('is limited for the platform to a number of families a day, and a repeat counts nothing', { timeout }, async () => {
  const { owner, call, orgId, familyId } = await setupPlatform('One');
  const second = randomUUID();
  await call('select platform.put_family($1, $2, $3)', [orgId, second, 'Two']);
  await owner.pool.query('update erasure_limit set families = 1');
  const erase = (id: string) => call('select platform.erase_family($1, $2)', [id, 'case-1']);
  await erase(familyId);
  expect(await erase(familyId)).toHaveLength(1);
  await expect(erase(second)).rejects.toMatchObject({ constraint: 'too_many_erasures', code: '23514' });
  await owner.pool.query(`update erasure set erased_at = erased_at - interval '25 hours'`);
  expect(await erase(second)).toHaveLength(1);
  await expect(erase(randomUUID())).rejects.toMatchObject({ constraint: 'no_such_family', code: 'P0002' });
  await expect(call('select platform.erase_family($1, $2)', [second, 'Rossi family'])).rejects.toMatchObject({
    constraint: 'argument_invalid',
    detail: 'reference',
  });
});

it('never leaves a name behind when the family is written at the same moment', { timeout }, async () => {
  const { owner, call, database, orgId, userId } = await setupPlatform('First');
  const writer = await connectAs(database.urls.platform);
  const outcomes = new Set<string>();
  for (let round = 0; round < 40; round += 1) {
    const [id, grant] = [randomUUID(), randomUUID()];
    await call('select platform.put_family($1, $2, $3)', [orgId, id, `Name ${round}`]);
    const write =
      round % 2 === 0
        ? writer('select platform.put_family($1, $2, $3)', [orgId, id, `Other ${round}`])
        : writer(`select platform.start_grant($1, $2, 'neutral', $3, $4)`, [orgId, grant, userId, id]);
    const settled = write.catch(({ constraint, code }: pg.DatabaseError) => constraint ?? code);
    await call('select platform.erase_family($1, $2)', [id, `r-${round}`]);
    outcomes.add(String(await settled));
  }
  expect([...outcomes].filter((one) => !['changed', 'created', 'family_erased'].includes(one))).toEqual([]);
  const { rows } = await owner.pool.query(`select name, count(*)::int as n from family group by name order by name`);
  expect(rows).toEqual([
    { name: 'Erased family', n: 40 },
    { name: 'First', n: 1 },
  ]);
});

it('is repeated after a backup was restored, also for ids that the backup did not have', { timeout }, async () => {
  const { owner, call, orgId, familyId, userId } = await setupPlatform('Restored');
  await call(`select platform.start_grant($1, $2, 'neutral', $3, $4)`, [orgId, randomUUID(), userId, familyId]);
  const [certificate] = (await call('select platform.erase_family($1, $2)', [familyId, 'c'])) as ErasureCertificate[];
  const digest = certificate?.familyDigest ?? '';
  // The state of a backup from before.
  await owner.pool.query('truncate erasure, erased_family');
  await call('select platform.put_family($1, $2, $3)', [orgId, familyId, 'Restored']);
  const missing = randomUUID();
  const findDigest = async (id: string) =>
    (await owner.pool.query(`select encode(sha256(uuid_send($1::uuid)), 'hex') as digest`, [id])).rows[0].digest;
  const erased = [
    { familyDigest: digest, reference: 'c' },
    { familyDigest: await findDigest(missing), reference: 'd' },
  ];
  const again = async () =>
    (await owner.pool.query('select erase_again($1) as made', [JSON.stringify(erased)])).rows[0].made;
  expect(await again()).toMatchObject([{ familyDigest: digest, erasedBy: 'restore', reference: 'c' }]);
  expect(await again()).toEqual([]);
  expect(await owner.pool.query('select from family where id = $1', [familyId])).toMatchObject({ rowCount: 0 });
  for (const id of [familyId, missing])
    await expect(call('select platform.put_family($1, $2, $3)', [orgId, id, 'x'])).rejects.toMatchObject({
      constraint: 'family_erased',
    });
});

it('is kept by an import of an older document', { timeout }, async () => {
  const { database, owner } = await setupDatabase();
  const document = smallDocument();
  await importDocument(database.ownerUrl, document);
  const [{ id }] = document.organizations[0].families;
  await owner.pool.query(`select platform.erase($1, 'c', 'orgctl')`, [id]);
  const { problems } = await rejection(importDocument(database.ownerUrl, document));
  expect(problems).toContainEqual({
    path: '$.organizations[0].families[0].id',
    problem: 'is the id of a family that was erased; a family that returns has a new id',
  });
});

/** An organization with one family of this name, and the platform's login. */
async function setupPlatform(familyName: string) {
  const { database, owner, make } = await setupDatabase();
  const { orgId, userId } = await make.member();
  const call = await connectAs(database.urls.platform);
  const id = randomUUID();
  await call('select platform.put_family($1, $2, $3)', [orgId, id, familyName]);
  return { database, owner, make, call, orgId, userId, familyId: id };
}
