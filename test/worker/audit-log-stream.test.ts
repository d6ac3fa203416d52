/** The audit log as an operator's log system receives it: OTLP log records over HTTP. */
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { appendAuditChainSql } from '#domain/audit-log/chain.ts';
import { parseOtlpEndpoint } from '#runtime/settings/otlp.ts';
import { setupDatabase } from '#test/setup.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { openAs } from '#test/webhook-rows.ts';
import { writeEntries } from '#test/write-entries.ts';
import { getFreePort } from '../../apps/dev/servers/ports.ts';
import { readAnchors } from '../../apps/orgctl/anchors.ts';
import { AnchorSender } from '../../apps/worker/audit-log-anchors.ts';
import { AuditLogStream } from '../../apps/worker/audit-log-stream.ts';

/** Entries are linked up to the oldest transaction of the server, which other tests use as well. */
const patient = { timeout: 60_000, interval: 20 };

interface OtlpLogs {
  resourceLogs: {
    scopeLogs: {
      logRecords: { attributes: { key: string; value: { stringValue?: string; intValue?: number } }[] }[];
    }[];
  }[];
}

const listRecords = ({ resourceLogs }: OtlpLogs): Record<string, unknown>[] =>
  resourceLogs
    .flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords))
    .map(({ attributes }) =>
      Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue])),
    );

/** A collector: keeps accepted records, and answers 400 while `isRejecting`. */
async function startCollector() {
  const port = await getFreePort();
  const collector = {
    url: `http://127.0.0.1:${port}`,
    isRejecting: false,
    rejected: 0,
    text: '',
    records: [] as Record<string, unknown>[],
  };
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      if (request.url !== '/v1/logs' || collector.isRejecting) {
        collector.rejected += 1;
        response.writeHead(400).end();
        return;
      }
      const text = Buffer.concat(parts).toString('utf8');
      collector.text += text;
      collector.records.push(...listRecords(JSON.parse(text) as OtlpLogs));
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((done) => server.listen(port, '127.0.0.1', done));
  onTestFinished(() => new Promise((done) => server.close(() => done(undefined))));
  return collector;
}

it('streams each entry that follows the first start, in order and by ids alone, also after a rejection', async () => {
  const { database, owner, make } = await setupDatabase();
  const collector = await startCollector();
  const worker = await openAs(database.urls.worker, 4);
  const member = await make.member({ name: 'Ada Rivers' });
  const { orgId } = member;
  const grant = await make.grant({ professional: member, familyId: await make.family({ orgId, name: 'Nguyen' }) });
  await writeEntries(owner, [{ orgId, action: 'before.stream' }]);
  const link = async () => void (await worker.pool.query(appendAuditChainSql, [1_000]));
  const unlinked = `select from audit_entry a, audit_progress p where a.serial >= p.linked_to`;
  const linkAll = () =>
    vi.waitFor(async () => {
      await link();
      expect((await owner.pool.query(unlinked)).rowCount).toBe(0);
    }, patient);
  await linkAll();
  const errors: unknown[] = [];
  const start = async () => {
    const stream = new AuditLogStream({
      db: worker,
      otlpEndpoint: parseOtlpEndpoint(collector.url),
      region: 'us',
      everyMs: 20,
      onError: (cause) => errors.push(cause),
    });
    await stream.start();
    onTestFinished(() => stream.stop());
    return stream;
  };
  const streams = [await start(), await start()];
  collector.isRejecting = true;
  const ids = await writeEntries(owner, [
    {
      orgId,
      personId: member.userId,
      action: 'seat.give',
      status: null,
      detail: { grantId: grant.id, family: 'Nguyen' },
      address: '203.0.113.7',
    },
    { orgId, action: 'api.getOrg', status: 403, code: 'insufficient_scope' },
  ]);
  await linkAll();
  await vi.waitFor(() => expect(errors.length).toBeGreaterThan(0), patient);
  expect(collector.records).toEqual([]);
  collector.isRejecting = false;
  // Entries claimed by a failed worker are free again when its lease ends.
  await owner.pool.query('update audit_progress set claimed_until = now()');
  await vi.waitFor(() => expect(collector.records.length).toBeGreaterThanOrEqual(2), patient);
  expect(collector.records.map((record) => record['org_api.audit_entry.id'])).toEqual(ids);
  expect(collector.records[0]).toMatchObject({
    'organization.id': orgId,
    'user.id': member.userId,
    'client.address': '203.0.113.7',
    'org_api.audit_entry.object.grantId': grant.id,
  });
  expect(collector.records[1]).toMatchObject({ 'http.response.status_code': 403, 'error.type': 'insufficient_scope' });
  expect(collector.text).not.toMatch(/Nguyen|Ada Rivers/);
  const left = 'select from audit_entry a, audit_progress p where a.serial >= p.streamed_to';
  await vi.waitFor(async () => expect((await owner.pool.query(left)).rowCount).toBe(0), patient);
  // A claim that lasts longer than one may is from before the clock was set back.
  await owner.pool.query(`update audit_progress set claimed_until = now() + interval '1 hour'`);
  const [later] = await writeEntries(owner, [{ orgId, action: 'after.step' }]);
  await linkAll();
  const streamed = () => collector.records.map((record) => record['org_api.audit_entry.id']);
  await vi.waitFor(() => expect(streamed()).toContain(later), patient);
  for (const stream of streams) await stream.stop();
  expect((await owner.pool.query(left)).rowCount).toBe(0);
});

it('sends anchors out of the region in a form that orgctl reads, and says when they were not accepted', async () => {
  const collector = await startCollector();
  const sender = new AnchorSender({ otlpEndpoint: parseOtlpEndpoint(collector.url), region: 'us' });
  onTestFinished(() => sender.stop());
  const anchors = [1, 2].map((n) => ({
    organizationId: randomUUID(),
    month: '2026-11',
    length: n,
    hash: String(n).repeat(64),
  }));
  collector.isRejecting = true;
  await expect(sender.send(anchors)).rejects.toThrow();
  collector.isRejecting = false;
  await sender.send(anchors);
  // The lines of a collector's file: it writes 64-bit integers as text.
  const line = collector.text.replaceAll(/"intValue":(\d+)/g, '"intValue":"$1"');
  const file = path.join(temporaryFolder(), 'anchors.json');
  await writeFile(file, `${collector.text}\n{"resourceLogs":[]}\n${line}\n`);
  expect(await readAnchors(file)).toEqual([...anchors, ...anchors]);
  await writeFile(file, `${line}\n${line.slice(0, -20)}`);
  await expect(readAnchors(file)).rejects.toThrow('Line 2');
});
