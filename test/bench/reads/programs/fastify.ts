/**
 * The comparison: the read API as a competent engineer would write it with Fastify, `pg` and
 * ioredis, with one statement per step. It has the same guarantees: the key's format and tag, the
 * exact limit (the same Lua), immediate effect of revocation and lost permissions, the use
 * committed to the log before the response, the same headers, one log line per request. It uses the
 * usual means to be fast: named prepared statements, a pool of the same size, auto-pipelined Redis,
 * and JSON built by PostgreSQL with the same SQL.
 */
import { hash, randomUUIDv7 } from 'node:crypto';
import { readFileSync } from 'node:fs';
import Fastify, { type FastifyReply, type FastifyRequest, LogController } from 'fastify';
import { Redis } from 'ioredis';
import pg from 'pg';
import { requestsPerWindow, requestWindowSeconds } from '#domain/contract/limits.ts';
import { connectionOptions } from '#domain/db/server.ts';
import { checkKey, fingerprint } from '#domain/keys/key.ts';
import { redisOptions } from '#runtime/settings/redis.ts';
import { readConfig } from '../../../../apps/api/config.ts';
import { organizationSql } from '../../../../apps/api/reads/organization.ts';
import { rosterSql } from '../../../../apps/api/reads/roster.ts';

interface KeyRow {
  id: string;
  organization_id: string;
  creator_id: string;
  scopes: string[];
  expires_at: Date | null;
  revoked_at: Date | null;
}

class Rejection extends Error {
  readonly statusCode: number;

  constructor(statusCode: number, code: string) {
    super(code);
    this.statusCode = statusCode;
  }
}

const config = readConfig();
const pool = new pg.Pool({
  ...connectionOptions(config.database, { applicationName: 'bench-fastify' }),
  max: config.databasePoolMax,
});
const lua = readFileSync(new URL('../../../../apps/runtime/sliding-window.lua', import.meta.url), 'utf8');
const redis = new Redis({
  ...(config.redis === null ? {} : redisOptions(config.redis)),
  enableAutoPipelining: true,
  scripts: { slidingWindow: { lua, numberOfKeys: 1 } },
});
const app = Fastify({
  logger: true,
  logController: new LogController({ disableRequestLogging: true }),
  genReqId: () => randomUUIDv7(),
});

const findKey = {
  name: 'find-key',
  text: 'select id, organization_id, creator_id, scopes, expires_at, revoked_at from api.key where fingerprint = $1',
};
const findPermission = {
  name: 'find-permission',
  text: `select 1 from api.member m
    join api.member_role mr on mr.organization_id = m.organization_id and mr.person_id = m.person_id
    join api.role r on r.id = mr.role_id
    where m.organization_id = $1 and m.person_id = $2 and m.status = 'active' and $3 = any (r.permissions)
    limit 1`,
};
const recordUse = {
  name: 'record-use',
  text: `select api.record_key_uses(array[$1::uuid], array[$2::uuid], array[$3], array[$4::smallint], array[$5],
    array[$6::inet])`,
};

/** Checks format, tag and limit; returns the fingerprint of a key that passes. */
async function admit(request: FastifyRequest, reply: FastifyReply): Promise<Buffer> {
  const bearer = request.headers.authorization?.replace(/^Bearer /i, '');
  if (bearer === undefined) throw new Rejection(401, 'unauthenticated');
  if (!checkKey(bearer, config.region, config.keys.tagSecrets).ok) throw new Rejection(401, 'invalid_api_key');
  const print = fingerprint(bearer, config.keys.peppers[0]);
  const name = `limit:${config.region}:${print.toString('base64url')}`;
  const windowUs = requestWindowSeconds * 1e6;
  const [left = -1, waitUs = 0] = await redis.slidingWindow([name, requestsPerWindow, windowUs]);
  const seconds = Math.max(1, Math.ceil(waitUs / 1e6));
  reply.header('RateLimit-Policy', `"key";q=${requestsPerWindow};w=${requestWindowSeconds}`);
  reply.header('RateLimit', `"key";r=${Math.max(0, left)};t=${seconds}`);
  if (left >= 0) return print;
  reply.header('Retry-After', seconds);
  throw new Rejection(429, 'rate_limited');
}

/** Returns null when the key and its creator may read this, otherwise the code of the error response. */
async function findRejection(key: KeyRow, orgId: string, scope: string): Promise<Rejection | null> {
  if (key.revoked_at !== null) return new Rejection(401, 'invalid_api_key');
  if (key.expires_at !== null && key.expires_at <= new Date()) return new Rejection(401, 'invalid_api_key');
  if (!key.scopes.includes(scope)) return new Rejection(403, 'insufficient_scope');
  if (key.organization_id !== orgId) return new Rejection(403, 'forbidden');
  const { rows } = await pool.query({ ...findPermission, values: [orgId, key.creator_id, scope] });
  return rows.length === 0 ? new Rejection(403, 'forbidden') : null;
}

function mount(operation: string, resource: string, scope: string, sql: string): void {
  const findBody = {
    name: operation,
    text: `select (${sql})::text as body from (select $1::uuid as organization_id) request`,
  };

  async function record(request: FastifyRequest, key: KeyRow, status: number, code: string | null): Promise<void> {
    await pool.query({ ...recordUse, values: [request.id, key.id, `api.${operation}`, status, code, request.ip] });
  }

  async function respond(request: FastifyRequest<{ Params: { orgId: string } }>, reply: FastifyReply) {
    const print = await admit(request, reply);
    const key = (await pool.query<KeyRow>({ ...findKey, values: [print] })).rows[0];
    if (key === undefined) throw new Rejection(401, 'invalid_api_key');
    if (key.expires_at !== null) reply.header('Key-Expires', key.expires_at.toISOString());
    const rejection = await findRejection(key, request.params.orgId, scope);
    if (rejection !== null) {
      await record(request, key, rejection.statusCode, rejection.message);
      throw rejection;
    }
    const { rows } = await pool.query<{ body: string }>({ ...findBody, values: [request.params.orgId] });
    const body = rows[0]?.body ?? '';
    const etag = `"${hash('sha256', body, 'base64url').slice(0, 22)}"`;
    const isKnown = request.headers['if-none-match'] === etag;
    await record(request, key, isKnown ? 304 : 200, null);
    reply.header('ETag', etag);
    return isKnown ? reply.code(304).send() : reply.type('application/json').send(body);
  }

  const schema = { params: { type: 'object', properties: { orgId: { type: 'string', format: 'uuid' } } } };
  app.get(`/v1/orgs/:orgId${resource}`, { schema }, respond);
}

app.addHook('onRequest', async (request, reply) => {
  reply.header('Request-Id', request.id).header('Cache-Control', 'private, no-cache').header('Vary', 'Authorization');
});
app.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) =>
  reply.code(error.statusCode ?? 500).send({ error: error.message }),
);
mount('getOrg', '', 'org.read', organizationSql);
mount('getFirmRoster', '/clients', 'org.clients.read', rosterSql);
app.addHook('onResponse', async (request, reply) => {
  request.log.info(
    { operation: request.routeOptions.url, status: reply.statusCode, durationMs: reply.elapsedTime },
    'request',
  );
});
await app.listen({ host: config.host, port: config.port });
pool.on('error', (error) => app.log.error({ code: (error as { code?: string }).code }, 'an idle connection was lost'));
process.on('SIGTERM', () => process.exit(0));
