import { randomUUID } from 'node:crypto';
import { insertOrganization, insertWebhook } from '#test/webhook-changes.ts';
import { cookieName } from '../../../apps/console/middleware/cookies.ts';
import type { BenchOrganization } from '../deliveries/changes.ts';
import { addSettled, addWebhooks } from '../growth/fill-deliveries.ts';
import { fillOrganization, preparePast, signIn } from '../growth/fill-organization.ts';
import { type BenchKey, fillGrants, fillOrganizations } from '../reads/region.ts';
import { retention, type SoakStack } from './stack.ts';

/** What the load uses. */
export interface SoakRegion {
  keys: BenchKey[];
  /** Organizations whose webhook delivers to the receiver. */
  organizations: BenchOrganization[];
  /** A page of the console, and the cookie of a person who may see it. */
  page: { url: string; cookie: string };
}

const grantsEach = 10;
const receiving = 20;
const past = { organizations: 5, webhooksEach: 4 };
const pageSize = { lines: 1_000, deliveries: 1_000 };

/**
 * Fills the region so that its size stays the same: the load adds `deliveries` in `minutes`, and as
 * many old ones reach the end of their retention meanwhile, spread evenly. The same number is
 * younger and stays.
 */
export async function fillRegion(stack: SoakStack, deliveries: number, minutes: number): Promise<SoakRegion> {
  const { owner, database, consoleConfig, sealingKeys } = stack;
  const keys = await fillOrganizations(owner, stack.secrets);
  await fillGrants(owner, grantsEach, 0);
  await preparePast(owner);
  const shown = await fillOrganization(owner, database, consoleConfig, pageSize);
  const session = await signIn(database, [shown.id], consoleConfig);

  const webhooks = await addWebhooks(owner, past.organizations, past.webhooksEach);
  const count = Math.ceil(deliveries / webhooks.length);
  const { deliveryDays } = retention;
  for (const webhook of webhooks) {
    const newestDays = deliveryDays - minutes / 1_440;
    await addSettled(owner, webhook, { count, oldestDays: deliveryDays, newestDays });
    await addSettled(owner, webhook, { count, oldestDays: deliveryDays - 1, newestDays: 1 });
  }
  const organizations: BenchOrganization[] = [];
  for (let nth = 1; nth <= receiving; nth += 1) {
    const { id, userId } = await insertOrganization(database.pool, nth);
    const webhookId = randomUUID();
    const url = `${stack.receiver.url}/soak`;
    await insertWebhook(database.pool, { organizationId: id, webhookId, number: 1, url, keys: sealingKeys });
    organizations.push({ id, userId, webhookId });
  }
  await owner.query('vacuum analyze');
  await owner.query('checkpoint');
  const cookie = `${cookieName('session', stack.consoleUrl)}=${session}`;
  return { keys, organizations, page: { url: `${stack.consoleUrl}/o/${shown.id}`, cookie } };
}
