/**
 * The floor: the cost of a read without the API's JavaScript. It has the same Koa, limiter,
 * prepared statement and shared log insert, from the API's modules. It has no headers, checks,
 * entity tags, log lines or metrics. One HMAC stays, because the statement needs the key's
 * fingerprint.
 */
import { randomUUIDv7 } from 'node:crypto';
import Koa from 'koa';
import { requestsPerWindow, requestWindowSeconds } from '#domain/contract/limits.ts';
import { openDatabase } from '#domain/db/connect.ts';
import type { AuthorizedRow } from '#domain/db/statements/authorized.ts';
import { fingerprints } from '#domain/keys/fingerprint.ts';
import { createActivityWriter } from '../../../../apps/api/activity-writer.ts';
import { readConfig } from '../../../../apps/api/config.ts';
import { endpoints } from '../../../../apps/api/endpoints.ts';
import { createLimiter } from '../../../../apps/api/limiter/limiter.ts';
import { createReadBatches } from '../../../../apps/api/read-batches.ts';

const config = readConfig();
const { pool } = await openDatabase({
  server: config.database,
  applicationName: 'bench-floor',
  poolMax: config.databasePoolMax,
});
const limiter = createLimiter({
  redis: config.redis,
  limit: requestsPerWindow,
  windowSeconds: requestWindowSeconds,
  keyPrefix: `limit:${config.region}:`,
});
await limiter.start();
const batches = createReadBatches({ pool });
const activity = createActivityWriter({ pool });
const idAt = '/v1/orgs/'.length;
const idEnd = idAt + 36;

const app = new Koa();
app.use(async (ctx) => {
  const endpoint = endpoints.find(({ resource }) => resource === ctx.path.slice(idEnd));
  if (endpoint === undefined || ctx.path.length < idEnd) return;
  const prints = fingerprints(ctx.get('Authorization').slice('Bearer '.length), config.keys.peppers);
  await limiter.take(prints.at(-1) as Buffer);
  const values = { fingerprints: prints, organizationId: ctx.path.slice(idAt, idEnd) };
  const row = (await batches.runTogether(endpoint.statement, values)) as AuthorizedRow;
  await activity.record({
    id: randomUUIDv7(),
    keyId: row.keyId,
    action: `api.${endpoint.operationId}`,
    status: 200,
    code: null,
    address: ctx.req.socket.remoteAddress ?? null,
  });
  ctx.body = row.body;
});
app.listen(config.port, config.host);
process.on('SIGTERM', () => process.exit(0));
