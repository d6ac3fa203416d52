/** Every line of the log says in words what happened. Source: issue of the console, point 5. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { ActivityEntry } from '#domain/activity/search.ts';
import { knownActions, reads, tellWhat, tellWho, textOf } from '#domain/activity/sentences.ts';
import { eventTypes } from '#domain/contract/events.ts';
import { operationsOfScope } from '#domain/contract/operations.ts';

const root = path.resolve(import.meta.dirname, '../../..');
const line: ActivityEntry = {
  id: 'x',
  at: '2026-11-20T08:00:00.000000Z',
  personId: null,
  personName: null,
  keyId: null,
  keyLabel: null,
  keyHint: null,
  action: 'key.create',
  status: null,
  code: null,
  address: null,
  count: 1,
  detail: null,
  memberName: null,
};
const told = (fields: Partial<ActivityEntry>) => {
  const entry = { ...line, ...fields };
  return `${textOf(tellWho(entry))}: ${textOf(tellWhat(entry))}`;
};

it('every action that the code writes has a sentence', () => {
  const written = new Set<string>();
  for (const folder of ['apps', 'workflows'])
    for (const file of readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })) {
      if (!file.endsWith('.ts') || file.endsWith('sentences.ts') || file.includes('migrations')) continue;
      const text = readFileSync(path.join(root, folder, file), 'utf8');
      if (!/recordActivity|recordPersonActivity|insert into activity|KeyUse\b/.test(text)) continue;
      const form =
        /'((?:key|webhook|delivery|member|role|seat|grant|sign_in|factor|session|recovery_codes|password|import|activity)\.[a-z_]+)'/g;
      for (const [, action = ''] of text.matchAll(form)) written.add(action);
    }
  const known = new Set<string>([...knownActions.map(({ action }) => action), ...eventTypes]);
  expect(written.size).toBeGreaterThan(20);
  expect([...written].filter((action) => !known.has(action))).toEqual([]);
  // Those that the database writes by itself (0006, 0013).
  for (const action of ['api.rate_limited', 'api.console']) expect(known).toContain(action);
});

it('every read of the API has its words', () => {
  expect(Object.values(operationsOfScope).flat().sort()).toEqual(Object.keys(reads).sort());
});

it('says who did what, by the names that things have today', () => {
  expect(told({ personId: 'usr_1', personName: 'Ada Rivers', keyId: 'k', keyLabel: 'Report' })).toBe(
    'Ada Rivers: Made the API key “Report”',
  );
  expect(
    told({
      action: 'member.role_assign',
      personId: 'usr_1',
      personName: 'Ada',
      memberName: 'Bo',
      detail: { memberId: 'usr_2', key: 'admin' },
    }),
  ).toBe('Ada: Gave Bo the role admin');
  expect(told({ action: 'api.getFirmRoster', personId: 'usr_1', keyId: 'k', keyLabel: 'Report', status: 200 })).toBe(
    'The key “Report”: Read the roster of clients (getFirmRoster)',
  );
  expect(told({ action: 'api.getFirmRoster', keyId: 'k', keyLabel: '', keyHint: 'aln_us_1…2', status: 403 })).toBe(
    'The key “aln_us_1…2”: Was refused the roster of clients (getFirmRoster)',
  );
  expect(told({ action: 'api.rate_limited', keyId: 'k', keyLabel: 'R', status: 429, count: 3 })).toBe(
    'The key “R”: Was over the limit: 3 calls were refused within a minute, and read nothing',
  );
  expect(told({ action: 'api.console', keyId: 'k', keyLabel: 'R', status: 403, count: 1 })).toBe(
    'The key “R”: Was sent to the console, which accepts no keys: one request was refused within a minute',
  );
  expect(told({ action: 'webhook.park' })).toBe('The system: Suspended a webhook that had accepted nothing for days');
  expect(told({ action: 'import', detail: { file: 'us.json' } })).toBe('An operator: Imported us.json');
});

it('an action that nobody has given a sentence is shown as it is', () => {
  expect(told({ action: 'thing.of_tomorrow' })).toBe('An operator: thing.of_tomorrow');
  expect(told({ action: 'constructor' })).toBe('An operator: constructor');
});

it('no sentence fails on a line without the details that it wants', () => {
  for (const { action } of knownActions) expect(told({ action })).not.toMatch(/undefined|null|NaN/);
});
