import { randomUUIDv7 } from 'node:crypto';
import type { EntityManager } from '@mikro-orm/postgresql';
import { recordActivity } from '#domain/activity/record.ts';
import { eventTypes } from '#domain/contract/events.ts';
import type { Scope } from '#domain/contract/scopes.ts';
import { arrayOf, runStatement, sql } from '#domain/db/statement.ts';
import { createKey } from '#domain/keys/create.ts';
import type { KeySecrets } from '#domain/keys/fingerprint.ts';
import { listKeys } from '#domain/keys/list.ts';
import { revokeKey } from '#domain/keys/revoke.ts';
import { createWebhook, type WebhookSettings } from '#domain/webhooks/create.ts';
import { assertUrl } from '#domain/webhooks/fields.ts';
import { listWebhooks } from '#domain/webhooks/list.ts';
import { deleteWebhook } from '#domain/webhooks/park.ts';
import { ProbeRefused } from './probe-refused.ts';

/**
 * What the operator's probe needs to read and to receive. `key` and `webhookSecret` are shown this
 * once.
 */
export interface CreatedProbe {
  organizationId: string;
  key: string;
  webhookId: string;
  webhookSecret: string;
}

/**
 * The operator's own organization: no family, no client, one person who is nobody. It is found
 * again by this slug.
 */
const probe = { slug: 'operator-probe', name: "The operator's probe", personId: 'org_api_probe', roleKey: 'probe' };
/** The least that a read can be made with. */
const probeScopes: readonly Scope[] = ['org.read'];

/**
 * Makes an organization of the operator's own with one key and one webhook, for `helm test` and for
 * monitors that read from outside; no real organization is touched. Issue "Helm per region", point
 * 6.
 *
 * With `renew`, an existing probe's keys are revoked and its webhooks deleted first, which is also
 * how its secrets are rotated; a call that died half-way is mended that way.
 *
 * @throws ProbeRefused when there is one already and `renew` is false.
 * @throws WebhookRefused when the URL is refused; nothing is made then.
 */
export async function createProbe(
  em: EntityManager,
  { url, renew }: { url: string; renew: boolean },
  { keys, webhooks }: { keys: KeySecrets; webhooks: WebhookSettings },
): Promise<CreatedProbe> {
  assertUrl(url, webhooks.allow); // before an earlier probe is taken apart
  const organizationId = await takeOrganization(em, renew);
  const by = 'operator';
  for (const key of await listKeys(em, organizationId, new Date()))
    if (key.state === 'live') await revokeKey(em, { organizationId, keyId: key.id, by });
  for (const { id } of await listWebhooks(em, { organizationId, by }))
    await deleteWebhook(em, { organizationId, webhookId: id, by });
  const description = 'signed test events of helm test';
  const webhook = await createWebhook(em, { organizationId, by, url, eventTypes, description }, webhooks);
  const { key } = await createKey(
    em,
    { organizationId, makerId: probe.personId, scopes: probeScopes, label: 'probe', expiresAt: null, byOperator: true },
    keys,
  );
  return { organizationId, key, webhookId: webhook.id, webhookSecret: webhook.secret };
}

/** The probe's organization with its one person, made when there is none, in one transaction. */
async function takeOrganization(em: EntityManager, renew: boolean): Promise<string> {
  return em.fork().transactional(async (tx) => {
    await runStatement(tx, sql`select pg_advisory_xact_lock(hashtextextended('org_api.probe', 0))`);
    const [known] = await runStatement<{ id: string }>(
      tx,
      sql`select o.id from organization o where o.slug = ${probe.slug}`,
    );
    if (known !== undefined && !renew)
      throw new ProbeRefused(
        'There is a probe already, and its key cannot be shown again: use the Secret it was kept in, or add --renew yes to revoke that key and make everything anew.',
      );
    if (known !== undefined) return known.id;
    const id = randomUUIDv7();
    const roleId = randomUUIDv7();
    await runStatement(
      tx,
      sql`insert into organization (id, name, slug, kind, status) values (${id}, ${probe.name}, ${probe.slug}, 'other', 'active')`,
    );
    await runStatement(tx, sql`insert into seat_plan (organization_id, invoiced) values (${id}, 0)`);
    await runStatement(tx, sql`insert into person (id) values (${probe.personId}) on conflict do nothing`);
    await runStatement(
      tx,
      sql`insert into membership (organization_id, person_id, name, email, status) values (${id}, ${probe.personId}, 'Probe', 'probe@invalid', 'active')`,
    );
    await runStatement(
      tx,
      sql`insert into role (id, organization_id, key, name, description, permissions) values (${roleId}, ${id}, ${probe.roleKey}, 'Probe', 'What the probe may read.', ${arrayOf(probeScopes)}::text[])`,
    );
    await runStatement(
      tx,
      sql`insert into membership_role (organization_id, person_id, role_id) values (${id}, ${probe.personId}, ${roleId})`,
    );
    await recordActivity(tx, { organizationId: id, personId: null, action: 'probe.create' });
    return id;
  });
}
