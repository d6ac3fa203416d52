import { randomUUID } from 'node:crypto';
import { changeTypes, type EventType, firstEventIdAt } from '#domain/contract/events.ts';
import { scopes as allScopes, type Scope } from '#domain/contract/scopes.ts';
import type { Database } from '#domain/db/database.ts';
import { createKey } from '#domain/keys/create.ts';
import { revokeKey } from '#domain/keys/revoke.ts';
import { createWebhook } from '#domain/webhooks/create.ts';
import { testAllowList, testKeySecrets, testSealingKeys } from './secrets.ts';
import { allowSockets } from './socket-guard.ts';

/** A member from a factory; `roleId` is their separate role when they were given permissions. */
export interface MadeMember {
  orgId: string;
  userId: string;
  roleId: string | null;
}

/** A key from a factory; `key` is its value. */
export interface MadeKey {
  id: string;
  key: string;
  orgId: string;
  creatorId: string;
}

/** A webhook from a factory; `secret` is the value of its signing secret. */
export interface MadeWebhook {
  id: string;
  orgId: string;
  secret: string;
}

/** The webhook of a delivery. */
type Hook = Pick<MadeWebhook, 'id' | 'orgId'>;

/**
 * An attempt as a factory inserts it, with a slot while it is in progress: `finishedAt` null. Its
 * number is the next one, and its cause fits its status.
 */
export interface MadeAttempt {
  number?: number;
  run?: number;
  status?: number | null;
  cause?: string | null;
  explanation?: string | null;
  timings?: Record<string, number> | null;
  peerAddress?: string | null;
  keptBytes?: number | null;
  response?: Buffer | null;
  headers?: Record<string, string> | null;
  signedWith?: string[];
  startedAt?: Date;
  finishedAt?: Date | null;
  endsSchedule?: boolean;
}

/**
 * Factories over the owner's connection. Each creates missing parents, and has defaults for
 * everything else.
 */
