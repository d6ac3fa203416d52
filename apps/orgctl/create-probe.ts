import { randomUUIDv7 } from 'node:crypto';
import { sql } from 'kysely';
import { deleteWebhook } from '#delivery/requests.ts';
import { Membership, MembershipRole, Organization, Person, Role } from '#domain/access/membership.entity.ts';
import { recordAuditEntry } from '#domain/audit-log/record.ts';
import { changeTypes } from '#domain/contract/events.ts';
import type { Scope } from '#domain/contract/scopes.ts';
import { brokenConstraint } from '#domain/db/constraint.ts';
import type { Database, Transaction } from '#domain/db/database.ts';
import { findDatabaseTime } from '#domain/db/statement.ts';
import { createKey } from '#domain/keys/create.ts';
import type { KeySecrets } from '#domain/keys/key.ts';
import { listKeys } from '#domain/keys/list.ts';
import { revokeKey } from '#domain/keys/revoke.ts';
import { createWebhook, type WebhookSettings } from '#domain/webhooks/create.ts';
import { assertUrl } from '#domain/webhooks/fields.ts';
import { listWebhooks } from '#domain/webhooks/list.ts';
import { CommandError } from './errors.ts';

/** What the probe needs to read and to receive. `key` and `webhookSecret` are shown only once. */
export interface CreatedProbe {
  organizationId: string;
  key: string;
  webhookId: string;
  webhookSecret: string;
}

/** The operator's organization: one fictional person and no family. It is found by its slug. */
const probe = { slug: 'operator-probe', name: "The operator's probe", personId: 'org_api_probe', roleKey: 'probe' };
/** The smallest permission of a read. */
const probeScopes: readonly Scope[] = ['org.read'];

/**
 * Creates an organization of the operator with one key and one webhook, for `helm test` and for
 * external monitors. With `renew`, an existing probe's keys are revoked and its webhooks deleted
 * first, which rotates its secrets and repairs a call that was interrupted.
 *
 * @throws CommandError when there is one already and `renew` is false.
 * @throws WebhookError when the URL is rejected; nothing is created then.
 */
export async function createProbe(
  database: Database,
  { url, renew }: { url: string; renew: boolean },
  { keys, webhooks }: { keys: KeySecrets; webhooks: WebhookSettings },
): Promise<CreatedProbe> {
  assertUrl(url, webhooks.allow); // before an earlier probe is deleted
  const organizationId = await findOrCreateOrganization(database, renew);
  const by = 'orgctl';
  for (const key of await listKeys(database, organizationId, new Date()))
    if (key.state === 'valid') await revokeKey(database, { organizationId, keyId: key.id, by });
  for (const { id } of await listWebhooks(database, { organizationId, by }))
    await deleteWebhook(database, { organizationId, webhookId: id, by });
  const description = 'signed test events of helm test';
  const webhook = await createWebhook(
    database,
    { organizationId, by, url, eventTypes: changeTypes, description },
    webhooks,
  );
  const { key } = await createKey(
    database,
    { organizationId, by, creatorId: probe.personId, scopes: probeScopes, label: 'probe', expiresAt: null },
    keys,
  );
  return { organizationId, key, webhookId: webhook.id, webhookSecret: webhook.secret };
}

/**
 * Returns the probe's organization with its one person; creates it when there is none. Of two
 * callers at once, the unique slug lets one create it.
 */
async function findOrCreateOrganization(database: Database, renew: boolean): Promise<string> {
  const known = await database.findOne(Organization, { slug: probe.slug });
  if (known !== null && renew) return known.id;
  if (known !== null) throw probeExists();
  try {
    return await database.change(createOrganization);
  } catch (error) {
    throw brokenConstraint(error) === 'organization_slug_unique' ? probeExists() : error;
  }
}

const probeExists = () =>
  new CommandError(
    'A probe exists, and its key cannot be shown again. Use the Secret that contains it, ' +
      'or add --renew yes to revoke the key and create a new probe.',
  );

async function createOrganization(tx: Transaction): Promise<string> {
  const { name, slug, personId, roleKey } = probe;
  const createdAt = await findDatabaseTime(tx);
  const id = randomUUIDv7();
  tx.create(Organization, { id, name, slug, kind: 'other', status: 'active', createdAt });
  await tx.upsert(Person, { id: personId, createdAt }, { onConflictAction: 'ignore' });
  await tx.flush(); // each of these refers to those before it
  await tx.query(sql`insert into seat_plan (organization_id, invoiced) values (${id}, 0)`);
  tx.create(Membership, {
    organizationId: id,
    personId,
    name: 'Probe',
    email: 'probe@invalid',
    title: null,
    status: 'active',
  });
  const { id: roleId } = tx.create(Role, {
    id: randomUUIDv7(),
    organizationId: id,
    key: roleKey,
    name: 'Probe',
    description: 'What the probe may read.',
    permissions: [...probeScopes],
    position: null,
  });
  await tx.flush();
  tx.create(MembershipRole, { organizationId: id, personId, roleId });
  await tx.flush();
  await recordAuditEntry(tx, { organizationId: id, by: 'orgctl', action: 'probe.create' });
  return id;
}
