import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { sealHeaders } from '#domain/webhooks/seal.ts';
import type { MadeKey, MadeMember, MadeWebhook } from '#test/make.ts';
import { testSealingKeys } from '#test/secrets.ts';
import { type ConsoleInstallation, type Enrolled, setupConsole } from '../../console/setup.ts';

/**
 * An organization with an object of every kind that a path or a form of the console can name. Its
 * owner has just signed in.
 */
export interface Scene {
  /** Part of every name in it. */
  mark: string;
  owner: Enrolled;
  orgId: string;
  /** Another session of the owner, and another second factor. */
  sessionId: string;
  factorId: string;
  /** An active member who has `roleId` and created `memberKeyId`. */
  member: MadeMember;
  roleId: string;
  suspended: MadeMember;
  invited: MadeMember;
  invitedEmail: string;
  /** A custom role without members. */
  spareRoleId: string;
  spareRoleKey: string;
  key: MadeKey;
  memberKey: MadeKey;
  webhook: MadeWebhook;
  /** Events whose deliveries to `webhook` are settled or open. */
  failedEventId: string;
  waitingEventId: string;
  pausedWebhook: MadeWebhook;
  /** A client of the owner with a seat, one without, and a family without members. */
  grant: { id: string; familyId: string };
  seatId: string;
  seatlessGrant: { id: string; familyId: string };
  familyId: string;
  /** An entry of the audit log. */
  entryId: string;
  redeliveryId: string;
}

/** The custom header of a scene's webhook. */
export const headerOfScene = { name: 'X-Tenant', value: 'value-of-the-tenant' };

/**
 * Creates a scene per mark once for a file, and gives each test a console on a copy of that
 * database: copying takes a quarter of the time of creating.
 * @returns a function that returns the console and the scenes in a test.
 */
export function copyScenes<const Marks extends readonly string[]>(...marks: Marks) {
  const scenes: Scene[] = [];
  const ends: (() => void | Promise<void>)[] = [];
  let template = '';
  beforeAll(async () => {
    const t = await setupConsole({}, (end) => void ends.push(end));
    template = t.database.name;
    for (const mark of marks) scenes.push(await arrange(t, mark));
    // Nothing may be connected to a database while it is copied, so connections are closed first.
    for (const end of ends.splice(1).reverse()) await end();
  });
  afterAll(() => ends[0]?.());
  return async () => {
    const t = await setupConsole({}, onTestFinished, template);
    await confirmSessions(t);
    return { t, scenes: scenes as unknown as { readonly [Index in keyof Marks]: Scene } };
  };
}

/** Makes every session one that has just been used and has just passed its second factor. */
export async function confirmSessions({ owner }: ConsoleInstallation): Promise<void> {
  await owner.pool.query('update console_session set second_factor_at = now(), last_seen_at = now()');
}

/**
 * Creates a scene. `mark` is part of every name in it (a prefix where a name has few characters),
 * so that a page that shows a name of another organization is detected.
 */
export async function arrange(t: ConsoleInstallation, mark: string): Promise<Scene> {
  const { make, owner: database } = t;
  const short = [...mark].slice(0, 60).join('');
  const orgId = await make.organization({ name: `${mark} Family Law` });
  const owner = await t.enrol({ orgId, name: `${mark} Owner` });
  const first = async (text: string, values: unknown[]) =>
    (await database.pool.query<{ id: string }>(text, values)).rows[0]?.id ?? '';
  const role = async (name: string) => {
    const id = await make.role({ orgId, permissions: ['org.read', 'org.clients.read'], name: `${mark} ${name}` });
    return { id, key: await first('select key as id from role where id = $1', [id]) };
  };
  const someone = (what: string, status: string) => make.member({ orgId, name: `${mark} ${what}`, status });

  const [member, suspended, invited] = [
    await make.member({ orgId, name: `${mark} Member`, permissions: ['org.read', 'org.clients.read'] }),
    await someone('Suspended', 'suspended'),
    await someone('Invited', 'invited'),
  ];
  await t.link(invited);
  const spare = await role('Spare');
  const creator = { orgId, userId: owner.personId, roleId: null };
  // Before the webhooks, which otherwise would get their events.
  const grant = await make.grant({ professional: creator });
  const seatId = await make.seat({ orgId, grant });
  const seatlessGrant = await make.grant({ professional: creator });
  const key = await make.apiKey({ creator, label: `${short} key` });
  const memberKey = await make.apiKey({ creator: member, scopes: ['org.read'], label: `${short} member’s key` });
  const webhook = await make.webhook({ orgId, description: `${short} webhook` });
  const sealed = sealHeaders([headerOfScene], { organizationId: orgId, webhookId: webhook.id }, testSealingKeys);
  await database.pool.query('update webhook set header_names = $2, headers_sealed = $3 where id = $1', [
    webhook.id,
    [headerOfScene.name],
    sealed,
  ]);
  const pausedWebhook = await make.webhook({ orgId, description: `${short} paused` });
  await database.pool.query(`update webhook set state = 'paused' where id = $1`, [pausedWebhook.id]);
  const failedEventId = await make.delivery({
    webhook,
    state: 'exhausted',
    attempts: [{ status: 500 }, { status: 503, endsSchedule: true }],
  });
  const waitingEventId = await make.delivery({
    webhook,
    state: 'running',
    attempts: [{ status: 500 }],
    dueAt: new Date(Date.now() + 3_600_000),
  });
  return {
    mark,
    owner,
    orgId,
    member,
    roleId: member.roleId ?? '',
    suspended,
    invited,
    key,
    memberKey,
    webhook,
    pausedWebhook,
    failedEventId,
    waitingEventId,
    grant,
    seatId,
    seatlessGrant,
    spareRoleId: spare.id,
    spareRoleKey: spare.key,
    invitedEmail: `${invited.userId}@example.org`,
    familyId: await make.family({ orgId, name: `${mark} family` }),
    sessionId: await first(
      `insert into console_session (id, token_hash, person_id, state, created_at, last_seen_at, expires_at,
        second_factor_at, user_agent)
       select $1::uuid, sha256(convert_to($1::text, 'UTF8')), $2, 'full', now(), now(), now() + interval '1 hour',
         now(), '' returning id`,
      [randomUUID(), owner.personId],
    ),
    factorId: await first(
      `insert into second_factor (person_id, kind, name, created_at, credential_id, public_key, counter, transports)
       values ($1, 'passkey', $2, now(), $3, '\\x00', 0, '{}') returning id`,
      [owner.personId, `${short} phone`, randomUUID()],
    ),
    entryId: await first(
      `insert into audit_entry (id, organization_id, person_id, action, status)
        values (new_id(), $1, $2, 'role.create', 200) returning id`,
      [orgId, owner.personId],
    ),
    redeliveryId: await first(
      `insert into redelivery (organization_id, webhook_id, failed_since) values ($1, $2, now() - interval '1 day')
        returning id`,
      [orgId, webhook.id],
    ),
  };
}
