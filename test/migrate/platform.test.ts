/** Schema `platform`: wrong, repeated and concurrent calls. */
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import fc from 'fast-check';
import type pg from 'pg';
import { describe, expect, it } from 'vitest';
import {
  grantEndReasons,
  grantKinds,
  memberStatuses,
  organizationKinds,
  referralStates,
  seatEndReasons,
  subscriptionStatuses,
} from '#domain/contract/choices.ts';
import { canonicalEmail, findEmailProblem } from '#domain/contract/email.ts';
import { familyDayFields } from '#domain/contract/platform.ts';
import { platformErrors } from '#domain/contract/platform-errors.ts';
import { permissions } from '#domain/contract/scopes.ts';
import { setupPlatform, type PlatformValues as Values } from '#test/platform.ts';
import { knownActions } from '../../apps/console/components/action-sentences.ts';
import { goldenText } from '../golden/stable.ts';
import { valuesOfType } from '../security/database/hostile-values.ts';
import { readPlatformFunctions, readPlatformViews } from './platform-catalog.ts';

const unknown = 'ffffffff-0000-4000-8000-000000000000';

const since = '2026-01-01T00:00:00Z';

const systemRole = '0a1f0000-0000-7000-8000-000000000001';

/** Calls of every put function in an organization, with what may change afterwards. */
const putCalls = (organization: string, slug: string, member: string, family: string, codeId: string) =>
  ({
    put_organization: [{ organization, name: 'Harbor', slug, kind: 'law_firm' }, { name: 'Harbour' }],
    put_role: [
      { organization, id: randomUUID(), key: 'clerk', name: 'Clerk', description: '', permissions: ['org.read'] },
      { name: 'Clerks', permissions: ['org.read', 'org.clients.read'] },
    ],
    put_member: [
      { organization, member, name: 'Ada', email: 'ada@example.org', roles: ['owner'] },
      { status: 'suspended', roles: ['billing', 'member'], email: 'Ada.R@Example.org' },
    ],
    put_family: [{ organization, id: family, name: 'Rossi' }, { name: 'Rossi-Verdi' }],
    put_plan: [
      { organization, invoiced: 5 },
      { invoiced: 6, price_currency: 'usd', price_cents: 900 },
    ],
    put_subscription: [
      { organization, id: randomUUID(), status: 'active', quantity: 2 },
      { status: 'canceled', renews_at: '2027-01-01T00:00:00Z' },
    ],
    put_referral_code: [{ organization, id: codeId, code: 'harbor', link: 'https://x.example/r' }, { active: false }],
    put_referral: [{ organization, id: randomUUID(), code_id: codeId, state: 'signed_up' }, { state: 'qualified' }],
    put_invoice: [
      { organization, id: randomUUID(), month: '2026-09', currency: 'usd', share_cents: 100 },
      { month: '2026-10', share_cents: -100 },
    ],
  }) satisfies Record<string, [Values, Values]>;

