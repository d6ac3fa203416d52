import { randomUUIDv7 } from 'node:crypto';
import type { BlockList } from 'node:net';
import type { Middleware } from 'koa';
import type { Pool } from 'pg';
import { errorStatus } from '#domain/contract/errors.ts';
import { fingerprints, type KeySecrets } from '#domain/keys/fingerprint.ts';
import { checkKey } from '#domain/keys/format.ts';
import { clientAddress } from '#runtime/address.ts';
import { bearerOf } from '#runtime/bearer.ts';
import type { ConsoleState } from './state.ts';

/** A line for a key that was tried here. `$1` line, `$2` fingerprints, `$3` address. None when the key is not known. */
const recordKeyRefusedSql = /* sql */ `
  insert into activity (id, organization_id, person_id, key_id, action, status, code, address)
  select $1, k.organization_id, k.maker_id, k.id, 'api.none', 403, 'api_key_not_accepted', $3::inet
  from api_key k where k.fingerprint = any ($2)`;

const code = 'api_key_not_accepted';

/**
 * Refuses whatever comes with an API key as bearer, on every path and with every method, whether there is anything there or not (design, section 5.6).
 * A genuine key's try stands in its organization's log, like every other use of it.
 */
export function refuseKeys(deps: {
  pool: Pool;
  keys: KeySecrets;
  trustedProxies: BlockList;
}): Middleware<ConsoleState> {
  const { pool, keys, trustedProxies } = deps;
  return async (ctx, next) => {
    const bearer = bearerOf(ctx.headers.authorization);
    if (!bearer?.startsWith('aln_')) return next();
    ctx.state.code = code;
    if (checkKey(bearer, keys.region, keys.tagSecrets).ok) {
      const address = clientAddress(ctx.req, trustedProxies);
      const values = [ctx.state.requestId ?? randomUUIDv7(), fingerprints(bearer, keys.peppers), address];
      await pool.query({ name: 'recordKeyRefused', text: recordKeyRefusedSql, values });
    }
    ctx.status = errorStatus[code];
    ctx.set('Content-Type', 'application/json');
    // What was sent along is not read.
    ctx.set('Connection', 'close');
    ctx.body = JSON.stringify({
      error: code,
      message:
        'API keys open the GET requests of the organization API and nothing else. The console is for people, who sign in.',
    });
  };
}
