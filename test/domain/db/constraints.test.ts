/** Constraints make invalid states impossible for every writer, including the database's owner. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Database } from '#domain/db/database.ts';
import type { Factories, MadeMember } from '#test/make.ts';
import { type OnFinished, setupDatabase, shareInstallation } from '#test/setup.ts';
import { wrongIdentityStates } from './identity-states.ts';
import { wrongMailStates } from './mail-states.ts';
import { wrongRedeliveryStates } from './redelivery-states.ts';
import { wrongWebhookStates } from './webhook-states.ts';

interface Scene {
  owner: Database;
  make: Factories;
  creator: MadeMember;
  orgId: string;
  /** An active grant without a seat. */
  grant: { id: string; familyId: string };
}

const insertGrant = `insert into client_grant (organization_id, id, kind, professional_id, family_id, since,
  ends_at, status, end_reason) values`;
const day = `interval '1 day'`;
/** Access that is inserted as any other, and lies ahead. */
const scheduleGrant = `${insertGrant} ('$org', gen_random_uuid(), 'attorney', '$user', '$family', now() + ${day},
  null, 'active', null)`;

/**
 * Invalid statements, by the constraint that must reject them. `$org`, `$user`, `$grant`, `$family`
 * stand for the ids of the test's rows.
 */
const wrongStates: [state: string, constraint: string, statement: string][] = [
  ['an organization of an unknown kind', 'organization_kind_known', `update organization set kind = 'shop'`],
  ['an organization without a name', 'organization_name_not_empty', `update organization set name = ''`],
  ['a slug in capitals', 'organization_slug_form', `update organization set slug = 'Harbor'`],
  [
    'two organizations with one slug',
    'organization_slug_unique',
    `insert into organization (name, slug, kind, status) select name, slug, kind, status from organization`,
  ],
  [
    'names of an audit entry without a salt',
    'audit_entry_names_salted',
    `insert into audit_entry (organization_id, action) values ('$org', 'seat.give');
     update audit_entry set names = '{}', names_salt = null`,
  ],
  ['an erasure by an unknown caller', 'erasure_by_known', insertErasure('console', 'case-1')],
  ['an erasure with a sentence as its reference', 'erasure_reference_form', insertErasure('orgctl', 'asked by Ada')],
  ['a second limit of erasures', 'erasure_limit_one_row', `insert into erasure_limit (id) values (false)`],
  ['a second row about admission', 'delivery_switch_one_row', `insert into delivery_switch (id) values (false)`],
  ['an unknown state of admission', 'delivery_switch_state_known', `update delivery_switch set state = 'held'`],
  [
    'a display name of 201 characters',
    'organization_setting_display_name_length',
    insertSetting('display_name', `repeat('x', 201)`),
  ],
  [
    'a time zone of 65 characters',
    'organization_setting_time_zone_length',
    insertSetting('time_zone', `repeat('x', 65)`),
  ],
  ['a contact that is no address', 'organization_setting_contact_form', insertSetting('security_contact', `'it desk'`)],
  ['a contact in capitals', 'organization_setting_contact_form', insertSetting('security_contact', `'IT@example.org'`)],
  [
    'invitations to 21 domains',
    'organization_setting_domains_at_most_20',
    insertSetting('invitation_domains', `array_fill('example.org'::text, array[21])`),
  ],
  ['sessions of 13 hours', 'organization_setting_session_hours_range', insertSetting('session_hours', '13')],
  ['sessions of no hour', 'organization_setting_session_hours_range', insertSetting('session_hours', '0')],
  ['a member with an unknown status', 'membership_status_known', `update membership set status = 'gone'`],
  ['an own role that takes a system role’s key', 'role_system_key_reserved', `${insertRole('$org', 'owner')}`],
  ['a system role that is not one of the five', 'role_system_key_reserved', insertRole('null', 'auditor', '6')],
  ['two own roles with one key', 'role_key_unique', `${insertRole('$org', 'r')}; ${insertRole('$org', 'r')}`],
  ['a second system role with a key of the five', 'role_key_unique', insertRole('null', 'owner', '6')],
  ['an own role with a position', 'role_system_has_position', insertRole('$org', 'r', '6')],
  ['a permission that does not exist', 'role_permissions_known', `update role set permissions = '{org.everything}'`],
  [
    'a role of another organization given to a member',
    'membership_role_same_organization',
    `with o as (insert into organization (name, slug, kind, status) values ('B', 'b', 'court', 'active') returning id),
     r as (insert into role (organization_id, key, name, description, permissions) select id, 'r', 'R', '', '{}'
       from o returning id)
     insert into membership_role select '$org', '$user', id from r`,
  ],
  [
    'a role of a person who is no member',
    'membership_role_membership',
    `insert into membership_role select '$org', 'nobody', id from role limit 1`,
  ],
  [
    'access of an unknown family',
    'client_grant_family',
    `${insertGrant} ('$org', gen_random_uuid(), 'attorney', '$user', gen_random_uuid(), now(), null, 'active', null)`,
  ],
  [
    'access for a person who is no member',
    'client_grant_professional',
    `${insertGrant} ('$org', gen_random_uuid(), 'attorney', 'nobody', '$family', now(), null, 'active', null)`,
  ],
  [
    'access in an unknown state',
    'client_grant_status_known',
    `update client_grant set status = 'paused', ends_at = now(), end_reason = null`,
  ],
  ['access of an unknown kind', 'client_grant_kind_known', `update client_grant set kind = 'judge'`],
  [
    'access that ends before it began',
    'client_grant_ends_after_it_began',
    `update client_grant set ends_at = since - ${day}`,
  ],
  [
    'ended access without a reason',
    'client_grant_ended_has_reason',
    `update client_grant set status = 'ended', ends_at = now()`,
  ],
  [
    'active access with a reason for its end',
    'client_grant_ended_has_reason',
    `update client_grant set end_reason = 'ended'`,
  ],
  [
    'ended access without an end',
    'client_grant_ended_has_end',
    `update client_grant set status = 'ended', end_reason = 'moved'`,
  ],
  [
    'an unknown reason for an end',
    'client_grant_end_reason_known',
    `update client_grant set status = 'ended', ends_at = now(), end_reason = 'tired'`,
  ],
  [
    'ended access that becomes active again',
    'client_grant_never_goes_back',
    `update client_grant set status = 'ended', ends_at = now(), end_reason = 'moved';
     update client_grant set status = 'active', ends_at = null, end_reason = null`,
  ],
  [
    'ended access that never began',
    'client_grant_never_goes_back',
    `update client_grant set status = 'ended', ends_at = now(), end_reason = 'moved';
     update client_grant set status = 'withdrawn', end_reason = null`,
  ],
  ['active access that has not begun', 'client_grant_never_goes_back', `update client_grant set status = 'scheduled'`],
  ['active access that never began', 'client_grant_never_goes_back', `update client_grant set status = 'withdrawn'`],
  [
    'access that ended before it began',
    'client_grant_never_goes_back',
    `${scheduleGrant}; update client_grant set status = 'ended', ends_at = since, end_reason = 'ended'
     where status = 'scheduled'`,
  ],
  [
    'withdrawn access that begins',
    'client_grant_never_goes_back',
    `${scheduleGrant}; update client_grant set status = 'withdrawn' where status = 'scheduled';
     update client_grant set status = 'active' where status = 'withdrawn'`,
  ],
  [
    'withdrawn access with a reason for its end',
    'client_grant_ended_has_reason',
    `${scheduleGrant}; update client_grant set status = 'withdrawn', end_reason = 'moved' where status = 'scheduled'`,
  ],
  [
    'a seat under access that has not begun',
    'seat_needs_active_grant',
    `${scheduleGrant}; ${assignSeat(`'$family'`, `(select id from client_grant where status = 'scheduled')`)}`,
  ],
  ['two seats of one family', 'seat_one_per_family', `${assignSeat()}; ${assignSeat()}`],
  ['a seat of another family than its grant’s', 'seat_grant_of_family', assignSeat('gen_random_uuid()')],
  ['a seat without a grant', 'seat_grant_of_family', assignSeat(`'$family'`, 'gen_random_uuid()')],
  [
    'a seat under ended access',
    'seat_needs_active_grant',
    `update client_grant set status = 'ended', ends_at = now(), end_reason = 'ended'; ${assignSeat()}`,
  ],
  [
    'a seat under access whose end has passed, though no row says so yet',
    'seat_needs_active_grant',
    `update client_grant set ends_at = now(); ${assignSeat()}`,
  ],
  ['a seat beyond the plan', 'seat_within_plan', `update seat_plan set invoiced = 0; ${assignSeat()}`],
  [
    'a seat that is no longer paid for',
    'seat_within_plan',
    `update seat_plan set invoiced = 0;
     insert into subscription (organization_id, status, quantity)
       values ('$org', 'canceled', 5), ('$org', 'unpaid', 5); ${assignSeat()}`,
  ],
  ['an ended seat without a reason', 'seat_ended_has_reason', `${assignSeat()}; update seat set ended_at = now()`],
  [
    'an assigned seat with a reason for its end',
    'seat_ended_has_reason',
    `${assignSeat()}; update seat set end_reason = 'access_ended'`,
  ],
  [
    'a seat that ended for an unknown reason',
    'seat_end_reason_known',
    `${assignSeat()}; update seat set ended_at = now(), end_reason = 'tired'`,
  ],
  [
    'a seat that ends before it was given',
    'seat_ends_after_it_was_given',
    `${assignSeat()}; update seat set ended_at = given_at - ${day}, end_reason = 'access_ended'`,
  ],
  [
    'an ended seat that is assigned again',
    'seat_stays_ended',
    `${assignSeat()}; update seat set ended_at = now(), end_reason = 'subscription_ended'; update seat set ended_at = null, end_reason = null`,
  ],
  ['fewer seats than none', 'seat_plan_invoiced_form', 'update seat_plan set invoiced = -1'],
  ['more than ten million invoiced seats', 'seat_plan_invoiced_form', 'update seat_plan set invoiced = 10000001'],
  [
    'a subscription of more than ten million seats',
    'subscription_quantity_form',
    `insert into subscription (organization_id, status, quantity) values ('$org', 'active', 10000001)`,
  ],
  ['a price without a currency', 'seat_plan_price_whole', 'update seat_plan set price_cents = 100'],
  [
    'a subscription status that Stripe does not know',
    'subscription_status_known',
    `insert into subscription (organization_id, status, quantity) values ('$org', 'free', 1)`,
  ],
  [
    'more calm messages than messages',
    'family_day_calm_within_messages',
    `insert into family_day values ('$org', '$family', '2026-01-01', 3, 4, 0, 0, 0, 0)`,
  ],
  [
    'more exchanges on time than exchanges',
    'family_day_on_time_within_exchanges',
    `insert into family_day values ('$org', '$family', '2026-01-01', 0, 0, 1, 2, 0, 0)`,
  ],
  [
    'fewer expenses answered than none',
    'family_day_answered_within_due',
    `insert into family_day values ('$org', '$family', '2026-01-01', 0, 0, 0, 0, 1, -1)`,
  ],
  [
    'more than a million messages of a family on a day',
    'family_day_counts_small',
    `insert into family_day values ('$org', '$family', '2026-01-01', 1000001, 0, 0, 0, 0, 0)`,
  ],
  [
    'a day of an unknown family',
    'family_day_family',
    `insert into family_day values ('$org', gen_random_uuid(), '2026-01-01', 0, 0, 0, 0, 0, 0)`,
  ],
  [
    'an invoice of a month that does not exist',
    'referral_invoice_month_form',
    `insert into referral_invoice (organization_id, month, currency, share_cents) values ('$org', '2026-13', 'USD', 1)`,
  ],
  [
    'an invoice that takes the shares of its month beyond 2^53 - 1',
    'referral_invoice_sum_exact',
    `${insertInvoice(Number.MAX_SAFE_INTEGER)}; ${insertInvoice(1)}`,
  ],
  [
    'refunds that take the shares of their month below -(2^53 - 1)',
    'referral_invoice_sum_exact',
    `${insertInvoice(-Number.MAX_SAFE_INTEGER)}; ${insertInvoice(-1)}`,
  ],
  [
    'an invoice changed to take the shares of its month beyond 2^53 - 1',
    'referral_invoice_sum_exact',
    `${insertInvoice(1)}; ${insertInvoice(2)}; update referral_invoice set share_cents = ${Number.MAX_SAFE_INTEGER}
     where share_cents = 2`,
  ],
  [
    'a refund whose deletion leaves shares beyond 2^53 - 1',
    'referral_invoice_sum_exact',
    `${insertInvoice(-1)}; ${insertInvoice(Number.MAX_SAFE_INTEGER)}; ${insertInvoice(1)};
     delete from referral_invoice where share_cents = -1`,
  ],
  [
    'a refund whose move to another month leaves shares beyond 2^53 - 1',
    'referral_invoice_sum_exact',
    `${insertInvoice(-1)}; ${insertInvoice(Number.MAX_SAFE_INTEGER)}; ${insertInvoice(1)};
     update referral_invoice set month = '2026-02' where share_cents = -1`,
  ],
  [
    'a referral in an unknown state',
    'referral_state_known',
    `with c as (insert into referral_code (organization_id, code, link) values ('$org', 'A', 'x') returning id)
     insert into referral (organization_id, code_id, state) select '$org', id, 'lost' from c`,
  ],
  [
    'one code twice in an organization',
    'referral_code_unique',
    `insert into referral_code (organization_id, code, link) values ('$org', 'A', 'x'), ('$org', 'A', 'y')`,
  ],
  ['a key with a 26th number', 'api_key_number_of_25', insertKey({ number: '26' })],
  ['two keys with one number', 'api_key_number_unique', `${insertKey({})}; ${insertKey({ print: '02' })}`],
  ['a valid key without a number', 'api_key_valid_has_number', insertKey({ number: 'null' })],
  [
    'a revoked key that keeps its number',
    'api_key_ended_has_no_number',
    `${insertKey({})}; update api_key set revoked_at = now()`,
  ],
  [
    'a key of a member who is not active',
    'api_key_creator_is_active',
    `update membership set status = 'suspended'; ${insertKey({})}`,
  ],
  [
    'a revoked key that comes back',
    'api_key_stays_ended',
    `${insertKey({})}; update api_key set revoked_at = now(), number = null;
      update api_key set revoked_at = null, number = 1`,
  ],
  [
    'a key that comes back with its creator',
    'api_key_stays_ended',
    `${insertKey({})}; update membership set status = 'left'; update api_key set creator_left_at = null, number = 1`,
  ],
  [
    'an expiry that is put off',
    'api_key_stays_ended',
    `${insertKey({ expiresAt: `now() + interval '1 day'` })}; update api_key set expires_at = now() + interval '2 days'`,
  ],
  ['a second failed migration', 'migration_failure_one_row', `insert into migration_failure values (false, '{}')`],
  ['a second retention floor', 'retention_floor_one_row', 'insert into retention_floor (id) values (false)'],
  ['a retention floor of no day', 'retention_floor_positive', 'update retention_floor set audit_log_days = 0'],
  [
    'a link before the first position',
    'audit_link_position_positive',
    `insert into audit_link values ('$org', '2026-11-01', 0, new_id(), now(), null, sha256('x'))`,
  ],
  [
    'a link without a whole hash',
    'audit_link_hash_length',
    `insert into audit_link values ('$org', '2026-11-01', 1, new_id(), now(), null, 'x')`,
  ],
  [
    'a chain that dropped links and no hash',
    'audit_chain_dropped_has_hash',
    `insert into audit_chain (organization_id, month, length, hash, dropped_length)
      values ('$org', '2026-11-01', 2, sha256('x'), 1)`,
  ],
  ...(
    [
      ['an action of 65 characters', 'action_length', `action) values ('$org', repeat('x', 65))`],
      ['a code of 65 characters', 'code_length', `action, code) values ('$org', 'x', repeat('x', 65))`],
      ['details that are no object', 'detail_object', `action, detail) values ('$org', 'x', '[]')`],
      [
        'details of more than 16 KiB',
        'detail_size',
        `action, detail) values ('$org', 'x', jsonb_build_object('x', repeat('x', 16384)))`,
      ],
      ['an id that is no uuid', 'detail_ids', `action, detail) values ('$org', 'x', '{"webhookId": "x"}')`],
      ['an id that is a number', 'detail_ids', `action, detail) values ('$org', 'x', '{"grantId": 1}')`],
      [
        'an id of any other name that is none',
        'detail_ids',
        `action, detail) values ('$org', 'x', '{"aFactorId": "Sara"}')`,
      ],
      ['a member’s id that is no text', 'detail_ids', `action, detail) values ('$org', 'x', '{"memberId": ["x"]}')`],
    ] as const
  ).map(([name, constraint, rest]): [string, string, string] => [
    `an audit entry with ${name}`,
    `audit_entry_${constraint}`,
    `insert into audit_entry (organization_id, ${rest}`,
  ]),
  [
    'a purge of audit entries inside the floor',
    'audit_purge_older_than_floor',
    `insert into audit_purge values (now() - interval '89 days', now(), 90)`,
  ],
  [
    'a sum of calls of no call',
    'call_sum_positive',
    `insert into call_sum values ('$org', 'hour', now(), gen_random_uuid(), 'api.getOrg', 200, '', 0)`,
  ],
  [
    'a sum of calls of an unknown unit',
    'call_sum_unit_known',
    `insert into call_sum values ('$org', 'week', now(), gen_random_uuid(), 'api.getOrg', 200, '', 1)`,
  ],
  ['a second progress of the chains', 'audit_progress_one_row', 'insert into audit_progress (id) values (false)'],
  ['two keys with one fingerprint', 'api_key_fingerprint_unique', `${insertKey({})}; ${insertKey({ number: '2' })}`],
  ['a fingerprint that is none', 'api_key_fingerprint_length', insertKey({ length: 31 })],
  [
    'a key with a description of 501 characters',
    'api_key_description_length',
    `${insertKey({})}; update api_key set description = repeat('x', 501)`,
  ],
  [
    'a key with 21 allowed addresses',
    'api_key_allowed_addresses_at_most_20',
    `${insertKey({})}; update api_key set allowed_addresses = array_fill('10.0.0.1/32'::cidr, array[21])`,
  ],
  ['a key without a scope', 'api_key_scopes_not_empty', insertKey({ scopes: '{}' })],
  ['a key that may manage keys', 'api_key_scopes_known', insertKey({ scopes: '{org.keys.manage}' })],
  ['a key that expired before it was made', 'api_key_expires_after_it_was_made', insertKey({ expiresAt: 'now()' })],
  ...wrongWebhookStates,
  ...wrongIdentityStates,
  ...wrongMailStates,
  ...wrongRedeliveryStates,
];

