import { z } from 'zod';
import { webhookDeleted } from '#domain/webhooks/access.ts';
import { isRejection, signatureResultSentences } from '#domain/webhooks/signature-result.ts';
import { requestSignatureCheck } from '#domain/webhooks/test-event.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import type { SignatureCheck } from '#workflows/send-test/types.ts';
import { isolatedUrl } from '../../components/copy.ts';
import { form } from '../../components/form.ts';
import { notice } from '../../components/notice.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { type Page, page } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import { withoutShare } from '../../web/shares.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { signatureNotice } from './cells.ts';
import { getWebhookHead, webhookBreadcrumbs, webhookPath, webhookRequest } from './find-webhook.ts';
import { requireTemporal, temporalNotice } from './temporal.ts';
import { testResultDetails } from './test-result.ts';
import { howToVerify } from './verify-snippets.ts';

/** Checks that a receiver verifies signatures, with a correctly and a wrongly signed test event. */
export const verifyRoutes = member.formPage({
  pageName: 'showVerifyWebhook',
  name: 'verifyWebhook',
  path: '/webhooks/:webhookId/verify',
  permission: 'org.webhooks.manage',
  once: true,
  form: z.object({}),
  async act(visit) {
    requireTemporal(visit);
    const { database, workflows } = visit.console;
    const request = webhookRequest(visit);
    const eventType = await requestSignatureCheck(database, request);
    const { organizationId, webhookId } = request;
    const check = await withoutShare(visit, () => workflows.checkSignatures({ organizationId, webhookId, eventType }));
    if (check === null) throw webhookDeleted();
    return verifyPage(visit, freshForm(), check);
  },
  render: (visit, state) => verifyPage(visit, state, null),
});

async function verifyPage(visit: MemberVisit, state: FormState, check: SignatureCheck | null): Promise<Page> {
  const webhook = await getWebhookHead(visit);
  return page({
    title: 'Check signature verification',
    breadcrumbs: webhookBreadcrumbs(visit, webhook),
    body: html`
      ${temporalNotice(visit)}
      ${check === null ? signatureNotice(webhook) : renderResult(check)}
      <p>Two test events are sent to ${isolatedUrl(webhook.url)}. The receiver must accept the correctly
        signed event with a 2xx status and reject the wrongly signed event with a 4xx status, such as 400.</p>
      ${form(visit, {
        state,
        button: check === null ? 'Check signatures' : 'Check again',
        secondary: html`<a href="${webhookPath(visit)}">View webhook</a>`,
      })}
      ${check !== null && check.result !== 'verified' ? howToVerify(visit) : nothing}
      <p class="quiet">For a receiver with test data only,
        <code>npm run tool -- certify URL --secret-file FILE</code> in the repository of org-api tries about thirty
        scenarios, such as repeated and late events. It sends signed events of clients and seats that do not exist,
        so it does not run from here.</p>`,
  });
}

const unrecorded: Record<NonNullable<SignatureCheck['unrecorded']>, string> = {
  changed: 'This result was not saved, because the URL or secret changed during the check. Check again.',
  internal_error:
    'This result was not saved, because of an internal error that is unrelated to the receiver. Check again later.',
};

function renderResult(check: SignatureCheck): Html {
  const { result, good, bad } = check;
  return html`<section class="result" aria-labelledby="check">
    <h2 id="check">${result === 'verified' ? 'Signatures verified' : 'Signatures not verified'}</h2>
    ${notice(result === 'verified' ? 'good' : 'bad', signatureResultSentences[result])}
    ${check.unrecorded === null ? nothing : notice('warning', unrecorded[check.unrecorded])}
    <div class="two">
      <section aria-labelledby="good"><h3 id="good">Correct signature</h3>${testResultDetails(good)}</section>
      <section aria-labelledby="bad"><h3 id="bad">Wrong signature</h3>${badResultDetails(bad)}</section>
    </div></section>`;
}

/** Returns the result of the wrongly signed event, to be rejected; null when it was not sent. */
function badResultDetails(bad: SignatureCheck['bad']): Html {
  if (bad === null) return html`<p>Not sent, because the correctly signed event was not accepted.</p>`;
  if (bad.delivered)
    return html`<p><strong class="problem">Accepted with ${bad.status ?? 'no status'}.</strong> The receiver must reject
      a wrong signature.</p>`;
  return isRejection(bad.status) ? html`<p>Rejected with ${bad.status}, as expected.</p>` : testResultDetails(bad);
}
