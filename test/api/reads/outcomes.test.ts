/** Outcomes, computed a second time here, day by day. */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { outcomesMinimumFamilies, outcomesWindowDays } from '#domain/contract/limits.ts';
import type { Database } from '#domain/db/database.ts';
import { setup } from '#test/setup.ts';

const dayMs = 86_400_000;

/**
 * Times are milliseconds from today's midnight in UTC. Days are relative to today: yesterday is -1.
 */
interface Grant {
  sinceMs: number;
  endMs: number | null;
  /** It never began, whatever its times say. */
  isWithdrawn?: boolean;
}
interface Day {
  day: number;
  messages: [count: number, of: number];
  exchanges: [count: number, of: number];
  expenses: [count: number, of: number];
}
interface Family {
  grants: Grant[];
  days: Day[];
}

const metrics = {
  calmMessages: 'messages',
  exchangesOnTime: 'exchanges',
  expensesAnsweredIn14Days: 'expenses',
} as const;

function expectedOutcomes(families: Family[]) {
  const window = Array.from({ length: outcomesWindowDays }, (_, n) => n - outcomesWindowDays);
  const touches = ({ sinceMs, endMs, isWithdrawn }: Grant, day: number) =>
    !isWithdrawn && Math.max(sinceMs, day * dayMs) < Math.min(endMs ?? Number.POSITIVE_INFINITY, (day + 1) * dayMs);
  const activeDays = families.map(({ grants }) => window.filter((day) => grants.some((grant) => touches(grant, day))));
  const counted = activeDays.filter((days) => days.length > 0).length;
  const shown = counted >= outcomesMinimumFamilies;

  const metric = (name: 'messages' | 'exchanges' | 'expenses') => {
    const perFamily = families.map(({ days }, n) =>
      days
        .filter(({ day }) => activeDays[n]?.includes(day))
        .reduce<[number, number]>((sum, { [name]: [count, of] }) => [sum[0] + count, sum[1] + of], [0, 0]),
    );
    const contributed = perFamily.filter(([, of]) => of > 0);
    if (!shown || contributed.length < outcomesMinimumFamilies) return null;
    const count = contributed.reduce((sum, [part]) => sum + part, 0);
    const of = contributed.reduce((sum, [, part]) => sum + part, 0);
    return { count, of, percent: Math.floor((2_000 * count + of) / (2 * of)) / 10 }; // half up, in integers
  };
  return {
    windowDays: outcomesWindowDays,
    families: counted,
    minimumFamilies: outcomesMinimumFamilies,
    shown,
    ...Object.fromEntries(Object.entries(metrics).map(([field, name]) => [field, metric(name)])),
  };
}

// Days near both edges of the window occur as often as all other days together.
const day = fc.oneof(fc.constantFrom(-92, -91, -90, -89, -2, -1, 0), fc.integer({ min: -95, max: 0 }));
const timeOfDay = fc.constantFrom(0, 1, dayMs / 2, dayMs - 1);
const grant = fc
  .tuple(
    day,
    timeOfDay,
    fc.oneof(fc.constant(null), fc.constantFrom(0, 1, dayMs - 1, dayMs, dayMs + 1), fc.nat(95 * dayMs)),
    fc.constantFrom(true, false, false, false),
  )
  .map(([startDay, time, lengthMs, isWithdrawn]) => {
    const sinceMs = startDay * dayMs + time;
    return { sinceMs, endMs: lengthMs === null ? null : sinceMs + lengthMs, isWithdrawn };
  });
const part = fc.tuple(fc.nat(9), fc.nat(9)).map(([a, b]): [number, number] => [Math.min(a, b), Math.max(a, b)]);
const counts = fc.oneof(fc.constant<[number, number]>([0, 0]), part);
const familyDay = fc.record({ day, messages: counts, exchanges: counts, expenses: counts });
const family = fc.record({
  grants: fc.array(grant, { minLength: 1, maxLength: 3 }),
  days: fc.uniqueArray(familyDay, { selector: ({ day }) => day, maxLength: 12 }),
});

/** Writes the families of a new organization in a few statements. */
async function writeFamilies({ pool }: Database, orgId: string, userId: string, families: Family[]): Promise<void> {
  const ids = families.map(() => randomUUID());
  await pool.query('insert into family select $1, id, $$A family$$ from unnest($2::uuid[]) as id', [orgId, ids]);
  const grants = families.flatMap(({ grants }, n) => grants.map((grant) => ({ family: ids[n], ...grant })));
  await pool.query(
    `insert into client_grant (organization_id, kind, professional_id, family_id, since, ends_at, status, end_reason)
     select $1, 'neutral', $2, g.family, today + g."sinceMs" * interval '1 ms', today + g."endMs" * interval '1 ms',
       case when g."isWithdrawn" then 'withdrawn'
         when today + g."endMs" * interval '1 ms' <= now() then 'ended' else 'active' end,
       case when not coalesce(g."isWithdrawn", false) and today + g."endMs" * interval '1 ms' <= now() then 'moved' end
     from json_to_recordset($3) as g (family uuid, "sinceMs" bigint, "endMs" bigint, "isWithdrawn" boolean),
       lateral (select date_trunc('day', now() at time zone 'UTC') at time zone 'UTC' as today) t`,
    [orgId, userId, JSON.stringify(grants)],
  );
  const days = families.flatMap(({ days }, n) =>
    days.map(({ day, messages, exchanges, expenses }) => [ids[n], day, ...messages, ...exchanges, ...expenses]),
  );
  await pool.query(
    `insert into family_day (organization_id, family_id, day, calm_messages, messages, exchanges_on_time, exchanges,
      expenses_answered_in_14_days, expenses_due)
     select $1, (d->>0)::uuid, (now() at time zone 'UTC')::date + (d->>1)::int, (d->>2)::int, (d->>3)::int,
       (d->>4)::int, (d->>5)::int, (d->>6)::int, (d->>7)::int
     from json_array_elements($2) as d`,
    [orgId, JSON.stringify(days)],
  );
}