function insertRole(org: string, key: string, position = 'null'): string {
  const organization = org === 'null' ? 'null' : `'${org}'`;
  return `insert into role (organization_id, key, name, description, permissions, position)
    values (${organization}, '${key}', 'R', '', '{}', ${position})`;
}

function assignSeat(family = `'$family'`, grant = `'$grant'`): string {
  return `insert into seat (organization_id, grant_id, family_id) values ('$org', ${grant}, ${family})`;
}

function insertInvoice(shareCents: number): string {
  return `insert into referral_invoice (organization_id, month, currency, share_cents)
    values ('$org', '2026-09', 'USD', ${shareCents})`;
}

function insertKey({ number = '1', print = '01', length = 32, scopes = '{org.read}', expiresAt = 'null' }): string {
  return `insert into api_key (organization_id, creator_id, fingerprint, pepper_version, hint, scopes, number,
    expires_at)
    values ('$org', '$user', decode(repeat('${print}', ${length}), 'hex'), 1, '', '${scopes}', ${number},
      ${expiresAt})`;
}

async function setupScene(onFinished?: OnFinished): Promise<Scene> {
  const { owner, make } = await setupDatabase(onFinished);
  const creator = await make.member();
  return { owner, make, creator, orgId: creator.orgId, grant: await make.grant({ professional: creator }) };
}

