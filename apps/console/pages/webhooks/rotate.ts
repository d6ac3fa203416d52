import { z } from 'zod';
import { secretOverlapMaxDays } from '#domain/webhooks/limits.ts';
import type { SecretPeriod } from '#domain/webhooks/list.ts';
import { rotateSecret } from '#domain/webhooks/rotate.ts';
import { type Html, html } from '#runtime/pages/html.ts';
import { form } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { notice } from '../../components/notice.ts';
import { overlapField } from '../../components/overlap.ts';
import { shownBefore, shownOnce } from '../../components/secret.ts';
import { time } from '../../components/time.ts';
import type { FormState } from '../../web/form.ts';
import { type Page, page } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { getWebhook, webhookBreadcrumbs, webhookPath, webhookRequest, webhookTitle } from './find-webhook.ts';
import { secretsTable } from './secrets.ts';
import { howToVerify } from './verify-snippets.ts';

/** How long the previous secrets sign, in hours. */
const overlap = overlapField(secretOverlapMaxDays, 'secret', 'sign');

/** Creates a new signing secret. The old one signs too for the chosen overlap. */
export const rotateRoutes = member.formPage({
  pageName: 'showRotateSecret',
  name: 'rotateSecret',
  path: '/webhooks/:webhookId/rotate',
  permission: 'org.webhooks.manage',
  stepUp: true,
  once: true,
  values: () => ({ overlapHours: '24' }),
  form: z.object({ overlapHours: overlap.schema }),
  async act(visit, { overlapHours: hours }) {
    const { database, factors } = visit.console;
    const request = { ...webhookRequest(visit), overlapSeconds: hours * 3600 };
    const { secret, previousValidUntil } = await rotateSecret(database, request, factors.sealingKeys);
    const webhook = await getWebhook(visit);
    return page({
      title: 'Signing secret rotated',
      breadcrumbs: webhookBreadcrumbs(visit, webhook),
      body: html`
        ${overlapNotice(hours, previousValidUntil)}
        ${shownOnce({
          label: 'Signing secret',
          value: secret,
          advice: 'Replace the old secret in your system with it.',
        })}
        ${secretsSection(visit, webhook.secrets)}
        ${howToVerify(visit)}
        <p class="actions">${linkButton(webhookPath(visit), 'I’ve saved it')}
          <a href="${webhookPath(visit, '/verify')}">Check signature verification</a></p>`,
    });
  },
  again: (visit) =>
    shownBefore(
      'The new signing secret',
      'If you didn’t store it, rotate again.',
      webhookPath(visit, '/rotate'),
      'Rotate signing secret',
    ),
  render: rotatePage,
});

const overlapNotice = (hours: number, previousValidUntil: string): Html =>
  hours === 0
    ? notice(
        'warning',
        'The old secret has stopped signing. Update your system now. Until then it rejects events, ' +
          'which are retried later.',
      )
    : notice(
        'info',
        html`Events are signed with both secrets until ${time(previousValidUntil)}. Update your system before then.`,
      );

const secretsSection = (visit: MemberVisit, secrets: readonly SecretPeriod[]): Html =>
  html`<section aria-labelledby="secrets"><h2 id="secrets">Active secrets</h2>
    ${secretsTable(secrets, visit.console.now())}</section>`;

async function rotatePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const webhook = await getWebhook(visit);
  return page({
    title: 'Rotate signing secret',
    breadcrumbs: webhookBreadcrumbs(visit, webhook),
    body: html`
      <p>The new secret is shown once. During the overlap every event carries a signature from each secret, so that
        your system can switch without rejecting events.</p>
      ${secretsSection(visit, webhook.secrets)}
      ${form(visit, {
        state,
        button: `Rotate signing secret of ${webhookTitle(webhook)}`,
        cancel: webhookPath(visit),
        fields: overlap.render(state),
      })}`,
  });
}
