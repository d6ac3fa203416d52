import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '#test/database.ts';
import { generateSample, type SampleOptions, sampleDefaults } from '../../apps/import/generate/sample.ts';
import { importText, type Loose, query } from './document.ts';

const written = (options: SampleOptions) => text(Readable.from(generateSample(options)));
const usual: SampleOptions = { region: 'us', asOf: '2026-11-20', ...sampleDefaults };

describe('a generated sample', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());

  it('is the same for the same options, and differs for another seed or region', async () => {
    expect(await written(usual)).toBe(await written(usual));
    const ids = async (options: SampleOptions) =>
      JSON.parse(await written(options)).organizations.map((o: Loose) => o.id);
    const all = [
      ...(await ids(usual)),
      ...(await ids({ ...usual, seed: 2 })),
      ...(await ids({ ...usual, region: 'ca' })),
    ];
    expect(new Set(all).size).toBe(9);
  });

  it('can be imported for any size, seed and day, and each organization has an active owner', async () => {
    let seed = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          region: fc.constantFrom('us', 'ca'),
          organizations: fc.integer({ min: 0, max: 5 }),
          familiesPerOrganization: fc.integer({ min: 0, max: 40 }),
          grantsPerFamily: fc.option(fc.integer({ min: 0, max: 4 }), { nil: undefined }),
          daysPerFamily: fc.option(fc.integer({ min: 0, max: 110 }), { nil: undefined }),
          asOf: fc.constantFrom('2020-02-29', '2026-11-20', '2031-01-01'),
        }),
        fc.boolean(),
        async (options, isMoved) => {
          seed += 1; // a different seed each time, because one database receives all
          const { region } = options;
          const today = isMoved || options.asOf > '2030'; // a day ahead must be moved
          const document = await written({ ...options, seed });
          const result = await importText(database.ownerUrl, document, { region, today });
          expect(result.organizations).toHaveLength(options.organizations);
          expect(result.organizations.map((one) => one.ownerUserId)).not.toContain(null);
        },
      ),
      { numRuns: 25 },
    );
  });

  it('contains every state of the format', async () => {
    const fresh = await createTestDatabase();
    await importText(fresh.ownerUrl, await written({ ...usual, organizations: 8, familiesPerOrganization: 60 }), {
      today: true,
    });
    const [states] = await query(
      fresh.ownerUrl,
      `select
         (select array_agg(distinct kind order by kind) from client_grant) as kinds,
         (select array_agg(distinct coalesce(end_reason, status) order by coalesce(end_reason, status))
           from client_grant) as grants,
         (select count(*) > 0 from client_grant where status = 'active' and ends_at > now()) as "endsAhead",
         (select array_agg(distinct coalesce(end_reason, 'assigned') order by coalesce(end_reason, 'assigned'))
           from seat) as seats,
         (select array_agg(distinct status order by status) from membership) as members,
         (select array_agg(distinct state order by state) from referral) as referrals,
         (select count(distinct status) > 4 from subscription) as "manySubscriptionStates",
         (select count(*) > 0 from role where organization_id is not null) as "ownRoles",
         (select max(days) >= 90 from (select count(*) as days
           from family_day group by organization_id, family_id) as d) as "longHistory"`,
    );
    expect(states).toEqual({
      kinds: ['attorney', 'neutral'],
      grants: ['active', 'ended', 'moved'],
      endsAhead: true,
      seats: ['access_ended', 'assigned', 'ended_by_organization', 'subscription_ended'],
      members: ['active', 'invited', 'left', 'suspended'],
      referrals: ['not_counted', 'qualified', 'signed_up'],
      manySubscriptionStates: true,
      ownRoles: true,
      longHistory: true,
    });
    await fresh.drop();
  });
});
