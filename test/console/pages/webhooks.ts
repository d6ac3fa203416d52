import { pauseWebhook } from '#delivery/requests.ts';
import { webhooksPerOrganization } from '#domain/webhooks/limits.ts';
import type { MadeWebhook } from '#test/make.ts';
import type { ConsoleInstallation, Enrolled } from '../setup.ts';
import { insertDeliveries, insertWebhook, makeDeliveries } from '../webhook-stories.ts';
import type { JudgedPage } from './page.ts';

/** The webhook that the pages show, created by the first of them. */
async function shown(t: ConsoleInstallation, ada: Enrolled): Promise<MadeWebhook> {
  const { rows } = await t.owner.pool.query<{ id: string }>(
    `select id from webhook where organization_id = $1 and description = 'Case management' order by created_at limit 1`,
    [ada.orgId],
  );
  if (rows[0] !== undefined) return { id: rows[0].id, orgId: ada.orgId, secret: '' };
  const webhook = await insertWebhook(t, ada);
  await insertDeliveries(t, webhook, { count: 900 });
  await makeDeliveries(t, webhook);
  return webhook;
}

const pathTo =
  (rest = ''): JudgedPage['path'] =>
  async (t, ada) =>
    `/o/${ada.orgId}/webhooks/${(await shown(t, ada)).id}${rest}`;

/** A paused webhook whose name contains markup. */
async function pausedWebhook(t: ConsoleInstallation, ada: Enrolled): Promise<string> {
  const { id } = await insertWebhook(t, ada, {
    description: '<b>Billing</b> \u202Egnillib',
    url: 'https://billing.example.com/a',
  });
  await pauseWebhook(t.owner, { organizationId: ada.orgId, webhookId: id, by: 'orgctl' });
  return id;
}

export const pages: readonly JudgedPage[] = [
  { route: 'listWebhooks', picture: 'webhooks-empty', path: (_t, { orgId }) => `/o/${orgId}/webhooks` },
  { route: 'showNewWebhook', picture: 'webhook-new', path: (_t, { orgId }) => `/o/${orgId}/webhooks/new` },
  {
    route: 'createWebhook',
    picture: 'webhook-made',
    path: (_t, { orgId }) => `/o/${orgId}/webhooks/new`,
    async steps(page) {
      await page.getByLabel('URL').fill('https://intake.example.com/hooks/alder');
      await page.getByRole('checkbox', { name: 'client.started' }).check();
      await page.getByRole('checkbox', { name: 'seat.given' }).check();
      await page.getByLabel('Description').fill('Intake');
      await page.getByRole('button', { name: 'Add webhook' }).click();
      await page.getByRole('heading', { name: 'Signing secret' }).waitFor();
    },
  },
  { route: 'showWebhook', picture: 'webhook', path: pathTo() },
  { route: 'showWebhook', picture: 'webhook-hour', path: pathTo('?health=1h') },
  { route: 'showWebhook', picture: 'webhook-quarter', path: pathTo('?health=90d') },
  { route: 'showEditWebhook', picture: 'webhook-edit', path: pathTo('/edit') },
  {
    route: 'editWebhook',
    picture: 'webhook-edit-rejected',
    path: pathTo('/edit'),
    async steps(page) {
      await page.getByLabel('URL').fill('https://10.1.2.3/hooks');
      await page.getByRole('button', { name: 'Save changes' }).click();
      await page.getByText('not public').waitFor();
    },
  },
  { route: 'showWebhook', picture: 'webhook-settings', path: pathTo('?tab=settings') },
  {
    route: 'setWebhookHeader',
    picture: 'webhook-header-rejected',
    path: pathTo('/headers'),
    async steps(page) {
      await page.getByLabel('Name', { exact: true }).fill('Content-Type');
      await page.getByLabel('Value').fill('text/plain');
      await page.getByRole('button', { name: 'Save header' }).click();
      await page.getByText('You can’t set Content-Type').waitFor();
    },
  },
  {
    route: 'showWebhookHeaders',
    picture: 'webhook-headers',
    path: pathTo('/headers'),
    async steps(page) {
      await page.getByLabel('Name', { exact: true }).fill('Authorization');
      await page.getByLabel('Value').fill('Bearer of the gateway');
      await page.getByRole('button', { name: 'Save header' }).click();
      await page.getByRole('button', { name: 'Remove header Authorization' }).waitFor();
    },
  },
  { route: 'showRotateSecret', picture: 'webhook-rotate', path: pathTo('/rotate') },
  {
    route: 'rotateSecret',
    picture: 'webhook-rotated',
    path: pathTo('/rotate'),
    async steps(page) {
      await page.getByRole('button', { name: 'Rotate signing secret' }).click();
      await page.getByRole('heading', { name: 'Signing secret', exact: true }).waitFor();
    },
  },
  { route: 'showTestWebhook', picture: 'webhook-test', path: pathTo('/test') },
  { route: 'showVerifyWebhook', picture: 'webhook-verify', path: pathTo('/verify') },
  { route: 'showPauseWebhook', picture: 'webhook-pause', path: pathTo('/pause') },
  { route: 'showDeleteWebhook', picture: 'webhook-delete', path: pathTo('/delete') },
  {
    route: 'showResumeWebhook',
    picture: 'webhook-resume',
    path: async (t, ada) => `/o/${ada.orgId}/webhooks/${await pausedWebhook(t, ada)}/resume`,
  },
  { route: 'listWebhooks', picture: 'webhooks', path: (_t, { orgId }) => `/o/${orgId}/webhooks` },
  {
    route: 'showNewWebhook',
    picture: 'webhooks-full',
    async path(t, ada) {
      const { rows } = await t.owner.pool.query<{ count: number }>(
        'select count(*)::int as count from webhook where organization_id = $1',
        [ada.orgId],
      );
      for (let count = rows[0]?.count ?? 0; count < webhooksPerOrganization; count += 1)
        await insertWebhook(t, ada, { url: `https://hooks.example.com/${count}`, description: '' });
      return `/o/${ada.orgId}/webhooks/new`;
    },
  },
];
