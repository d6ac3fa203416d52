/** Every response has exactly the declared fields, with the declared types. */
import { describe, expect, it } from 'vitest';
import type { MadeMember } from '#test/make.ts';
import { setup, type TestInstallation } from '#test/setup.ts';
import { endpoints } from '../../../apps/api/endpoints.ts';

/** Creates an organization with data of every kind. */
async function makeFullOrganization({ make, owner }: TestInstallation): Promise<MadeMember> {
  const creator = await make.member({ name: 'Noor Okafor' });
  const { orgId, userId } = creator;
  await make.member({ orgId, name: 'Untitled', permissions: ['org.read'] });
  const seated = await make.grant({ professional: creator });
  const ending = await make.grant({ professional: creator, endsAt: new Date(Date.now() + 86_400_000) });
  await make.grant({ professional: creator, endsAt: new Date(), endReason: 'moved', kind: 'neutral' });
  for (const kind of ['attorney', 'neutral'] as const) await make.grant({ professional: creator, kind });
  await make.seat({ orgId, grant: seated });
  await make.seat({ orgId, grant: ending });
  const statements = [
    `update seat set ended_at = now(), end_reason = 'subscription_ended' where grant_id = '${ending.id}'`,
    `update membership set title = 'Mediator' where person_id = '${userId}'`,
    `update seat_plan set price_currency = 'USD', price_cents = 1250`,
    `insert into subscription (organization_id, status, quantity, renews_at)
      values ('${orgId}', 'active', 3, now()), ('${orgId}', 'unpaid', 1, null)`,
    `with c as (insert into referral_code (organization_id, code, link, label)
      values ('${orgId}', 'A', 'https://example.org/a', 'Poster'), ('${orgId}', 'B', 'https://example.org/b', null)
        returning id)
     insert into referral (organization_id, code_id, state) select '${orgId}', c.id, s
       from c, unnest(array['signed_up', 'qualified', 'not_counted']) s`,
    `insert into referral_invoice (organization_id, month, currency, share_cents)
      values ('${orgId}', '2026-09', 'USD', -250), ('${orgId}', '2026-09', 'CAD', 9000000000)`,
    `update client_grant set since = now() - interval '50 days'`,
    `insert into family_day select organization_id, id, (now() at time zone 'UTC')::date - 7, 9, 4, 3, 2, 1, 1
      from family`,
  ];
  for (const statement of statements) await owner.pool.query(statement);
  return creator;
}

const moment = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Returns every value of a response with its path; items of a list share one path. */
function* listValues(value: unknown, path = ''): Generator<[path: string, value: unknown]> {
  yield [path, value];
  if (Array.isArray(value)) for (const item of value) yield* listValues(item, `${path}[]`);
  else if (typeof value === 'object' && value !== null)
    for (const [name, item] of Object.entries(value)) yield* listValues(item, `${path}.${name}`);
}

/**
 * Asserts that dates have their one format and, for the organization with all data, that no list is
 * empty.
 */
function expectValues(body: unknown, full: boolean): void {
  for (const [path, value] of listValues(body)) {
    if (/(At|since)$/.test(path) && value !== null)
      expect([path, value]).toEqual([path, expect.stringMatching(moment)]);
    if (full) expect([path, value]).not.toEqual([path, []]);
  }
}

describe.each(endpoints)('$operationId', ({ resource, response }) => {
  it('answers exactly as declared, dates with milliseconds and Z, also for an empty organization', async () => {
    const installation = await setup();
    const { api, make, owner } = installation;
    const full = await makeFullOrganization(installation);
    const bare = await make.member();
    await owner.pool.query('delete from seat_plan where organization_id = $1', [bare.orgId]);
    for (const creator of [full, bare]) {
      const { key } = await make.apiKey({ creator });
      const text = await (await api.get(`/v1/orgs/${creator.orgId}${resource}`, { key })).text();
      expect(text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""')).not.toMatch(/\s/); // compact JSON
      const body: unknown = JSON.parse(text);
      expect(response.parse(body)).toEqual(body); // parsing removes undeclared fields
      expectValues(body, creator === full);
    }
  });
});

it('sums and texts are unchanged: negative, beyond 32 bits, in any script', async () => {
  const installation = await setup();
  const creator = await makeFullOrganization(installation);
  const name = 'Łódź “Family” \\ \u0001 👩‍👧 Law';
  await installation.owner.pool.query('update organization set name = $1', [name]);
  const { key } = await installation.make.apiKey({ creator });
  const get = async (resource: string) =>
    (await installation.api.get(`/v1/orgs/${creator.orgId}${resource}`, { key })).json() as Promise<unknown>;
  expect(await get('')).toMatchObject({ name });
  expect(await get('/referral-earnings')).toEqual({
    months: [
      { month: '2026-09', currency: 'CAD', invoices: 1, shareCents: 9_000_000_000 },
      { month: '2026-09', currency: 'USD', invoices: 1, shareCents: -250 },
    ],
  });
  expect(await get('/seats')).toMatchObject({
    total: 23,
    used: 1,
    paid: 3,
    invoiced: 20,
    pricePerSeat: { currency: 'USD', cents: 1250 },
  });
  expect(await get('/referral-codes')).toMatchObject([
    {
      label: 'Poster',
      counts: { signedUp: 3, qualified: 1, notCounted: 1 },
    },
    { label: null },
  ]);
});
