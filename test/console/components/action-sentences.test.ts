/** The sentences of the audit log. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { AuditEntry } from '#domain/audit-log/search.ts';
import { eventTypes } from '#domain/contract/events.ts';
import { operationsOfScope } from '#domain/contract/operations.ts';
import {
  describeAction,
  describeActor,
  formatSentence,
  knownActions,
} from '../../../apps/console/components/action-sentences.ts';
import { reads } from '../../../apps/console/components/reads.ts';

const root = path.resolve(import.meta.dirname, '../../..');
const emptyEntry: AuditEntry = {
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
  webhookName: null,
  clientName: null,
  professionalName: null,
  roleName: null,
};
const describe = (fields: Partial<AuditEntry>) => {
  const entry = { ...emptyEntry, ...fields };
  return `${formatSentence(describeActor(entry))}: ${formatSentence(describeAction(entry))}`;
};

it('describes every action that the code records', () => {
  const written = new Set<string>();
  for (const folder of ['apps', 'workflows'])
    for (const file of readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })) {
      if (!file.endsWith('.ts') || file.endsWith('sentences.ts') || file.includes('migrations')) continue;
      const text = readFileSync(path.join(root, folder, file), 'utf8');
      if (!/record\w*Entry|record\w*Entries|record_\w+_entry|KeyUse\b/.test(text)) continue;
      const form =
        /'((?:key|webhook|delivery|member|role|seat|grant|sign_in|factor|session|recovery_codes|password|sso|organization|import|audit_log)\.[a-z_]+)'/g;
      for (const [, action = ''] of text.matchAll(form)) written.add(action);
    }
  const known = new Set<string>([...knownActions.map(({ action }) => action), ...eventTypes]);
  expect(written.size).toBeGreaterThan(20);
  expect([...written].filter((action) => !known.has(action))).toEqual([]);
  // Actions that functions of the database write (0011).
  for (const action of ['api.rate_limited', 'api.console']) expect(known).toContain(action);
});

it('describes every read of the API', () => {
  expect(Object.values(operationsOfScope).flat().sort()).toEqual(Object.keys(reads).sort());
});

it('a sentence names the actor and the object by their current names', () => {
  expect(describe({ personId: 'usr_1', personName: 'Ada Rivers', keyId: 'k', keyLabel: 'Report' })).toBe(
    'Ada Rivers: Created API key “Report”',
  );
  expect(
    describe({
      action: 'member.role_assign',
      personId: 'usr_1',
      personName: 'Ada',
      memberName: 'Bo',
      detail: { memberId: 'usr_2', key: 'admin' },
    }),
  ).toBe('Ada: Assigned role admin to Bo');
  expect(
    describe({ action: 'api.getFirmRoster', personId: 'usr_1', keyId: 'k', keyLabel: 'Report', status: 200 }),
  ).toBe('API key “Report”: Read the roster of clients (getFirmRoster)');
  expect(describe({ action: 'api.getFirmRoster', keyId: 'k', keyLabel: '', keyHint: 'aln_us_1…2', status: 403 })).toBe(
    'API key “aln_us_1…2”: Was denied access to the roster of clients (getFirmRoster)',
  );
  expect(describe({ action: 'api.rate_limited', keyId: 'k', keyLabel: 'R', status: 429, count: 3 })).toBe(
    'API key “R”: Exceeded the rate limit: 3 requests denied within a minute',
  );
  expect(describe({ action: 'api.console', keyId: 'k', keyLabel: 'R', status: 403, count: 1 })).toBe(
    'API key “R”: Called the console, which accepts no API keys: 1 request denied within a minute',
  );
  const webhook = { webhookName: 'Case management', detail: { webhookId: 'w' } };
  expect(describe({ action: 'webhook.suspend', ...webhook })).toBe(
    'System: Suspended webhook Case management, because its receiver accepted no events for days',
  );
  const seat = { action: 'seat.give', detail: { grantId: 'g' } };
  expect(describe({ ...seat, clientName: 'Nguyen' })).toBe('Support: Assigned a seat to the Nguyen family');
  expect(describe({ ...seat, clientName: 'Rossi family' })).toBe('Support: Assigned a seat to the Rossi family');
  expect(describe(seat)).toBe('Support: Assigned a seat to a client');
  expect(describe({ action: 'import' })).toBe('System: Imported a file');
});

it('an unknown action is shown in a sentence with its code', () => {
  expect(describe({ action: 'thing.of_tomorrow' })).toBe('Support: Unknown event (thing.of_tomorrow)');
  expect(describe({ action: 'constructor' })).toBe('Support: Unknown event (constructor)');
});

it('describes every action even without its details', () => {
  for (const { action } of knownActions) expect(describe({ action })).not.toMatch(/undefined|null|NaN/);
});
