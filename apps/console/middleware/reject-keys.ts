import type { BlockList } from 'node:net';
import type { Middleware } from 'koa';
import { CompiledQuery } from 'kysely';
import { recordKeysAtConsoleSql } from '#domain/audit-log/record-requests.ts';
import { errorStatus } from '#domain/contract/errors.ts';
import type { Queryable } from '#domain/db/database.ts';
import { checkKey, fingerprints, type KeySecrets } from '#domain/keys/key.ts';
import { clientAddress, findBearer } from '#runtime/client.ts';
import type { RejectedCallCounter, RejectedCalls } from '#runtime/rejected-call-counter.ts';
import type { ConsoleState } from '../web/state.ts';

const code = 'api_key_not_accepted';

/**
 * Adds requests with a key to its audit entry of the minute, with the last address. Unknown keys
 * get no row.
 */
export const recordKeysAtConsole = (db: Queryable, counts: readonly RejectedCalls[]) =>
  db.query(
    CompiledQuery.raw(recordKeysAtConsoleSql, [
      counts.map(({ fingerprint }) => fingerprint),
      counts.map(({ count }) => count),
      counts.map(({ address }) => address),
    ]),
  );

/**
 * Rejects every request with an API key as bearer token, on every path and with every method. The
 * rejection needs no I/O. Requests with a valid key are counted in its organization's audit log,
 * one row per minute, so that a revoked key cannot fill it.
 */
export function rejectKeys(dependencies: {
  rejectedCalls: RejectedCallCounter;
  keys: KeySecrets;
  trustedProxies: BlockList;
}): Middleware<ConsoleState> {
  const { rejectedCalls, keys, trustedProxies } = dependencies;
  return async (ctx, next) => {
    const bearer = findBearer(ctx.headers.authorization);
    if (!bearer?.startsWith('aln_')) return next();
    ctx.state.code = code;
    if (checkKey(bearer, keys.region, keys.tagSecrets).ok) {
      const address = clientAddress(ctx.req, trustedProxies);
      for (const fingerprint of fingerprints(bearer, keys.peppers)) rejectedCalls.count(fingerprint, address);
    }
    ctx.status = errorStatus[code];
    ctx.set('Content-Type', 'application/json');
    // The body is not read.
    ctx.set('Connection', 'close');
    ctx.body = JSON.stringify({
      error: code,
      message: 'API keys work for the GET requests of the API only. The console requires a signed-in person.',
    });
  };
}