async function setupOutcomes() {
  const { api, make, owner } = await setup();
  return async (families: Family[]): Promise<unknown> => {
    const creator = await make.member();
    const { key } = await make.apiKey({ creator, scopes: ['org.analytics.read'] });
    await writeFamilies(owner, creator.orgId, creator.userId, families);
    const response = await api.get(`/v1/orgs/${creator.orgId}/outcomes`, { key });
    expect(response.status).toBe(200);
    return response.json();
  };
}

it('outcomes equal a computation day by day, for any grants and counts', async () => {
  const readOutcomes = await setupOutcomes();
  let shown = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(family, { minLength: 3, maxLength: 12, size: 'max' }), async (families) => {
      const today = new Date().toISOString().slice(0, 10);
      const outcomes = await readOutcomes(families);
      fc.pre(new Date().toISOString().slice(0, 10) === today); // midnight passed meanwhile
      expect(outcomes).toEqual(expectedOutcomes(families));
      if ((outcomes as { calmMessages: unknown }).calmMessages !== null) shown += 1;
    }),
    { numRuns: 120 },
  );
  expect(shown).toBeGreaterThan(5);
}, 60_000);

const lasting: Grant = { sinceMs: -200 * dayMs, endMs: null };
const quiet: [number, number] = [0, 0];
const familyWith = (messages: [number, number], grants = [lasting]): Family => ({
  grants,
  days: [{ day: -5, messages, exchanges: quiet, expenses: quiet }],
});
const times = (count: number, one: Family) => Array.from({ length: count }, () => one);
const calm = async (families: Family[]) => {
  const outcomes = (await (
    await setupOutcomes()
  )(families)) as { shown: boolean; families: number; calmMessages: unknown };
  return { shown: outcomes.shown, families: outcomes.families, calmMessages: outcomes.calmMessages };
};

it('outcomes are withheld for four families and shown for five', async () => {
  expect(await calm(times(4, familyWith([1, 2])))).toEqual({ shown: false, families: 4, calmMessages: null });
  expect(await calm(times(5, familyWith([1, 2])))).toMatchObject({
    shown: true,
    calmMessages: { count: 5, of: 10, percent: 50 },
  });
});

it('a metric with fewer than five contributing families is withheld, also when five are counted', async () => {
  const four = [...times(4, familyWith([1, 2])), ...times(3, familyWith(quiet))];
  expect(await calm(four)).toEqual({ shown: true, families: 7, calmMessages: null });
  expect(await calm(times(9, familyWith(quiet)))).toEqual({ shown: true, families: 9, calmMessages: null });
});

it.each([
  // 1 of 16 is 6.25 % and 3 of 16 is 18.75 %: half a tenth rounds up.
  [
    [
      [0, 3],
      [0, 3],
      [0, 3],
      [0, 3],
      [1, 4],
    ],
    6.3,
  ],
  [
    [
      [1, 3],
      [1, 3],
      [1, 3],
      [0, 3],
      [0, 4],
    ],
    18.8,
  ],
  [
    [
      [1, 1],
      [1, 1],
      [1, 1],
      [1, 1],
      [1, 1],
    ],
    100,
  ],
  [
    [
      [0, 1],
      [0, 1],
      [0, 1],
      [0, 1],
      [0, 1],
    ],
    0,
  ],
  [
    [
      [1, 400],
      [0, 400],
      [0, 400],
      [0, 400],
      [0, 400],
    ],
    0.1,
  ],
] as [[number, number][], number][])('round half up to one decimal: %j gives %d', async (parts, percent) => {
  expect(await calm(parts.map((one) => familyWith(one)))).toMatchObject({ calmMessages: { percent } });
});

it('a family counts only by a grant that lasts within the window', async () => {
  const edge = -outcomesWindowDays * dayMs;
  const outside: Grant[] = [
    { sinceMs: -5 * dayMs, endMs: -5 * dayMs },
    { sinceMs: edge - 9 * dayMs, endMs: edge },
    { sinceMs: 0, endMs: null },
  ];
  const inside: Grant[] = [
    { sinceMs: edge - 9 * dayMs, endMs: edge + 1 },
    { sinceMs: -1, endMs: null },
  ];
  const families = [...outside, ...inside].map((one) => familyWith([1, 1], [one]));
  expect(await calm(families)).toMatchObject({ families: inside.length });
});
