/**
 * Rules that stand in the schema and in the product. Migrations import no rule of the product,
 * because a released one never changes, so each pair is compared here.
 */
import { expect, it } from 'vitest';
import { jitter, waitAfterFailureMs, waitAfterFailureSql } from '#delivery/schedule.ts';
import {
  grantEndReasons,
  grantKinds,
  memberStatuses,
  organizationKinds,
  referralStates,
  seatEndReasons,
  subscriptionStatuses,
  suspendReasons,
} from '#domain/contract/choices.ts';
import { eventTypes, operationalTypes } from '#domain/contract/events.ts';
import { validKeysPerOrganization } from '#domain/contract/limits.ts';
import { permissions, scopes, systemRoleKeys } from '#domain/contract/scopes.ts';
import { sessionIdleMinutes } from '#domain/identity/limits.ts';
import { mailKinds, optionalKinds } from '#domain/mail/kinds.ts';
import { WebhookError } from '#domain/webhooks/errors.ts';
import { changeHeaders } from '#domain/webhooks/headers.ts';
import { isProvenSql } from '#domain/webhooks/ledger-statements.ts';
import {
  deliveryRetentionDaysAtLeast,
  headersPerWebhook,
  healthyConcurrency,
  maxConcurrency,
  organizationConcurrency,
  postsPerSecondAtMost,
  webhooksPerOrganization,
} from '#domain/webhooks/limits.ts';
import { Webhook } from '#domain/webhooks/webhook.entity.ts';
import { testSealingKeys } from '#test/secrets.ts';
import { setupDatabase, shareInstallation } from '#test/setup.ts';

const shared = shareInstallation(setupDatabase);
const nil = '00000000-0000-0000-0000-000000000000';

async function find<T>(query: string, values: unknown[] = []): Promise<T> {
  const { rows } = await shared().owner.pool.query<{ found: T }>(query, values);
  expect(rows).toHaveLength(1);
  return rows[0]?.found as T;
}

const findCheck = (constraint: string) =>
  find<string>('select check_clause as found from information_schema.check_constraints where constraint_name = $1', [
    constraint,
  ]);

const define = (name: string) =>
  find<string>(`select pg_get_functiondef(oid) as found from pg_proc where proname = $1`, [name]);