export function createFactories(database: Database) {
  const query = (text: string, values: unknown[]) => database.pool.query(text, values);
  let serial = 0;

  const make = {
    async organization(fields: { name?: string; status?: string; invoiced?: number } = {}): Promise<string> {
      const id = randomUUID();
      const { name = 'Harbor Family Law', status = 'active', invoiced = 20 } = fields;
      await query(`insert into organization (id, name, slug, kind, status) values ($1, $2, $3, 'law_firm', $4)`, [
        id,
        name,
        `org-${id}`,
        status,
      ]);
      await query('insert into seat_plan (organization_id, invoiced) values ($1, $2)', [id, invoiced]);
      return id;
    },

    /**
     * Creates an active owner by default; with `permissions`, a member whose only role has exactly
     * these. With `userId`, a person who is already a member elsewhere. The organization has
     * confirmed their sign-in unless `confirmed` is false. With `signedIn`, they have a session of
     * the console, which the audit log requires of a person who acts there.
     */
    async member(
      fields: {
        orgId?: string;
        userId?: string;
        name?: string;
        status?: string;
        roleKey?: string;
        permissions?: string[];
        confirmed?: boolean;
        signedIn?: boolean;
      } = {},
    ): Promise<MadeMember> {
      const {
        orgId = await make.organization(),
        name = 'Ada Rivers',
        status = 'active',
        roleKey = 'owner',
        permissions,
        confirmed = true,
        signedIn = false,
      } = fields;
      serial += 1;
      const { userId = `usr_${serial}_${randomUUID().slice(0, 8)}` } = fields;
      await query('insert into person (id) values ($1) on conflict do nothing', [userId]);
      await query(
        'insert into membership (organization_id, person_id, name, email, status) values ($1, $2, $3, $4, $5)',
        [orgId, userId, name, `${userId}@example.org`, status],
      );
      if (signedIn) await make.session(userId);
      if (confirmed && status === 'active')
        await query(
          `insert into sign_in_confirmation (person_id, organization_id, confirmed_at, confirmed_by)
           select person_id, $2, now(), 'link' from sign_in where person_id = $1`,
          [userId, orgId],
        );
      const roleId = permissions === undefined ? null : await make.role({ orgId, permissions });
      await query(
        'insert into membership_role (organization_id, person_id, role_id) select $1, $2, r.id from ' +
          'role r where r.id = $3 or ($3::uuid is null and r.organization_id is null and r.key = $4)',
        [orgId, userId, roleId, roleKey],
      );
      return { orgId, userId, roleId };
    },

    /** Signs a person in, with a session of the console that has just begun. */
    async session(userId: string): Promise<void> {
      await query(
        `insert into sign_in (person_id, email, password_hash, password_changed_at, created_at)
         values ($1, $1 || '@example.org', '$argon2id$', now(), now()) on conflict do nothing`,
        [userId],
      );
      await query(
        `insert into console_session (token_hash, person_id, state, created_at, last_seen_at, expires_at,
           second_factor_at, user_agent)
         values (sha256(gen_random_uuid()::text::bytea), $1, 'full', now(), now(), now() + interval '12 hours',
           now(), '')`,
        [userId],
      );
    },

    async role(fields: { orgId: string; permissions: string[]; name?: string }): Promise<string> {
      const id = randomUUID();
      await query(
        `insert into role (id, organization_id, key, name, description, permissions) values ($1, $2, $3, $4, '', $5)`,
        [id, fields.orgId, `role-${id}`, fields.name ?? 'A role', fields.permissions],
      );
      return id;
    },

    /** Removes one permission from the role that `make.member` created for this member. */
    async permissionLost(member: MadeMember, permission: string): Promise<void> {
      await query('update role set permissions = array_remove(permissions, $2) where id = $1', [
        member.roleId,
        permission,
      ]);
    },

    async apiKey(
      fields: {
        creator?: MadeMember;
        scopes?: readonly Scope[];
        expiresAt?: Date | null;
        label?: string;
        allowedAddresses?: readonly string[];
      } = {},
    ): Promise<MadeKey> {
      const { creator = await make.member(), scopes = allScopes, expiresAt = null, label = 'test' } = fields;
      const { allowedAddresses = [] } = fields;
      const input = {
        allowedAddresses,
        organizationId: creator.orgId,
        creatorId: creator.userId,
        scopes,
        expiresAt,
        label,
      };
      const { id, key } = await createKey(database, { ...input, by: 'orgctl' }, testKeySecrets);
      return { id, key, orgId: creator.orgId, creatorId: creator.userId };
    },

    async keyRevoked(key: MadeKey): Promise<void> {
      await revokeKey(database, { organizationId: key.orgId, keyId: key.id, by: 'orgctl' });
    },

    /** Moves a key's expiry into the past. */
    async keyExpired(key: MadeKey): Promise<void> {
      await query(
        `update api_key set created_at = now() - interval '2 days', expires_at = now() - interval '1 day'
          where id = $1`,
        [key.id],
      );
    },

    async family(fields: { orgId: string; name?: string }): Promise<string> {
      const id = randomUUID();
      await query('insert into family (organization_id, id, name) values ($1, $2, $3)', [
        fields.orgId,
        id,
        fields.name ?? 'Rossi family',
      ]);
      return id;
    },

    async grant(fields: {
      professional: MadeMember;
      familyId?: string;
      kind?: 'attorney' | 'neutral';
      since?: Date;
      endsAt?: Date | null;
      endReason?: 'ended' | 'moved' | null;
    }): Promise<{ id: string; familyId: string }> {
      const {
        professional,
        kind = 'attorney',
        since = new Date(Date.now() - 86_400_000),
        endsAt = null,
        endReason = null,
      } = fields;
      const { orgId, userId } = professional;
      const familyId = fields.familyId ?? (await make.family({ orgId }));
      const id = randomUUID();
      await query(
        'insert into client_grant (organization_id, id, kind, professional_id, family_id, since, ' +
          'ends_at, status, end_reason) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)',
        [orgId, id, kind, userId, familyId, since, endsAt, endReason === null ? 'active' : 'ended', endReason],
      );
      return { id, familyId };
    },

    async seat(fields: { orgId: string; grant: { id: string; familyId: string }; givenAt?: Date }): Promise<string> {
      const id = randomUUID();
      const { orgId, grant, givenAt = new Date() } = fields;
      await query('insert into seat (organization_id, id, grant_id, family_id, given_at) values ($1, $2, $3, $4, $5)', [
        orgId,
        id,
        grant.id,
        grant.familyId,
        givenAt,
      ]);
      return id;
    },

    /** An active webhook of every event type, by default. */
    async webhook(
      fields: { orgId?: string; url?: string; eventTypes?: readonly EventType[]; description?: string } = {},
    ): Promise<MadeWebhook> {
      const { orgId = await make.organization(), url = 'https://hooks.example.com/events', description = '' } = fields;
      const { eventTypes = changeTypes } = fields;
      const input = {
        organizationId: orgId,
        by: 'orgctl',
        url,
        eventTypes,
        description,
        allowSameUrl: true,
      } as const;
      const settings = { allow: testAllowList, sealingKeys: testSealingKeys };
      allowSockets('receivers', url);
      return { orgId, ...(await createWebhook(database, input, settings)) };
    },

    /**
     * Inserts an event at `createdAt` and its only delivery, in the given state, with its attempts.
     * Returns the event's id.
     */
    async delivery(fields: {
      webhook: MadeWebhook;
      state?: 'queued' | 'running' | 'delivered' | 'exhausted' | 'cancelled';
      type?: EventType;
      createdAt?: Date;
      settledAt?: Date;
      dueAt?: Date;
      run?: number;
      failures?: number;
      attempts?: MadeAttempt[];
    }): Promise<string> {
      const { webhook, state = 'queued', type = 'client.started', attempts = [] } = fields;
      const { createdAt = new Date(), settledAt = new Date(), dueAt = new Date() } = fields;
      const { run = state === 'queued' && attempts.length === 0 ? 0 : 1 } = fields;
      const ended = attempts.filter(({ finishedAt }) => finishedAt !== null);
      const { failures = state === 'delivered' ? 0 : ended.length } = fields;
      const { orgId, id: webhookId } = webhook;
      // An id with the event's time, as the database generates it.
      const millisecondId = firstEventIdAt(new Date(createdAt.getTime() + 1_000)).slice(0, 15);
      const eventId = millisecondId + randomUUID().slice(15);
      const body = JSON.stringify({ id: eventId, type });
      await query(
        'insert into event (organization_id, id, type, created_at, body, delivery_count) values ($1, ' +
          '$2, $3, $4, $5, 1)',
        [orgId, eventId, type, createdAt, body],
      );
      await query('insert into ledger_count (organization_id, changes) values ($1, 1)', [orgId]);
      const isOpen = state === 'queued' || state === 'running';
      await query(
        `insert into delivery (organization_id, webhook_id, event_id, state, run, failures, attempts, created_at,
          settled_at, due_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
        [
          orgId,
          webhookId,
          eventId,
          state,
          run,
          failures,
          ended.length,
          createdAt,
          isOpen ? null : settledAt,
          isOpen ? dueAt : null,
        ],
      );
      for (const [index, attempt] of attempts.entries())
        await make.attempt({ webhook, eventId, number: index + 1, run, startedAt: createdAt, ...attempt });
      return eventId;
    },

    /** Inserts an attempt of a delivery, which must exist. Returns the attempt's id. */
    async attempt({ webhook, eventId, ...attempt }: MadeAttempt & { webhook: Hook; eventId: string }): Promise<string> {
      const of = [webhook.orgId, webhook.id, eventId];
      const { number = null, run = 1, status = null, startedAt = new Date(), finishedAt = startedAt } = attempt;
      const { endsSchedule = false, signedWith = [], explanation = null, timings = null, peerAddress = null } = attempt;
      const { keptBytes = null, response = null, headers = null } = attempt;
      const { cause = status !== null && status < 300 ? 'accepted' : 'status' } = attempt;
      const id = randomUUID();
      await query(
        `insert into delivery_attempt (organization_id, webhook_id, event_id, id, number, run, ends_schedule,
          signed_with,
          started_at, finished_at, status, cause, explanation, timings, peer_address, kept_bytes, response, headers)
         select $1, $2, $3, $4, coalesce($5, (select count(*) + 1 from delivery_attempt a where a.organization_id = $1
           and a.webhook_id = $2 and a.event_id = $3)), $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18`,
        [
          ...of,
          id,
          number,
          run,
          endsSchedule,
          signedWith,
          startedAt,
          finishedAt,
          status,
          finishedAt === null ? null : cause,
          explanation,
          timings === null ? null : JSON.stringify(timings),
          peerAddress,
          keptBytes,
          response,
          headers === null ? null : JSON.stringify(headers),
        ],
      );
      if (finishedAt === null)
        await query(
          `insert into slot (organization_id, webhook_id, event_id, run, host, degraded, attempt_id, admitted_at, until)
           values ($1, $2, $3, $4, '', false, $5, $6::timestamptz, $6::timestamptz + interval '1 hour')`,
          [...of, run, id, startedAt],
        );
      return id;
    },
  };
  return make;
}

export type Factories = ReturnType<typeof createFactories>;
