/** When several error responses apply, the response is the first in the documented order. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { ErrorCode } from '#domain/contract/errors.ts';
import { requestsPerWindow } from '#domain/contract/limits.ts';
import { shareApi } from '#test/setup.ts';
import { endpoints } from '../../../apps/api/endpoints.ts';
import { expectErrorResponse } from '../error-response.ts';

const installation = shareApi();

const otherScope = (scope: string) => (scope === 'org.read' ? 'org.clients.read' : 'org.read');

describe.each(endpoints)('$operationId', ({ scope, resource }) => {
  it('reports the first cause in order, as the causes are removed one by one', async () => {
    const { api, make, owner } = installation();
    const other = await make.organization();
    const creator = await make.member({ permissions: [scope, otherScope(scope)] });
    const { id, key } = await make.apiKey({ creator, scopes: [otherScope(scope) as typeof scope] });
    const sql = (text: string) => () => owner.pool.query(text, [text.includes('api_key') ? id : creator.userId]);
    const leave = sql(`update membership set status = 'left' where person_id = $1`);
    const lose = () => make.permissionLost(creator, scope);
    const revokeAndExpire = sql(
      `update api_key set created_at = now() - interval '2 days', expires_at = now() - interval '1 day',
        revoked_at = now(), number = null, allowed_addresses = '{203.0.113.9/32}' where id = $1`,
    );
    // No login can reinstate an ended key, so this test does it step by step.
    await owner.pool.query('alter table api_key disable trigger api_key_stays_ended');
    for (const spoil of [leave, lose, revokeAndExpire]) await spoil();

    // Each row removes the cause of the previous row, and nothing else.
    const table: [repair: (() => Promise<unknown>) | null, orgId: string, code: ErrorCode, message: RegExp][] = [
      [null, 'malformed', 'invalid_api_key', /revoked/],
      [sql('update api_key set revoked_at = null where id = $1'), 'malformed', 'invalid_api_key', /expired/],
      [sql('update api_key set expires_at = null where id = $1'), 'malformed', 'address_not_allowed', /IP address/],
      [sql(`update api_key set allowed_addresses = '{}' where id = $1`), 'malformed', 'invalid_request', /UUID/],
      [null, randomUUID(), 'insufficient_scope', /scope/],
      [
        sql(`update api_key set scopes = scopes || array['${scope}'] where id = $1`),
        randomUUID(),
        'not_found',
        /no organization/,
      ],
      [null, other, 'forbidden', /another organization/],
      [null, creator.orgId, 'forbidden', /has left the organization/],
      [
        sql('update api_key set creator_left_at = null, number = 1 where id = $1'),
        creator.orgId,
        'forbidden',
        /no longer an active member/,
      ],
      [
        sql(`update membership set status = 'active' where person_id = $1`),
        creator.orgId,
        'forbidden',
        /no longer holds/,
      ],
    ];
    for (const [repair, orgId, code, message] of table) {
      await repair?.();
      await expectErrorResponse(await api.get(`/v1/orgs/${orgId}${resource}`, { key }), code, message);
    }
    await owner.pool.query('update role set permissions = array[$2] where id = $1', [creator.roleId, scope]);
    expect((await api.get(`/v1/orgs/${creator.orgId}${resource}`, { key })).status).toBe(200);
  });
});

it('the form of a key is checked before its limit, and its limit before the database', async () => {
  const { api, make } = installation();
  const made = await make.apiKey();
  const path = `/v1/orgs/${made.orgId}`;
  await Promise.all(Array.from({ length: requestsPerWindow }, () => api.get(path, { key: made.key })));
  await make.keyRevoked(made);

  await expectErrorResponse(await api.get(path, { key: made.key }), 'rate_limited');
  await expectErrorResponse(await api.get('/v1/orgs/malformed', { key: made.key }), 'rate_limited');
  await expectErrorResponse(await api.get('/v1/orgs/malformed', { key: `${made.key}x` }), 'invalid_api_key');
});
