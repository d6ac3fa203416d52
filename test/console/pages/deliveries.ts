import { requestRedelivery } from '#domain/webhooks/redeliveries.ts';
import type { MadeWebhook } from '#test/make.ts';
import type { ConsoleInstallation, Enrolled } from '../setup.ts';
import { fillAttempts, hostileResponse, insertWebhook, makeDeliveries } from '../webhook-stories.ts';
import type { JudgedPage } from './page.ts';

type Story = { webhook: MadeWebhook } & Awaited<ReturnType<typeof makeDeliveries>>;
const stories = new WeakMap<ConsoleInstallation, Promise<Story>>();

/**
 * A webhook with a delivery in each state, one per installation. It replaces the newest when there
 * are 20.
 */
function story(t: ConsoleInstallation, ada: Enrolled): Promise<Story> {
  const known = stories.get(t) ?? tell(t, ada);
  stories.set(t, known);
  return known;
}

async function tell(t: ConsoleInstallation, ada: Enrolled): Promise<Story> {
  await t.owner.pool.query(
    `update webhook set state = 'deleted', number = null, suspended_reason = null
      where organization_id = $1 and number = 20`,
    [ada.orgId],
  );
  const webhook = await insertWebhook(t, ada, { description: 'Reporting' });
  const deliveries = await makeDeliveries(t, webhook);
  await fillAttempts(t, deliveries.exhausted, { response: hostileResponse });
  return { webhook, ...deliveries };
}

const pathTo =
  (rest: (story: Story) => string): JudgedPage['path'] =>
  async (t, ada) => {
    const created = await story(t, ada);
    return `/o/${ada.orgId}/webhooks/${created.webhook.id}${rest(created)}`;
  };

export const pages: readonly JudgedPage[] = [
  { route: 'listDeliveries', picture: 'deliveries', path: pathTo(() => '/deliveries') },
  {
    route: 'listDeliveries',
    picture: 'deliveries-none',
    path: pathTo(() => '/deliveries?status=cancelled&from=2026-11-01T08:00&zone=Europe/Paris'),
  },
  {
    route: 'listAllDeliveries',
    picture: 'deliveries-all',
    async path(t, ada) {
      await story(t, ada);
      return `/o/${ada.orgId}/deliveries`;
    },
  },
  {
    route: 'listAllDeliveries',
    picture: 'deliveries-all-filtered',
    path: async (_t, ada) => `/o/${ada.orgId}/deliveries?status=cancelled&event=17`,
  },
  {
    route: 'reviewSelected',
    picture: 'redeliver-selected',
    async path(t, ada) {
      const { webhook, delivered } = await story(t, ada);
      return `/o/${ada.orgId}/deliveries/redeliver?delivery=${webhook.id}.${delivered}`;
    },
  },
  { route: 'showDelivery', picture: 'delivery-waiting', path: pathTo(({ waiting }) => `/deliveries/${waiting}`) },
  { route: 'showDelivery', picture: 'delivery-given-up', path: pathTo(({ exhausted }) => `/deliveries/${exhausted}`) },
  { route: 'showAttempt', picture: 'attempt', path: pathTo(({ delivered }) => `/deliveries/${delivered}/attempts/1`) },
  {
    route: 'showAttempt',
    picture: 'attempt-hostile',
    path: pathTo(({ exhausted }) => `/deliveries/${exhausted}/attempts/2`),
  },
  {
    route: 'showCancelDelivery',
    picture: 'delivery-cancel',
    path: pathTo(({ waiting }) => `/deliveries/${waiting}/cancel`),
  },
  { route: 'showRedeliver', picture: 'redeliver', path: pathTo(() => '/redeliver') },
  {
    route: 'reviewRedelivery',
    picture: 'redeliver-review',
    path: pathTo(() => '/redeliver/review?what=failed&hours=720'),
  },
  {
    route: 'showRedelivery',
    picture: 'redelivery',
    async path(t, ada) {
      const { webhook } = await story(t, ada);
      const request = { organizationId: ada.orgId, webhookId: webhook.id, by: 'orgctl' } as const;
      const failedSince = new Date(Date.now() - 86_400_000).toISOString();
      const { id } = await requestRedelivery(t.owner, { ...request, selection: { failedSince } });
      return `/o/${ada.orgId}/webhooks/${webhook.id}/redeliveries/${id}`;
    },
  },
];
