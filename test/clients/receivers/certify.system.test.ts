import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { generateSecret } from '#domain/webhooks/secret.ts';
import { endChild } from '#test/end-child.ts';
import { certify } from '../../../apps/receiver/certify/certify.ts';
import { readStateAt } from '../../../apps/receiver/certify/state.ts';
import { createTables, type Kit, startKit } from './kills.ts';
import { openSqlite } from './own-databases.ts';

it.each(['typescript', 'python'] satisfies Kit[])(
  'a receiver on the kit passes every scenario of certify: %s',
  async (kit) => {
    const { database, query } = openSqlite();
    await createTables(query);
    const secret = generateSecret();
    const { child, port } = await startKit(kit, { DATABASE: database, SECRET: secret });
    onTestFinished(() => void endChild(child));
    const url = `http://127.0.0.1:${port}/`;
    const { scenarios } = await certify({
      target: { url, ca: null },
      secrets: [secret],
      organizationId: randomUUID(),
      endpoint: randomUUID(),
      deadlineMs: 10_000,
      readState: readStateAt({ url, ca: null }),
    });
    expect(scenarios.filter(({ result }) => result !== 'passed')).toEqual([]);
  },
);
