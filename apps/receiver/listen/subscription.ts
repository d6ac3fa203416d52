import { BlockList } from 'node:net';
import { deleteWebhook } from '#delivery/requests.ts';
import type { EventType } from '#domain/contract/events.ts';
import { createWebhook } from '#domain/webhooks/create.ts';
import { listWebhooks } from '#domain/webhooks/list.ts';
import { once } from '#runtime/flow/once.ts';
import type { OpenStack } from './stack.ts';

/**
 * Names the process that a webhook is for, so that the next process deletes the webhook of a killed
 * one.
 */
const formatDescription = (pid: number) => `npm run tool -- listen, process ${pid}`;

/**
 * Creates a webhook for this process, after deleting those of processes that have ended. `remove`
 * may be called twice.
 */
export async function subscribe(
  { database, sealingKeys, organization }: OpenStack,
  { url, events, secret: given }: { url: string; events: readonly EventType[]; secret?: string },
): Promise<{ id: string; secret: string; remove(): Promise<void> }> {
  const of = { organizationId: organization.id, by: 'orgctl' } as const;
  for (const webhook of await listWebhooks(database, of)) {
    const [, pid] = /^npm run tool -- listen, process (\d+)$/.exec(webhook.description) ?? [];
    if (pid !== undefined && !isAlive(Number(pid))) await deleteWebhook(database, { ...of, webhookId: webhook.id });
  }
  const allow = new BlockList();
  allow.addSubnet('127.0.0.0', 8, 'ipv4');
  const description = formatDescription(process.pid);
  const { id, secret } = await createWebhook(
    database,
    { ...of, url, eventTypes: events, description, ...(given !== undefined && { secret: given }) },
    { allow, sealingKeys },
  );
  return {
    id,
    secret,
    remove: once(async () => {
      await deleteWebhook(database, { ...of, webhookId: id });
    }),
  };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
