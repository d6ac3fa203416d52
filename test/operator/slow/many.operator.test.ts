/** Many objects: the time and the requests until all are ready, and the requests afterwards. */
import { setTimeout as wait } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { group, kinds, type WebhookSubscription } from '../../../apps/operator/kube/resources.ts';
import { setupDeclared } from '../declared.ts';
import { shareApiServer } from '../share-api-server.ts';

const server = shareApiServer();

it('500 WebhookSubscriptions converge, and then cause no request', { timeout: 600_000 }, async () => {
  const t = await setupDeclared(server());
  const organizations = await Promise.all(Array.from({ length: 25 }, () => t.make.organization()));
  const declared = organizations.flatMap((organizationId, index) =>
    Array.from({ length: 20 }, (_, number) => ({ name: `s-${index}-${number}`, organizationId })),
  );
  for (let from = 0; from < declared.length; from += 20)
    await Promise.all(
      declared
        .slice(from, from + 20)
        .map(({ name, organizationId }) =>
          t.declare(name, { organizationId, url: `https://hooks.example.com/${name}` }),
        ),
    );
  const startedAt = performance.now();
  const { requests } = await t.start();
  const { version, plural } = kinds.WebhookSubscription;
  await vi.waitFor(
    async () => {
      const request = { group, version, plural, namespace: t.namespace };
      const { items } = (await t.custom.listNamespacedCustomObject(request)) as { items: WebhookSubscription[] };
      const ready = items.filter(({ status }) => status?.conditions?.[0]?.status === 'True');
      expect(ready).toHaveLength(declared.length);
    },
    { timeout: 480_000, interval: 1_000 },
  );
  const seconds = (performance.now() - startedAt) / 1_000;
  const counts = Object.groupBy(requests, ({ method, resource }) => `${method} ${resource}`);
  const shown = Object.entries(counts).map(([request, all]) => `${all?.length} ${request}`);
  process.stdout.write(
    `500 subscriptions: ${seconds.toFixed(1)} s, ${requests.length} requests (${shown.join(', ')})\n`,
  );
  expect(await t.rows('select from webhook')).toHaveLength(declared.length);
  await vi.waitFor(
    async () => {
      const before = requests.length;
      await wait(10_000);
      expect(requests.length).toBe(before);
    },
    { timeout: 90_000 },
  );
});