function insertSetting(column: string, value: string): string {
  return `insert into organization_setting (organization_id, ${column}) values ('$org', ${value})`;
}

function insertErasure(by: string, reference: string): string {
  return `insert into erased_family values ('\\x00'); insert into erasure (organization_id, family_digest, erased_by,
    reference, kept_as, counts, mentions) values ('$org', '\\x00', '${by}', '${reference}', '$family', '{}', '[]')`;
}

function written(statement: string, { orgId, creator, grant }: Scene): string {
  const ids: Record<string, string> = { org: orgId, user: creator.userId, grant: grant.id, family: grant.familyId };
  return statement.replaceAll(/\$(org|user|grant|family)\b/g, (_, name: string) => ids[name] ?? '');
}

describe('is impossible:', () => {
  const shared = shareInstallation(setupScene);

  it.each(wrongStates)('%s', async (_state, constraint, statement) => {
    const scene = shared();
    const client = await scene.owner.pool.connect();
    onTestFinished(async () => {
      await client.query('rollback');
      client.release();
    });
    await client.query('begin');
    const parts = written(statement, scene).split(';');
    const last = parts.pop() ?? '';
    for (const part of parts) await client.query(part);
    // A deferred constraint is checked then, too.
    const commit = client.query(last).then(() => client.query('set constraints all immediate'));
    await expect(commit).rejects.toMatchObject({ constraint });
  });

  it('every check of a table has a case above, except those against empty texts and negative counts', async () => {
    const { owner } = shared();
    const { rows } = await owner.pool.query<{ name: string }>(
      `select distinct conname as name from pg_constraint c join pg_namespace n on n.oid = c.connamespace
       where n.nspname = 'public' and c.contype = 'c' and c.conname not in (select unnest($1::text[]))
         and c.conname !~ '_not_(empty|negative)$' order by 1`,
      [wrongStates.map(([, constraint]) => constraint)],
    );
    // Only the statement of the audit log writes a count.
    expect(rows.map(({ name }) => name)).toEqual(['audit_entry_count_positive']);
  });
});

