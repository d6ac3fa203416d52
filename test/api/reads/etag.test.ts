/** Answers that did not change are not sent again. */
import { describe, expect, it } from 'vitest';
import { shareApi } from '#test/setup.ts';
import { endpoints } from '../../../apps/api/endpoints.ts';

const installation = shareApi();

describe.each(endpoints)('$operationId', ({ resource, operationId }) => {
  it('gives all keys of the organization one ETag, and answers 304 to it with a count and an audit entry', async () => {
    const { api, make, owner } = installation();
    const creator = await make.member();
    const [one, two] = [await make.apiKey({ creator }), await make.apiKey({ creator })];
    const path = `/v1/orgs/${creator.orgId}${resource}`;
    const etag = (await api.get(path, { key: one.key })).headers.get('etag') ?? '';
    expect((await api.get(path, { key: two.key })).headers.get('etag')).toBe(etag);

    const unchanged = await api.get(path, { key: two.key, headers: { 'if-none-match': etag } });
    expect(unchanged.status).toBe(304);
    expect(await unchanged.text()).toBe('');
    expect(unchanged.headers.get('content-type')).toBeNull();
    expect(unchanged.headers.get('ratelimit')).toMatch(/r=118;/);
    const { rows } = await owner.pool.query('select action, status, code, key_id from audit_entry where id = $1', [
      unchanged.headers.get('request-id'),
    ]);
    expect(rows).toEqual([{ action: `api.${operationId}`, status: 304, code: null, key_id: two.id }]);
  });
});

it('the header If-None-Match may be a list, weak, strong, or *', async () => {
  const { api, make } = installation();
  const { key, orgId } = await make.apiKey();
  const path = `/v1/orgs/${orgId}`;
  const etag = (await api.get(path, { key })).headers.get('etag') ?? '';
  const readStatus = async (value: string) =>
    (await api.get(path, { key, headers: { 'if-none-match': value } })).status;

  for (const value of [etag, `W/${etag}`, `"x", ${etag}`, `"x" ,W/${etag},"y"`, '*'])
    expect([value, await readStatus(value)]).toEqual([value, 304]);
  for (const value of ['"x"', etag.slice(1, -1), `${etag.slice(0, -1)}x"`, '', 'W/', ','])
    expect([value, await readStatus(value)]).toEqual([value, 200]);
});

it('a key that may not read never gets 304, whatever If-None-Match contains', async () => {
  const { api, make } = installation();
  const made = await make.apiKey();
  const path = `/v1/orgs/${made.orgId}`;
  const etag = (await api.get(path, { key: made.key })).headers.get('etag') ?? '';
  await make.keyRevoked(made);
  for (const value of [etag, '*'])
    expect((await api.get(path, { key: made.key, headers: { 'if-none-match': value } })).status).toBe(401);
});

it('the ETag changes with the data, and changes back with it', async () => {
  const { api, make, owner } = installation();
  const { key, orgId } = await make.apiKey();
  const read = () => api.get(`/v1/orgs/${orgId}`, { key });
  const before = (await read()).headers.get('etag');
  await owner.pool.query(`update organization set name = 'Another name' where id = $1`, [orgId]);
  const renamed = await read();
  expect(renamed.headers.get('etag')).not.toBe(before);
  expect(await renamed.json()).toMatchObject({ name: 'Another name' });
  await owner.pool.query(`update organization set name = 'Harbor Family Law' where id = $1`, [orgId]);
  expect((await read()).headers.get('etag')).toBe(before);
});