describe('schema platform', () => {
  it('has the functions, views and codes of test/golden/platform.json', async () => {
    const { owner } = await setupPlatform();
    const functions = await readPlatformFunctions(owner.pool);
    const views = await readPlatformViews(owner.pool);
    await expect(
      goldenText({
        functions: Object.fromEntries(
          functions.map(({ name, arguments: signature, codes }) => [name, { arguments: signature, codes }]),
        ),
        views: Object.fromEntries(
          [...views].map(([view, of]) => [view, of.map(({ column, type }) => `${column} ${type}`)]),
        ),
      }),
    ).toMatchFileSnapshot(path.join(import.meta.dirname, '../golden/platform.json'));
  });

  it('names what is wrong with a call, and writes nothing', async () => {
    const { call, create, count, errors, listEvents, owner } = await setupPlatform();
    const { organization, member, family, slug } = await create(1);
    const other = await create();
    const [grant, ended, elsewhere, seat, role, codeId] = Array.from({ length: 6 }, () => randomUUID());
    const second = randomUUID();
    const start = { organization, kind: 'attorney', professional: member, family, since };
    await call('put_family', { organization, id: second, name: 'Verdi' });
    await call('start_grant', { ...start, id: grant });
    await call('start_grant', { ...start, id: ended });
    await call('end_grant', { organization, id: ended });
    await call('start_grant', { ...start, id: elsewhere, ...pick(other) });
    await call('give_seat', { organization, id: seat, grant_id: grant });
    const full = randomUUID();
    await call('start_grant', { ...start, id: full, family: second });
    const clerk = { organization, id: role, key: 'clerk', name: 'Clerk', description: '', permissions: ['org.read'] };
    await call('put_role', clerk);
    const put = { organization, member, name: 'Ada', email: 'ada@example.org', roles: ['owner'] };
    await call('put_member', { ...put, member: 'usr_clerk', roles: ['clerk'] });
    await call('put_referral_code', { organization, id: codeId, code: 'a', link: 'x' });
    const largest = Number.MAX_SAFE_INTEGER;
    const invoice = { organization, id: randomUUID(), month: '2026-09', currency: 'usd', share_cents: largest };
    await call('put_invoice', invoice);
    const refund = { ...invoice, id: randomUUID(), share_cents: -largest };
    await call('put_invoice', refund);
    await call('put_invoice', { ...invoice, id: randomUUID(), share_cents: 1 });
    const subscription = { organization, id: randomUUID(), status: 'active', quantity: 0 };
    await call('put_subscription', subscription);
    const referral = { organization, id: randomUUID(), code_id: codeId, state: 'signed_up' };
    await call('put_referral', referral);
    const otherCode = randomUUID();
    await call('put_referral_code', { organization: other.organization, id: otherCode, code: 'b', link: 'x' });
    // Of an import that had no `seatPlan`.
    const planless = randomUUID();
    await owner.pool.query(`insert into organization values ($1, 'x', $2, 'court', 'active')`, [
      planless,
      `org-${planless}`,
    ]);
    const day = {
      family,
      day: '2026-11-20',
      messages: 2,
      calm_messages: 1,
      exchanges: 0,
      exchanges_on_time: 0,
      expenses_due: 0,
      expenses_answered_in_14_days: 0,
    };
    const days = (...items: unknown[]) => ({ organization, days: JSON.stringify(items) });
    const id = randomUUID();
    const future = '2999-01-01T00:00:00Z';
    const before = '2025-01-01T00:00:00Z';
    const cases: [string, Values, string][] = [
      ['start_grant', { ...start, id, family: unknown }, `P0002 no_such_family: ${unknown}`],
      ['start_grant', { ...start, id, professional: other.member }, 'P0002 no_such_member: professional'],
      ['start_grant', { ...start, id, professional: null, kind: null }, '22023 argument_missing: kind, professional'],
      ['start_grant', { ...start, id, kind: 'judge' }, '22023 argument_invalid: kind'],
      ['start_grant', { ...start, id, since: '-infinity' }, '22023 argument_invalid: since'],
      ['start_grant', { ...start, id, ends_at: before }, '22023 ends_before_it_begins: ends_at'],
      ['start_grant', { ...start, id: grant, kind: 'neutral' }, '23505 grant_differs: kind'],
      ['start_grant', { ...start, id: ended, since: before }, '23505 grant_differs: since'],
      ['start_grant', { ...start, id: elsewhere }, `23505 id_taken: ${other.organization}`],
      ['start_grant', { ...start, id, organization: unknown }, `P0002 no_such_organization: ${unknown}`],
      ['plan_end', { organization, id: ended, ends_at: future }, expect.stringMatching(/^23514 grant_has_ended: /)],
      ['plan_end', { organization, id: grant, ends_at: before }, '22023 ends_in_past: ends_at'],
      ['plan_end', { organization, id: elsewhere, ends_at: future }, `P0002 no_such_grant: ${elsewhere}`],
      ['end_grant', { organization, id: elsewhere }, `P0002 no_such_grant: ${elsewhere}`],
      ['end_grant', { organization, id: unknown }, `P0002 no_such_grant: ${unknown}`],
      ['end_grant', { organization, id: grant, ended_at: future }, '22023 lies_ahead: ended_at'],
      ['end_grant', { organization, id: grant, ended_at: before }, '22023 ends_before_it_begins: ended_at'],
      ['end_grant', { organization, id: grant, reason: 'x' }, '22023 argument_invalid: reason'],
      ['end_grant', { organization, id: ended, reason: 'moved' }, expect.stringMatching(/^23514 grant_has_ended: /)],
      [
        'move_grant',
        { organization, id: grant, new_id: id, professional: member },
        '23514 same_professional: professional',
      ],
      ['move_grant', { organization, id: grant, new_id: id, professional: 'x' }, 'P0002 no_such_member: professional'],
      ['move_grant', { organization, id: grant, new_id: grant, professional: 'x' }, '22023 argument_invalid: new_id'],
      [
        'move_grant',
        { organization, id: grant, new_id: full, professional: 'usr_clerk' },
        '23505 grant_differs: professional, family, since',
      ],
      [
        'move_grant',
        { organization, id: ended, new_id: id, professional: 'x' },
        expect.stringMatching(/^23514 grant_has_ended: /),
      ],
      ['give_seat', { organization, id, grant_id: ended }, '23514 grant_not_active: ended'],
      ['give_seat', { organization, id, grant_id: grant }, `23514 family_has_seat: ${seat}`],
      ['give_seat', { organization, id, grant_id: full }, '23514 no_free_seat: seats: 1'],
      ['give_seat', { organization, id, grant_id: elsewhere }, `P0002 no_such_grant: ${elsewhere}`],
      ['give_seat', { organization, id: seat, grant_id: full }, '23505 seat_differs: grant_id'],
      [
        'give_seat',
        { organization: other.organization, id: seat, grant_id: elsewhere },
        `23505 id_taken: ${organization}`,
      ],
      ['give_seat', { organization, id, grant_id: grant, given_at: future }, '22023 lies_ahead: given_at'],
      ['end_seat', { organization: other.organization, id: seat }, `P0002 no_such_seat: ${seat}`],
      ['end_seat', { organization, id: unknown }, `P0002 no_such_seat: ${unknown}`],
      ['end_seat', { organization, id: seat, ended_at: before }, '22023 ends_before_it_begins: ended_at'],
      ['put_organization', { organization, name: ' ', slug, kind: 'court' }, '22023 argument_invalid: name'],
      ['put_organization', { organization, name: 'x', slug: other.slug, kind: 'court' }, '23505 slug_taken: slug'],
      ['put_organization', { organization, name: 'x', slug: 'Harbor', kind: 'court' }, '22023 argument_invalid: slug'],
      ['put_role', { ...clerk, id }, '23505 key_taken: key'],
      ['put_role', { ...clerk, id, key: 'owner' }, '23505 key_taken: key'],
      ['put_role', { ...clerk, permissions: ['org.read', 'org.read'] }, '22023 argument_invalid: permissions[1]'],
      ['put_role', { ...clerk, permissions: ['org.read', 'org.destroy'] }, '22023 argument_invalid: permissions[1]'],
      ['put_role', { ...clerk, permissions: [null] }, '22023 argument_invalid: permissions[0]'],
      ['put_role', { ...clerk, permissions: '{{org.read}}' }, '22023 argument_invalid: permissions'],
      ['put_role', { ...clerk, organization: other.organization, key: 'x' }, `23505 id_taken: ${organization}`],
      ['put_role', { ...clerk, id: systemRole, key: 'x' }, '23505 id_taken: system'],
      ['delete_role', { organization, id: role }, '23514 role_in_use: members: 1'],
      ['delete_role', { organization: other.organization, id: role }, `P0002 no_such_role: ${role}`],
      ['delete_role', { organization, id: systemRole }, `P0002 no_such_role: ${systemRole}`],
      ['put_member', { ...put, roles: ['owner', 'unknown', role] }, 'P0002 no_such_role: roles[1]'],
      ['put_member', { ...put, roles: ['owner', 'owner'] }, '22023 argument_invalid: roles[1]'],
      ['put_member', { ...put, email: 'Ada' }, '22023 argument_invalid: email'],
      ['put_member', { ...put, status: 'asleep' }, '22023 argument_invalid: status'],
      ['put_member', { ...put, name: 'x'.repeat(10_001) }, '22023 argument_invalid: name'],
      ['put_member', { ...put, organization: unknown }, `P0002 no_such_organization: ${unknown}`],
      ['put_family', { organization, id: family, name: '\n' }, '22023 argument_invalid: name'],
      ['put_plan', { organization, invoiced: -1 }, '22023 argument_invalid: invoiced'],
      ['put_plan', { organization, invoiced: 1, price_cents: 1 }, '22023 argument_invalid: price_cents'],
      ['put_subscription', { organization, id, status: 'x', quantity: 1 }, '22023 argument_invalid: status'],
      ['put_subscription', { organization, id, status: 'active', quantity: 1e9 }, '22023 argument_invalid: quantity'],
      ['put_referral_code', { organization, id, code: 'a', link: 'x' }, '23505 code_taken: code'],
      ...(
        [
          ['put_subscription', { ...subscription, quantity: 2 }],
          ['put_referral_code', { id: codeId, code: 'a', link: 'x' }],
          ['put_referral', { ...referral, code_id: otherCode }],
          ['put_invoice', invoice],
        ] as [string, Values][]
      ).map(([name, values]): [string, Values, string] => [
        name,
        { ...values, organization: other.organization },
        `23505 id_taken: ${organization}`,
      ]),
      ['give_seat', { organization: planless, id, grant_id: grant }, `P0002 no_plan: ${planless}`],
      ['give_seat', { organization: unknown, id, grant_id: grant }, `P0002 no_such_organization: ${unknown}`],
      ['erase_family', { family: unknown, reference: 'c' }, `P0002 no_such_family: ${unknown}`],
      ['erase_family', { family, reference: 'Rossi family' }, '22023 argument_invalid: reference'],
      ['put_referral', { organization, id, code_id: unknown, state: 'signed_up' }, `P0002 no_such_code: ${unknown}`],
      ['put_referral', { organization, id, code_id: codeId, state: 'x' }, '22023 argument_invalid: state'],
      ['put_invoice', { ...invoice, id, month: '2026-13' }, '22023 argument_invalid: month'],
      ['put_invoice', { ...invoice, id }, '23514 sum_too_large: share_cents'],
      ['put_invoice', { ...refund, month: '2026-10' }, '23514 sum_too_large: share_cents'],
      ['put_family_days', { organization, days: '{}' }, '22023 argument_invalid: days'],
      ['put_family_days', days(day, 3), '22023 argument_invalid: days[1].family'],
      ['put_family_days', days({ ...day, day: '2026-02-30' }), '22023 argument_invalid: days[0].day'],
      ['put_family_days', days({ ...day, messages: '2' }), '22023 argument_invalid: days[0].messages'],
      ['put_family_days', days({ ...day, messages: -1 }), '22023 argument_invalid: days[0].messages'],
      ['put_family_days', days({ ...day, exchanges: 1_000_001 }), '22023 argument_invalid: days[0].exchanges'],
      ['put_family_days', days({ ...day, messages: 1.5 }), '22023 argument_invalid: days[0].messages'],
      ['put_family_days', days({ ...day, calm_messages: 3 }), '22023 argument_invalid: days[0].calm_messages'],
      ['put_family_days', days({ ...day, note: 'x' }), '22023 argument_invalid: days[0].note'],
      ['put_family_days', days(day, day), '22023 argument_invalid: days[1].day'],
      ['put_family_days', days({ ...day, family: unknown }), `P0002 no_such_family: ${unknown}`],
    ];
    const state = async () => [await listEvents(), await count('audit_entry'), await count('person')];
    const initial = await state();
    for (const [name, values, answer] of cases)
      expect([name, values, await call(name, values)]).toEqual([name, values, answer]);
    expect(await state()).toEqual(initial);

    const texts = errors.map(
      ({ constraint, code, message, hint }) => [`${constraint} (${code})`, `${message}. ${hint}`] as const,
    );
    const byCode = Map.groupBy(texts, ([code]) => code);
    const listed = [...byCode].map(([code, of]) => [
      code,
      [...new Set(of.map(([, text]) => text.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '<id>')))].sort(),
    ]);
    await expect(goldenText(Object.fromEntries(listed.sort()))).toMatchFileSnapshot(
      path.join(import.meta.dirname, '../golden/platform-errors.json'),
    );
    // Every code has its case, here or in the tests of erasures and of isolation levels.
    const ofOtherTests = ['family_erased', 'too_many_erasures', 'wrong_isolation'];
    const missing = Object.keys(platformErrors).filter(
      (code) => !ofOtherTests.includes(code) && !errors.some(({ constraint }) => constraint === code),
    );
    expect(missing).toEqual([]);
  });

  it('lists in a hint what an argument may be, as the contract has it', async () => {
    const { call, create, errors } = await setupPlatform();
    const { organization, family } = await create();
    const id = randomUUID();
    const dayFields = Object.keys(familyDayFields);
    const day = { ...Object.fromEntries(dayFields.map((name) => [name, 0])), family, day: '2026-11-20', note: 0 };
    const roleOf = { key: 'clerk', name: 'Clerk', description: '', permissions: ['x'] };
    const grant = { professional: 'usr_ada', family: id, kind: 'x' };
    const cases: [string, Values, readonly string[]][] = [
      ['put_organization', { name: 'x', slug: 'x', kind: 'x' }, organizationKinds],
      ['put_member', { member: 'x', name: 'x', email: 'a@b.example', roles: [], status: 'x' }, memberStatuses],
      ['put_role', { id, ...roleOf }, permissions],
      ['start_grant', { id, ...grant }, grantKinds],
      ['end_grant', { id, reason: 'x' }, grantEndReasons],
      ['end_seat', { id, reason: 'x' }, seatEndReasons],
      ['put_subscription', { id, status: 'x', quantity: 1 }, subscriptionStatuses],
      ['put_referral', { id, code_id: id, state: 'x' }, referralStates],
      ['put_family_days', { days: JSON.stringify([day]) }, dayFields],
    ];
    for (const [name, values, allowed] of cases) {
      expect(await call(name, { organization, ...values })).toMatch(/^22023 argument_invalid: /);
      expect([name, errors.at(-1)?.hint]).toEqual([name, expect.stringContaining(`One of ${allowed.join(', ')}.`)]);
    }
  });

  it('keeps the seats that are given when a plan shrinks and a subscription ends, until the platform ends them', async () => {
    const { call, create, client, listEvents } = await setupPlatform();
    const { organization, member: professional, family } = await create(1);
    const [second, subscription] = [randomUUID(), randomUUID()];
    const grants: [id: string, family: string, seat: string][] = [
      [randomUUID(), family, randomUUID()],
      [randomUUID(), second, randomUUID()],
    ];
    await call('put_family', { organization, id: second, name: 'Verdi' });
    await call('put_subscription', { organization, id: subscription, status: 'active', quantity: 1 });
    for (const [id, of, seat] of grants) {
      await call('start_grant', { organization, id, kind: 'attorney', professional, family: of, since });
      expect(await call('give_seat', { organization, id: seat, grant_id: id })).toBe('created');
    }
    const caused = await listEvents();
    expect(await call('put_plan', { organization, invoiced: 0 })).toBe('changed');
    const ended = { organization, id: subscription, status: 'canceled', quantity: 1 };
    expect(await call('put_subscription', ended)).toBe('changed');
    const countGiven = async () => (await client.query('select from platform.seat where ended_at is null')).rowCount;
    expect([await countGiven(), await listEvents()]).toEqual([2, caused]);
    for (const [, , id] of grants)
      expect(await call('end_seat', { organization, id, reason: 'subscription_ended' })).toBe('changed');
    expect([await countGiven(), await listEvents()]).toEqual([0, [...caused, 'seat.ended', 'seat.ended']]);
    const [id] = grants[0] ?? [];
    expect(await call('give_seat', { organization, id: randomUUID(), grant_id: id })).toBe(
      '23514 no_free_seat: seats: 0',
    );
  });

  it('has no exception block in a function, and no default that is computed', async () => {
    const { owner } = await setupPlatform();
    const { rows } = await owner.pool.query<{ name: string; source: string; signature: string }>(
      `select proname as name, pg_get_functiondef(oid) as source, pg_get_function_arguments(oid) as signature
       from pg_proc where pronamespace = 'platform'::regnamespace`,
    );
    expect(rows.length).toBeGreaterThan(30);
    expect(rows.filter(({ source }) => /\bexception\s+when\b/i.test(source)).map(({ name }) => name)).toEqual([]);
    const defaults = rows.flatMap(({ signature }) => [...signature.matchAll(/DEFAULT ([^,]+)/g)].map(([, of]) => of));
    expect(defaults.length).toBeGreaterThan(10);
    expect(defaults.filter((of = '') => !/^(NULL|true|false|'\w+')(::[\w ]+)?$/.test(of))).toEqual([]);
  });

  it('creates, repeats and changes each kind of row, with an audit entry for what changed', async () => {
    const { owner, call, create, client } = await setupPlatform();
    const { organization, member, family, slug } = await create();
    const puts = putCalls(organization, slug, member, family, randomUUID());
    const listEntries = async () =>
      (await owner.pool.query(`select action, person_id as person from audit_entry order by id`)).rows;
    for (const [name, [values, change]] of Object.entries(puts)) {
      expect([name, await call(name, values)]).toEqual([name, expect.stringMatching(/^(created|unchanged)$/)]);
      const entries = await listEntries();
      expect([name, await call(name, values)]).toEqual([name, 'unchanged']);
      expect(await listEntries()).toEqual(entries);
      expect([name, await call(name, { ...values, ...change })]).toEqual([name, 'changed']);
      expect(await listEntries()).toEqual([...entries, { action: `platform.${name}`, person: null }]);
      expect([name, await call(name, { ...values, ...change })]).toEqual([name, 'unchanged']);
      const { rows } = await client.query(
        `select to_jsonb(v) as row from platform.${name.replace('put_', '')} v where organization = $1`,
        [organization],
      );
      const shown = { ...change, ...('email' in change ? { email: 'ada.r@example.org' } : {}) };
      for (const [column, value] of Object.entries(shown))
        expect(rows.map(({ row }) => [name, column, String(row[column]).slice(0, 19)])).toContainEqual([
          name,
          column,
          String(value).slice(0, 19),
        ]);
    }
    const role = puts.put_role[0].id;
    expect(await call('delete_role', { organization, id: role })).toBe('changed');
    expect(await call('delete_role', { organization, id: role })).toBe('unchanged');
    const actions = (await listEntries()).map(({ action }) => action);
    const known = knownActions.map(({ action }) => action);
    expect(actions.filter((action) => !known.includes(action))).toEqual([]);
  });

  it('writes an entry of the system for each call of access, seats and days that changes something', async () => {
    const { owner, call, count, create } = await setupPlatform();
    const { organization, member: professional, family } = await create();
    await call('put_member', { organization, member: 'usr_bo', name: 'Bo', email: 'bo@example.org', roles: [] });
    const [id, next, seat] = Array.from({ length: 3 }, () => randomUUID());
    const day = Object.fromEntries(Object.keys(familyDayFields).map((name) => [name, 1]));
    const days = JSON.stringify([{ ...day, family, day: '2026-11-20' }]);
    const calls: [string, Values][] = [
      ['start_grant', { id, kind: 'attorney', professional, family, since }],
      ['give_seat', { id: seat, grant_id: id }],
      ['plan_end', { id, ends_at: '2999-01-01T00:00:00Z' }],
      ['end_seat', { id: seat }],
      ['move_grant', { id, new_id: next, professional: 'usr_bo' }],
      ['end_grant', { id: next }],
      ['put_family_days', { days }],
    ];
    const before = await count('audit_entry');
    for (const [name, values] of calls) {
      expect([name, await call(name, { organization, ...values })]).toEqual([name, expect.stringMatching(/^c\w+d$/)]);
      expect([name, await call(name, { organization, ...values })]).toEqual([name, 'unchanged']);
    }
    const { rows } = await owner.pool.query(
      `select action, person_id as person from audit_entry where action like 'platform.%' order by id offset $1`,
      [before],
    );
    const expected = calls.flatMap(([name]) => (name === 'move_grant' ? ['start_grant', name] : [name]));
    expect(rows).toEqual(expected.map((name) => ({ action: `platform.${name}`, person: null })));
  });

  it('writes the new name of a member in one entry', async () => {
    const { owner, call, create } = await setupPlatform();
    const { organization, member } = await create();
    await call('put_member', { organization, member, name: 'Ada R.', email: 'ada@example.org', roles: ['owner'] });
    const { rows } = await owner.pool.query(`select action from audit_entry where names ? 'renamed'`);
    expect(rows).toEqual([{ action: 'platform.put_member' }]);
  });

  it('repeats of grants and seats change nothing, in any order and at the same time', async () => {
    const { call, connect, create, listEvents } = await setupPlatform();
    const { organization, member, family } = await create();
    const clients = await Promise.all([connect(), connect(), connect(), connect()]);
    const together = async (name: string, values: Values) =>
      (await Promise.all(clients.map((by) => call(name, values, by)))).toSorted();
    const [first, second, third, seat] = Array.from({ length: 4 }, () => randomUUID());
    const base = { organization, kind: 'attorney', professional: member, family };
    const colleague = { organization, member: 'usr_bo', name: 'Bo', email: 'bo@example.org', roles: [] };
    expect(await together('put_member', colleague)).toEqual(['created', 'unchanged', 'unchanged', 'unchanged']);
    expect(await together('start_grant', { ...base, id: first, since })).toEqual(['created', ...unchangedThrice]);
    expect(await together('give_seat', { organization, id: seat, grant_id: first })).toEqual([
      'created',
      ...unchangedThrice,
    ]);
    const plan = { organization, id: first, ends_at: '2999-01-01T00:00:00Z' };
    expect(await together('plan_end', plan)).toEqual(['changed', ...unchangedThrice]);
    const move = { organization, id: first, new_id: second, professional: 'usr_bo' };
    expect(await together('move_grant', move)).toEqual(['changed', ...unchangedThrice]);
    expect(await together('end_grant', { organization, id: second })).toEqual(['changed', ...unchangedThrice]);
    expect(await call('start_grant', { ...base, id: first, since })).toBe('unchanged');
    expect(await call('start_grant', { ...base, id: third })).toBe('created');
    expect(await call('start_grant', { ...base, id: third })).toBe('unchanged');
    expect(await call('end_seat', { organization, id: seat })).toBe('unchanged');
    expect(await listEvents()).toEqual([
      'client.started',
      'seat.given',
      'seat.ended',
      'client.ended',
      'client.started',
      'client.ended',
      'client.started',
    ]);
  });

  it('finds a grant before it checks times, and says when the end of a repeat is not the one that is planned', async () => {
    const { call, create, client } = await setupPlatform();
    const { organization, member: professional, family } = await create();
    const [id, past] = [randomUUID(), randomUUID()];
    const start = { organization, id, kind: 'attorney', professional, family };
    const [soon, late] = ['2998-01-01T00:00:00Z', '2999-01-01T00:00:00Z'];
    const differs = '23505 grant_differs: ends_at';
    expect(await call('start_grant', start)).toBe('created');
    expect(await call('start_grant', { ...start, ends_at: soon })).toBe(differs);
    expect(await call('plan_end', { organization, id, ends_at: soon })).toBe('changed');
    expect(await call('start_grant', { ...start, ends_at: soon })).toBe('unchanged');
    expect(await call('start_grant', { ...start, ends_at: late })).toBe(differs);
    expect(await call('start_grant', { ...start, ends_at: late, kind: 'neutral' })).toBe(
      '23505 grant_differs: kind, ends_at',
    );
    expect(await call('start_grant', start)).toBe('unchanged');
    expect(await call('end_grant', { organization, id })).toBe('changed');
    for (const ends_at of [soon, late, null])
      expect(await call('start_grant', { ...start, ends_at })).toBe('unchanged');
    // Access that ended before the call: the repeat without its begin is no access that begins now.
    const ended = { ...start, id: past, since, ends_at: '2026-02-01T00:00:00Z' };
    expect(await call('start_grant', ended)).toBe('created');
    expect(await call('start_grant', { ...ended, since: null })).toBe('unchanged');
    const { rows } = await client.query('select status from platform.client_grant');
    expect(rows).toEqual([{ status: 'ended' }, { status: 'ended' }]);
  });

  it('a seat that is given beside a transaction that ends access and changes the plan never deadlocks', async () => {
    const { call, connect, create } = await setupPlatform();
    const { organization, member: professional, family } = await create();
    const giver = await connect();
    const ender = await connect();
    const results = new Set<string>();
    const endAndPlan = async (id: string, invoiced: number) => {
      await ender.query('begin');
      const ended = await call('end_grant', { organization, id }, ender);
      const planned = await call('put_plan', { organization, invoiced }, ender);
      await ender.query('commit');
      return [ended, planned];
    };
    for (let round = 0; round < 60; round += 1) {
      const [id, seat] = [randomUUID(), randomUUID()];
      await call('start_grant', { organization, id, kind: 'attorney', professional, family, since });
      const given = call('give_seat', { organization, id: seat, grant_id: id }, giver);
      expect(await endAndPlan(id, 10 + round)).toEqual(['changed', 'changed']);
      results.add(await given);
    }
    expect([...results].filter((result) => !['created', '23514 grant_not_active: ended'].includes(result))).toEqual([]);
  });

  it('accepts only addresses with which a member can sign in, and stores them as the import does', async () => {
    const { call, client, create } = await setupPlatform();
    const { organization, member } = await create();
    const address = fc.oneof(
      fc.emailAddress(),
      fc.emailAddress().map((text) => ` ${text.toUpperCase()} `),
      fc
        .tuple(fc.string(), fc.constantFrom('example.org', 'xn--a.example', 'bücher.example', 'a..b', '1.2.3.4', 'x'))
        .map((parts) => parts.join('@')),
    );
    await fc.assert(
      fc.asyncProperty(address, async (email) => {
        const result = await call('put_member', { organization, member, name: 'Ada', email, roles: ['owner'] });
        if (result.startsWith('22')) return;
        const { rows } = await client.query('select email from platform.member where member = $1', [member]);
        expect([findEmailProblem(email), rows]).toEqual([null, [{ email: canonicalEmail(email) }]]);
      }),
      { numRuns: 150 },
    );
  });

  it('rejects hostile values by a code, and never by the error of a table', async () => {
    const { owner, client, create } = await setupPlatform();
    const { organization, family } = await create();
    const { rows: functions } = await owner.pool.query<{ name: string; types: string[] }>(
      `select p.proname as name, array(select format_type(t, null) from unnest(p.proargtypes::oid[]) t) as types
       from pg_proc p where p.pronamespace = 'platform'::regnamespace
         and has_function_privilege('org_api_platform', p.oid, 'execute')`,
    );
    const call = fc
      .constantFrom(...functions)
      .chain(({ name, types }) =>
        fc
          .tuple(...types.map((type) => valuesOfType(type, [organization, family])))
          .map((values) => ({ name, types, values })),
      );
    await fc.assert(
      fc.asyncProperty(call, async ({ name, types, values }) => {
        const places = types.map((type, index) => `$${index + 1}::${type}`).join(', ');
        const error = await client.query(`select platform.${name}(${places})`, [organization, ...values.slice(1)]).then(
          () => null,
          (thrown: pg.DatabaseError) => thrown,
        );
        // Without the schema, it is a text that is no value of the argument's type: no function was called.
        if (error !== null && error.schema !== 'platform')
          expect([name, error.message, error.where ?? '']).toEqual([name, error.message, notInFunction]);
      }),
      { numRuns: 400 },
    );
  });
});

const notInFunction = expect.not.stringContaining('PL/pgSQL');

const unchangedThrice = ['unchanged', 'unchanged', 'unchanged'];

const pick = ({ organization, member, family }: { organization: string; member: string; family: string }) => ({
  organization,
  professional: member,
  family,
});
