/**
 * The floor: the cost of what the contract demands of a read, without the rest of the API's
 * JavaScript. It has the same Koa, limiter, shared statement, audit entry, headers and log line.
 * It has no router, checks, bounds or metrics. One HMAC stays, because the statement needs the
 * key's fingerprint.
 */
import { randomUUIDv7 } from 'node:crypto';
import { createServer } from 'node:http';
import Koa from 'koa';
import { requestsPerWindow, requestWindowSeconds } from '#domain/contract/limits.ts';
import { fingerprints } from '#domain/keys/key.ts';
import { openDatabase } from '#domain/open-database.ts';
import { securityHeaders } from '#runtime/http-server.ts';
import { createLog } from '#runtime/log.ts';
import { openTracing } from '#runtime/tracing.ts';
import { TrackedResponse } from '#runtime/tracked-response.ts';
import { AuditLogWriter } from '../../../../apps/api/audit-log-writer.ts';
import { readConfig } from '../../../../apps/api/config.ts';
import { endpoints } from '../../../../apps/api/endpoints.ts';
import { computeEtag } from '../../../../apps/api/etag.ts';
import { Limiter } from '../../../../apps/api/limiter/limiter.ts';
import type { AuthorizedRow } from '../../../../apps/api/reads/authorized.ts';
import { SharedStatements } from '../../../../apps/api/shared-statements.ts';

const config = readConfig();
const { pool } = await openDatabase({
  server: config.database,
  applicationName: 'bench-floor',
  poolMax: config.databasePoolMax,
});
const limiter = new Limiter({
  redis: config.redis,
  limit: requestsPerWindow,
  windowSeconds: requestWindowSeconds,
  keyPrefix: `limit:${config.region}:`,
});
await limiter.start();
const log = createLog({ level: 'info', name: 'floor', region: config.region });
const tracing = await openTracing({ otlpEndpoint: null, app: 'floor', region: config.region });
const statements = new SharedStatements({ pool, tracing });
const auditLog = new AuditLogWriter({ pool });
const limitPolicy = `"key";q=${requestsPerWindow};w=${requestWindowSeconds}`;
/** How long a read may wait, longer than any run of the benchmark. */
const deadlineMs = 60_000;
const idAt = '/v1/orgs/'.length;
const idEnd = idAt + 36;

const app = new Koa();
app.use(async (ctx) => {
  const endpoint = endpoints.find(({ resource }) => resource === ctx.path.slice(idEnd));
  if (endpoint === undefined || ctx.path.length < idEnd) return;
  const prints = fingerprints(ctx.get('Authorization').slice('Bearer '.length), config.keys.peppers);
  const startedAt = performance.now();
  const requestId = randomUUIDv7();
  const { left, resetSeconds } = await limiter.decide(prints.at(-1) as Buffer);
  const organizationId = ctx.path.slice(idAt, idEnd);
  const address = ctx.req.socket.remoteAddress ?? null;
  const response = ctx.res as TrackedResponse;
  const read = { endpoint, fingerprints: prints, organizationId, address, response, encoding: null };
  const row = (await statements.read({ ...read, deadlineMs: startedAt + deadlineMs })) as AuthorizedRow;
  const { keyId, body } = row;
  const operation = endpoint.operationId;
  await auditLog.record({ id: requestId, keyId, action: `api.${operation}`, status: 200, code: null, address });
  ctx.set(securityHeaders);
  ctx.set('Request-Id', requestId);
  ctx.set('Cache-Control', 'private, no-cache');
  ctx.set('Vary', 'Authorization');
  ctx.set('RateLimit-Policy', limitPolicy);
  ctx.set('RateLimit', `"key";r=${left};t=${resetSeconds}`);
  ctx.set('ETag', computeEtag(body ?? ''));
  ctx.set('Content-Type', 'application/json');
  ctx.body = body;
  const durationMs = performance.now() - startedAt;
  log.info({ requestId, method: 'GET', operation, status: 200, organizationId, keyId, limitLeft: left, durationMs });
});
createServer({ ServerResponse: TrackedResponse }, app.callback()).listen(config.port, config.host);
process.on('SIGTERM', () => process.exit(0));
