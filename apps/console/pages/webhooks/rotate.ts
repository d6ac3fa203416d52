import { z } from 'zod';
import { secretOverlapMaxDays } from '#domain/webhooks/limits.ts';
import { rotateSecret } from '#domain/webhooks/rotate.ts';
import { form, selectField } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { notice } from '../../components/notice.ts';
import { overlapField } from '../../components/overlap.ts';
import { shownOnce } from '../../components/secret.ts';
import { time } from '../../components/time.ts';
import { type Page, page } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { html } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { breadcrumbsOf, getWebhook, nameOf, of, webhookRequest } from './find-webhook.ts';
import { secretsTable } from './secrets.ts';
import { howToVerify } from './verify-snippets.ts';

/** How long the previous secrets keep signing, in hours. */
const overlap = overlapField(secretOverlapMaxDays, {
  none: 'No overlap. The old secret stops signing immediately.',
  problem: 'Choose how long both secrets sign.',
});

/** Creates a new signing secret. The old one keeps signing for the chosen overlap. */
export const rotateRoutes = [
  member.view({
    name: 'showRotateSecret',
    path: '/webhooks/:webhookId/rotate',
    permission: 'org.webhooks.manage',
    show: (visit) => rotatePage(visit, freshForm({ overlapHours: '24' })),
  }),

  member.action({
    name: 'rotateSecret',
    path: '/webhooks/:webhookId/rotate',
    permission: 'org.webhooks.manage',
    stepUp: true,
    once: true,
    form: z.object({
      overlapHours: overlap.hours(z.string({ error: 'Choose how long both secrets sign.' })),
    }),
    async act(visit, { overlapHours: hours }) {
      const { em, factors } = visit.console;
      const rotated = await rotateSecret(
        em,
        { ...webhookRequest(visit), overlapSeconds: hours * 3600 },
        factors.sealingKeys,
      );
      const webhook = await getWebhook(visit);
      return page({
        title: 'Signing secret rotated',
        breadcrumbs: breadcrumbsOf(visit, webhook),
        body: html`
          ${
            hours === 0
              ? notice(
                  'warning',
                  'The old secret has stopped signing. Update your system now. Until then it rejects events, ' +
                    'which are retried later.',
                )
              : notice(
                  'info',
                  html`Events are signed with both secrets until ${time(rotated.previousValidUntil)}. Update your system
                    before then.`,
                )
          }
          ${shownOnce({
            label: 'Signing secret',
            value: rotated.secret,
            advice: 'Replace the old secret in your system with it.',
          })}
          <section aria-labelledby="secrets"><h2 id="secrets">Active secrets</h2>
            ${secretsTable(webhook.secrets, visit.console.now())}</section>
          ${howToVerify()}
          <p class="actions">${linkButton(of(visit), 'I’ve saved it')}
            <a href="${of(visit, '/verify')}">Check signature verification</a></p>`,
      });
    },
    redraw: rotatePage,
  }),
];

async function rotatePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const webhook = await getWebhook(visit);
  return page({
    title: 'Rotate signing secret',
    breadcrumbs: breadcrumbsOf(visit, webhook),
    body: html`
      <p>The new secret is shown once. During the overlap every event carries a signature from each secret, so that
        your system can switch without rejecting events.</p>
      <section aria-labelledby="secrets"><h2 id="secrets">Active secrets</h2>
        ${secretsTable(webhook.secrets, visit.console.now())}</section>
      ${form(visit, {
        action: of(visit, '/rotate'),
        state,
        button: `Rotate signing secret of ${nameOf(webhook)}`,
        secondary: html`<a href="${of(visit)}">Cancel</a>`,
        fields: selectField(state, {
          name: 'overlapHours',
          label: 'Overlap',
          options: overlap.choices,
          hint:
            `How long both secrets sign, up to ${secretOverlapMaxDays} days. ` +
            'If the old secret leaked, choose “No overlap”.',
        }),
      })}`,
  });
}
