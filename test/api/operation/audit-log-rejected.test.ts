/** A read whose audit entry cannot be committed gets no response, and a metric counts it. */
import { expect, it } from 'vitest';
import { setup } from '#test/setup.ts';

it('a read whose audit entry cannot be written gets 500 and is counted as rejected by the log', async () => {
  const { api, owner, make } = await setup();
  const creator = await make.member();
  const { key } = await make.apiKey({ creator });
  const read = () => api.get(`/v1/orgs/${creator.orgId}`, { key });
  const rejected = async () =>
    /^org_api_audit_entries_rejected_total (\d+)$/m.exec(await (await fetch(`${api.metricsUrl}/metrics`)).text())?.[1];
  expect((await read()).status).toBe(200);
  expect(await rejected()).toBe('0');

  await owner.pool.query('revoke execute on function api.record_key_uses from org_api_read');
  const response = await read();
  expect(response.status).toBe(500);
  expect(await response.text()).not.toContain(creator.orgId);
  expect(await rejected()).toBe('1');

  await owner.pool.query('grant execute on function api.record_key_uses to org_api_read');
  expect((await read()).status).toBe(200);
  expect(await rejected()).toBe('1');
});