it.each<[constraint: string, values: readonly string[]]>([
  ['webhook_event_types_known', eventTypes],
  ['webhook_suspended_reason_known', suspendReasons],
  // What maintenance finds: the operational events, and the anchor, which is a mail alone.
  ['notice_kind_known', [...operationalTypes, 'audit_log.anchor']],
  ['mail_kind_known', mailKinds],
  ['mail_opt_out_kind_known', Object.keys(optionalKinds)],
  ['seat_end_reason_known', seatEndReasons],
  ['organization_kind_known', organizationKinds],
  ['membership_status_known', memberStatuses],
  ['client_grant_kind_known', grantKinds],
  ['client_grant_end_reason_known', grantEndReasons],
  ['subscription_status_known', subscriptionStatuses],
  ['referral_state_known', referralStates],
  ['api_key_scopes_known', scopes],
  ['role_permissions_known', permissions],
  ['role_system_key_reserved', systemRoleKeys],
])('%s allows the values that the product knows', async (constraint, values) => {
  const text = await findCheck(constraint);
  expect([...text.matchAll(/'([^']+)'/g)].map(([, value]) => value).toSorted()).toEqual(values.toSorted());
});

it.each([
  ['api_key_number_of_25', validKeysPerOrganization],
  ['webhook_number_of_20', webhooksPerOrganization],
  ['receiver_concurrency_of_10', maxConcurrency],
  ['webhook_posts_per_second_of_100', postsPerSecondAtMost],
])('%s ends where the product does', async (constraint, most) => {
  const text = await findCheck(constraint);
  expect(text).toContain(`<= ${most})`);
});

// Names one letter away from a reserved one, and characters that are no part of a token.
it('a webhook stores the custom headers that the product accepts, and no others', async () => {
  const reserved = 'accept accept-encoding connection expect forwarded host http2-settings keep-alive';
  const more = `service-signature te trailer transfer-encoding upgrade user-agent via content-x proxy-x webhook-x
    x-forwarded-x`;
  const names = [...reserved.split(' '), ...more.split(/\s+/)].flatMap((name) => [
    name,
    name.toUpperCase(),
    `${name}s`,
    `x${name}`,
    name.slice(1),
  ]);
  const characters = Array.from({ length: 0x250 }, (_, code) => `X${String.fromCharCode(code + 1)}`);
  for (const name of [...names, ...characters, '', 'x'.repeat(100), 'x'.repeat(101), 'X\r\nY', '__proto__']) {
    const isStored = await find<boolean>('select are_header_names(array[$1]) as found', [name]);
    expect([name, isStored]).toEqual([name, isAccepted([name])]);
  }
  const ten = Array.from({ length: headersPerWebhook }, (_, index) => `X-${index}`);
  for (const list of [ten, [...ten, 'X-10'], ['X-A', 'x-a'], ['X-A', 'X-B'], []])
    expect([list, await find<boolean>('select are_header_names($1) as found', [list])]).toEqual([
      list,
      isAccepted(list),
    ]);
});

/** Returns whether the product sets headers of these names. */
function isAccepted(names: readonly string[]): boolean {
  const webhook = new Webhook();
  Object.assign(webhook, { organizationId: nil, id: nil, headerNames: [], headersSealed: null });
  try {
    changeHeaders(
      webhook,
      names.map((name) => ({ name, value: 'x' })),
      testSealingKeys,
    );
    return true;
  } catch (error) {
    if (error instanceof WebhookError) return false;
    throw error;
  }
}

it('a roll-up accepts what the ledger accepts as the proof of a settled delivery', async () => {
  await shared().owner.pool.query(
    `create function proves() returns setof boolean language sql begin atomic
       select ${isProvenSql} from delivery d; end`,
  );
  const proofIn = async (name: string) =>
    (await define(name)).replaceAll(/\s+/g, ' ').match(/CASE d\.state WHEN 'delivered'.*? END/)?.[0];
  expect(await proofIn('proves')).toMatch(/^CASE .*'exhausted'.*delivery_cancellation/);
  expect(await proofIn('roll_up_ledger')).toBe(await proofIn('proves'));
});

it('the wait after a failure is the same in a program and in SQL', async () => {
  const delaysMs = [1_000, 20_000, 300_000];
  const wait = waitAfterFailureSql({
    delaysMs: '$1::double precision[]',
    failures: '$2::integer',
    random: '$3::float8',
  });
  for (const failures of [0, 1, 2, 3, 9])
    for (const random of [0, 0.25, 1])
      expect(await find(`select round(${wait})::float8 as found`, [delaysMs, failures, random])).toBe(
        waitAfterFailureMs(delaysMs, failures, random),
      );
});

it('an admission takes no wait of the schedule, with its jitter, for a clock that was set back', async () => {
  expect(await define('admit_attempt')).toContain(`${1 + jitter} * waits[`);
});

it('sessions are purged, and written for, as long as they may be idle', async () => {
  expect(await define('purge_expired_sign_ins')).toContain(`'00:${sessionIdleMinutes}:00'::interval`);
  // A request may last some minutes more.
  expect(await define('record_console_entry')).toContain(`interval '${sessionIdleMinutes + 5} minutes'`);
});

it('the ledger takes a webhook for busy or degraded by the bounds of the concurrency slots', async () => {
  const slots = await define('free_slots');
  expect(slots).toContain(`${organizationConcurrency} - u.of_healthy`);
  expect(slots).toContain(`r.concurrency < ${healthyConcurrency} or`);
});

it('deliveries are kept for as long as they may be sent again', async () => {
  expect(await define('purge_deliveries')).toContain(`interval '${24 * deliveryRetentionDaysAtLeast} hours'`);
});