describe('a seat', () => {
  it('is assigned exactly once when twenty transactions assign the last one', async () => {
    const { owner, make, creator, orgId } = await setupScene();
    await owner.pool.query('update seat_plan set invoiced = 3 where organization_id = $1', [orgId]);
    const grants = await Promise.all(Array.from({ length: 22 }, () => make.grant({ professional: creator })));
    for (const grant of grants.slice(0, 2)) await make.seat({ orgId, grant });
    const tries = await Promise.allSettled(grants.slice(2).map((grant) => make.seat({ orgId, grant })));
    // Concurrent inserts hold a share lock of the plan for their reference. A rule that locked it
    // "for update" would end in deadlocks, and all would fail.
    expect(tries.filter(({ status }) => status === 'fulfilled').length).toBe(1);
    for (const attempt of tries)
      if (attempt.status === 'rejected') expect(attempt.reason).toMatchObject({ constraint: 'seat_within_plan' });
  });

  it('is assigned to a family once when ten transactions assign it', async () => {
    const { owner, make, orgId, grant } = await setupScene();
    const tries = await Promise.allSettled(Array.from({ length: 10 }, () => make.seat({ orgId, grant })));
    expect(tries.filter(({ status }) => status === 'fulfilled').length).toBe(1);
    expect((await owner.pool.query('select count(*)::int as seats from seat')).rows).toEqual([{ seats: 1 }]);
  });

  it('ends with its grant, with that reason, at the grant’s end', async () => {
    const { owner, make, orgId, grant } = await setupScene();
    const givenAt = new Date(Date.now() - 7_200_000);
    const seat = await make.seat({ orgId, grant, givenAt });
    const endsAt = new Date(Date.now() - 3_600_000);
    await owner.pool.query(
      `update client_grant set status = 'ended', ends_at = $1, end_reason = 'moved' where id = $2`,
      [endsAt, grant.id],
    );
    const { rows } = await owner.pool.query('select id, ended_at = $1 as "atEnd", end_reason from seat', [endsAt]);
    expect(rows).toMatchObject([{ id: seat, atEnd: true, end_reason: 'access_ended' }]);
  });

  it('that is assigned while its grant ends is never left without access', async () => {
    const { owner, make, creator, orgId } = await setupScene();
    const grants = await Promise.all(Array.from({ length: 15 }, () => make.grant({ professional: creator })));
    await Promise.all(
      grants.flatMap((grant) => [
        make.seat({ orgId, grant }).catch(() => {}),
        owner.pool.query(
          `update client_grant set status = 'ended', ends_at = now(), end_reason = 'ended' where id = $1`,
          [grant.id],
        ),
      ]),
    );
    const { rows } = await owner.pool.query(
      `select s.id from seat s join client_grant g on g.id = s.grant_id
        where s.ended_at is null and g.status = 'ended'`,
    );
    expect(rows).toEqual([]);
  });

  it('that has ended can be assigned again, also to the same family', async () => {
    const { owner, make, orgId, grant } = await setupScene();
    await owner.pool.query('update seat_plan set invoiced = 1 where organization_id = $1', [orgId]);
    await make.seat({ orgId, grant });
    await owner.pool.query(`update seat set ended_at = now(), end_reason = 'ended_by_organization'`);
    await make.seat({ orgId, grant });
    expect((await owner.pool.query('select count(*)::int as seats from seat')).rows).toEqual([{ seats: 2 }]);
  });

  it('of an unknown organization is rejected', async () => {
    const { make, grant } = await setupScene();
    await expect(make.seat({ orgId: randomUUID(), grant })).rejects.toMatchObject({ code: '23503' });
  });
});
