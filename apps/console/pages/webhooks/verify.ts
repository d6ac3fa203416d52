import { z } from 'zod';
import { webhookDeleted } from '#domain/webhooks/access.ts';
import { isRefusal, signatureVerdictSentences } from '#domain/webhooks/signature-verdict.ts';
import { requestSignatureCheck } from '#domain/webhooks/test-event.ts';
import type { SignatureCheck } from '#workflows/send-test/types.ts';
import { form } from '../../components/form.ts';
import { notice } from '../../components/notice.ts';
import { type Page, page } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { verdictNotice } from './cells.ts';
import { breadcrumbsOf, getHead, of, webhookRequest } from './find-webhook.ts';
import { testOutcome } from './outcome.ts';
import { requireTemporal, temporalNotice } from './temporal.ts';
import { howToVerify } from './verify-snippets.ts';

/** Whether the receiver verifies: a good and a badly signed probe, on request alone. */
export const verifyRoutes = [
  member.view({
    name: 'showVerifyWebhook',
    path: '/webhooks/:webhookId/verify',
    permission: 'org.webhooks.manage',
    show: (visit) => verifyPage(visit, freshForm(), null),
  }),

  member.action({
    name: 'verifyWebhook',
    path: '/webhooks/:webhookId/verify',
    permission: 'org.webhooks.manage',
    once: true,
    form: z.object({}),
    async act(visit) {
      requireTemporal(visit);
      const { em, workflows } = visit.console;
      const request = webhookRequest(visit);
      const eventType = await requestSignatureCheck(em, request);
      const { organizationId, webhookId } = request;
      const check = await workflows.checkSignatures({ organizationId, webhookId, eventType });
      if (check === null) throw webhookDeleted();
      return verifyPage(visit, freshForm(), check);
    },
    redraw: (visit, state) => verifyPage(visit, state, null),
  }),
];

async function verifyPage(visit: MemberVisit, state: FormState, check: SignatureCheck | null): Promise<Page> {
  const webhook = await getHead(visit);
  return page({
    title: 'Does the receiver verify signatures?',
    breadcrumbs: breadcrumbsOf(visit, webhook),
    body: html`
      ${temporalNotice(visit)}
      ${check === null ? html`${verdictNotice(webhook)}` : resultOf(check)}
      <p>Two test events are sent to <bdi class="url">${webhook.url}</bdi>: one signed correctly, which it has to accept with a 2xx status, and one signed with a wrong secret, which it has to refuse with a 4xx status, such as 400.
        Nothing else ever sends it a badly signed event, and what comes of it is kept with the webhook.</p>
      ${form(visit, {
        action: of(visit, '/verify'),
        state,
        button: check === null ? 'Send both' : 'Check again',
        secondary: html`<a href="${of(visit)}">Back to the webhook</a>`,
      })}
      ${check !== null && check.verdict !== 'verified' ? howToVerify() : nothing}`,
  });
}

const unrecorded: Record<NonNullable<SignatureCheck['unrecorded']>, string> = {
  changed: 'This is not kept: the URL or the secret was changed meanwhile. Check again.',
  internal_error: 'This is not kept: the fault is on our side, and says nothing of the receiver. Check again later.',
};

function resultOf(check: SignatureCheck): Html {
  const { verdict, good, bad } = check;
  return html`<section class="result" aria-labelledby="verdict">
    <h2 id="verdict">${verdict === 'verified' ? 'It verifies' : 'It is not proven that it verifies'}</h2>
    ${notice(verdict === 'verified' ? 'good' : 'bad', signatureVerdictSentences[verdict])}
    ${check.unrecorded === null ? nothing : notice('warning', unrecorded[check.unrecorded])}
    <div class="two">
      <section aria-labelledby="good"><h3 id="good">Signed correctly</h3>${testOutcome(good)}</section>
      <section aria-labelledby="bad"><h3 id="bad">Signed with a wrong secret</h3>${bad === null ? html`<p>It was not sent, because the first was not accepted, and that settles it.</p>` : badOutcome(bad)}</section>
    </div></section>`;
}

/** Of a badly signed event the refusal is what is wanted. */
const badOutcome = (bad: NonNullable<SignatureCheck['bad']>): Html =>
  bad.delivered
    ? html`<p><strong class="problem">Accepted with ${bad.status ?? 'no status'}</strong>: it should have been refused.</p>`
    : !isRefusal(bad.status)
      ? testOutcome(bad)
      : html`<p>Refused with ${bad.status}, as it should be.</p>`;
