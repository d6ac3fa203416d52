import { createWebhook } from '#domain/webhooks/create.ts';
import { webhooksPerOrganization } from '#domain/webhooks/limits.ts';
import { listWebhooks } from '#domain/webhooks/list.ts';
import { pageCounts, type WebhookSummary } from '#domain/webhooks/summary.ts';
import { type Html, html } from '#runtime/pages/html.ts';
import { form } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { notice } from '../../components/notice.ts';
import { shownBefore, shownOnce } from '../../components/secret.ts';
import { webhookStatus } from '../../components/status.ts';
import { table } from '../../components/table.ts';
import { time } from '../../components/time.ts';
import type { FormState } from '../../web/form.ts';
import { type Page, page } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { describeDay, webhookName } from './cells.ts';
import { renderWebhookFields, webhookForm, withUrlProblem } from './fields.ts';
import { webhookTitle } from './find-webhook.ts';
import { nameWarning } from './name-warning.ts';
import { howToVerify } from './verify-snippets.ts';

const breadcrumbs = (visit: MemberVisit) => [['Webhooks', visit.at('/webhooks')]] as const;

/** Creates a webhook and shows its first signing secret once. */
export const createRoutes = member.formPage({
  pageName: 'showNewWebhook',
  name: 'createWebhook',
  path: '/webhooks/new',
  permission: 'org.webhooks.manage',
  stepUp: true,
  once: true,
  form: webhookForm,
  values: async () => ({ ordered: 'on' }),
  async act(visit, fields) {
    const { database, webhookAllow: allow, factors } = visit.console;
    const { sealingKeys } = factors;
    const created = await createWebhook(database, { ...visit.request, ...fields }, { allow, sealingKeys });
    return page({
      title: 'Webhook added',
      breadcrumbs: breadcrumbs(visit),
      body: html`
        ${await nameWarning(fields.url)}
        ${shownOnce({
          label: 'Signing secret',
          value: created.secret,
          advice:
            'Store it with your system’s other secrets. Your system uses it to verify that an event came ' +
            'from this service.',
        })}
        ${howToVerify(visit)}
        <p class="actions">${linkButton(visit.at(`/webhooks/${created.id}/test`), 'Send test event')}
          <a href="${visit.at(`/webhooks/${created.id}/headers`)}">Add custom headers</a>
          <a href="${visit.at(`/webhooks/${created.id}`)}">View webhook</a></p>`,
    });
  },
  again: newestWebhook,
  render: newWebhookPage,
});

/** Offers to rotate the secret of the newest webhook. */
async function newestWebhook(visit: MemberVisit): Promise<Html> {
  const newest = (await listWebhooks(visit.console.database, visit.request)).at(-1);
  if (newest === undefined) return html``;
  return shownBefore(
    'A signing secret',
    html`If you didn’t store that of <bdi>${webhookTitle(newest)}</bdi>, rotate it.`,
    visit.at(`/webhooks/${newest.id}/rotate`),
    'Rotate signing secret',
  );
}

async function newWebhookPage(visit: MemberVisit, given: FormState): Promise<Page> {
  const state = withUrlProblem(visit, given);
  const { database, now } = visit.console;
  const webhooks = await listWebhooks(database, visit.request, pageCounts(now()));
  if (webhooks.length >= webhooksPerOrganization) return fullPage(visit, webhooks);
  return page({
    title: 'Add webhook',
    breadcrumbs: breadcrumbs(visit),
    body: form(visit, {
      state,
      button: 'Add webhook',
      cancel: visit.at('/webhooks'),
      fields: renderWebhookFields(visit, state),
    }),
  });
}

function fullPage(visit: MemberVisit, webhooks: readonly WebhookSummary[]): Page {
  return page({
    title: 'Add webhook',
    breadcrumbs: breadcrumbs(visit),
    body: html`
      ${notice(
        'warning',
        `Your organization has ${webhooksPerOrganization} webhooks, which is the maximum. Delete a webhook that you ` +
          'no longer need, or add event types to an existing webhook.',
      )}
      ${table({
        caption: 'Webhooks',
        rows: webhooks,
        columns: [
          {
            heading: 'Webhook',
            main: true,
            cell: (one) => html`<a href="${visit.at(`/webhooks/${one.id}`)}">${webhookName(one)}</a>`,
          },
          { heading: 'Status', cell: webhookStatus },
          { heading: 'Last 24 hours', cell: ({ day }) => describeDay(day) },
          { heading: 'Created', cell: ({ createdAt }) => time(createdAt) },
        ],
      })}`,
  });
}
