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
import { breadcrumbsOf, getWebhook, of, webhookRequest } from './find-webhook.ts';
import { secretsTable } from './secrets.ts';
import { howToVerify } from './verify-snippets.ts';

/** How long the secrets of before go on signing, in hours. */
const overlap = overlapField(secretOverlapMaxDays, {
  none: 'Not at all: only the new one signs, at once',
  problem: 'Choose how long both secrets sign.',
});

/** A new signing secret, with the old one signing beside it for a while. */
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
        title: 'The new secret',
        breadcrumbs: breadcrumbsOf(visit, webhook),
        body: html`
          ${
            hours === 0
              ? notice(
                  'warning',
                  'The old secret has stopped signing. Put the new one in place now: until then your system refuses what we send, and we send it again later.',
                )
              : notice(
                  'info',
                  html`Every event is signed with the old secret too, until ${time(rotated.previousValidUntil)}. Put the new one in place before.`,
                )
          }
          ${shownOnce({ label: 'Signing secret', value: rotated.secret, advice: 'Put it where your system keeps the old one.' })}
          <section aria-labelledby="secrets"><h2 id="secrets">Secrets that sign now</h2>${secretsTable(webhook.secrets, visit.console.now())}</section>
          ${howToVerify()}
          <p class="actions">${linkButton(of(visit), 'I have kept it')}<a href="${of(visit, '/verify')}">Check that the receiver verifies with it</a></p>`,
      });
    },
    redraw: rotatePage,
  }),
];

async function rotatePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const webhook = await getWebhook(visit);
  return page({
    title: 'Rotate the signing secret',
    breadcrumbs: breadcrumbsOf(visit, webhook),
    body: html`
      <p>A new secret is made and shown once. While both sign, every event carries a signature of each, so your system can change from one to the other at any moment without refusing anything.</p>
      <section aria-labelledby="secrets"><h2 id="secrets">Secrets that sign now</h2>${secretsTable(webhook.secrets, visit.console.now())}</section>
      ${form(visit, {
        action: of(visit, '/rotate'),
        state,
        button: 'Make the new secret',
        secondary: html`<a href="${of(visit)}">Back</a>`,
        fields: selectField(state, {
          name: 'overlapHours',
          label: 'Both secrets sign for',
          options: overlap.choices,
          hint: `The time you need to put the new one in place, at most ${secretOverlapMaxDays} days. If the old one got out, choose “not at all”.`,
        }),
      })}`,
  });
}
