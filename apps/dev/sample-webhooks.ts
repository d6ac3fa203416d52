import { eventTypes } from '#domain/contract/events.ts';
import type { PostgresServer } from '#domain/db/server.ts';
import type { Database } from '#domain/open-database.ts';
import { createWebhook } from '#domain/webhooks/create.ts';
import { addressBlocks, webhookSecretKeys } from '#runtime/settings/types.ts';
import { withDatabase } from './databases.ts';
import type { SampleWebhook, StackOrganization } from './state.ts';

/** The non-public addresses that webhooks of a development stack may reach: this machine's own. */
export const stackAllow = '127.0.0.0/8,::1';

/**
 * Subscribes the sample receiver to every event of each organization without such a webhook. The
 * path of the URL is the organization's id. Returns all webhooks, older ones first.
 */
export async function ensureSampleWebhooks(options: {
  owner: PostgresServer;
  receiverUrl: string;
  sealingKeys: string;
  organizations: readonly StackOrganization[];
  known: readonly SampleWebhook[];
}): Promise<SampleWebhook[]> {
  const { owner, receiverUrl, organizations, known } = options;
  const settings = {
    allow: addressBlocks.parse(stackAllow),
    sealingKeys: webhookSecretKeys.parse(options.sealingKeys),
  };
  const all = [...known];
  return withDatabase(owner, async (database) => {
    for (const { webhookId } of known) await followReceiver(database, webhookId, receiverUrl);
    for (const { id: organizationId } of organizations) {
      if (known.some((webhook) => webhook.organizationId === organizationId)) continue;
      const input = {
        organizationId,
        by: 'operator',
        url: `${receiverUrl}/hooks/${organizationId}`,
        eventTypes,
        description: 'Sample receiver',
      } as const;
      const { id: webhookId, secret } = await createWebhook(database.orm.em, input, settings);
      all.push({ organizationId, webhookId, secret });
    }
    return all;
  });
}

/** The receiver's port may have changed since the last start. */
async function followReceiver(database: Database, webhookId: string, receiverUrl: string): Promise<void> {
  await database.pool.query(
    `update webhook set url = $2 || '/hooks/' || organization_id
      where id = $1 and url <> $2 || '/hooks/' || organization_id and state <> 'deleted'`,
    [webhookId, receiverUrl],
  );
}

/**
 * Starts a client's first grant, so that a first event is delivered: a new family gives an active
 * member access. The database creates the event.
 */
export async function causeFirstEvent(owner: PostgresServer, organizationId: string): Promise<void> {
  await withDatabase(owner, (database) =>
    database.pool.query(
      `with professional as (
         select person_id from membership where organization_id = $1 and status = 'active' order by person_id limit 1
       ), made as (
         insert into family (organization_id, id, name) select $1, new_id(), 'First event family' from professional
           returning id
       )
       insert into client_grant (organization_id, kind, professional_id, family_id, since)
       select $1, 'attorney', p.person_id, m.id, now() from professional p, made m`,
      [organizationId],
    ),
  );
}
