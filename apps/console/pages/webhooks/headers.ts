import { z } from 'zod';
import { changeWebhook } from '#domain/webhooks/change.ts';
import type { HeaderChange } from '#domain/webhooks/headers.ts';
import { headerNameMaxCharacters, headersPerWebhook, headerValueMaxCharacters } from '#domain/webhooks/limits.ts';
import type { WebhookHead } from '#domain/webhooks/summary.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { buttonForm, form, textField } from '../../components/form.ts';
import { notice } from '../../components/notice.ts';
import { table } from '../../components/table.ts';
import { type FormState, freshForm, line, typedSecret } from '../../web/form.ts';
import { type Page, page, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { canChange, getWebhookHead, webhookBreadcrumbs, webhookPath, webhookRequest } from './find-webhook.ts';

const permission = 'org.webhooks.manage';
const path = '/webhooks/:webhookId/headers';
const name = line('a header name', headerNameMaxCharacters);

/** Lists, sets and removes the custom headers of a webhook. No page contains a value. */
export const headerRoutes = [
  ...member.formPage({
    pageName: 'showWebhookHeaders',
    name: 'setWebhookHeader',
    path,
    permission,
    stepUp: true,
    once: true,
    form: z.object({ name, value: typedSecret('the value') }),
    async act(visit, fields) {
      await change(visit, { name: fields.name, value: fields.value.trim() });
      return redirect(webhookPath(visit, '/headers'), { flash: 'Header saved. It is sent from the next attempt on.' });
    },
    render: headersPage,
  }),

  member.action({
    name: 'removeWebhookHeader',
    path: `${path}/remove`,
    permission,
    stepUp: true,
    form: z.object({ name }),
    async act(visit, fields) {
      await change(visit, { name: fields.name, value: null });
      return redirect(webhookPath(visit, '/headers'), { flash: 'Header removed.' });
    },
    // The field of the name belongs to the other form.
    rerender: (visit, { problem, problems }) =>
      headersPage(visit, { ...freshForm(), problem: problem ?? problems.name ?? null }),
  }),
];

function change(visit: MemberVisit, header: HeaderChange): Promise<void> {
  const { database, webhookAllow, factors } = visit.console;
  const headers = { changes: [header], sealingKeys: factors.sealingKeys };
  return changeWebhook(database, { ...webhookRequest(visit), headers }, webhookAllow);
}

async function headersPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const webhook = await getWebhookHead(visit);
  return page({
    title: 'Custom headers',
    breadcrumbs: webhookBreadcrumbs(visit, webhook),
    body: html`
      <p>Custom headers are sent with every request to this webhook, also with test events. Use them for a gateway in
        front of your receiver. To find out whether an event comes from this service, check its signature.</p>
      ${canChange(webhook) ? changeable(visit, webhook, state) : readOnly(webhook)}`,
  });
}

const readOnly = ({ state, headerNames }: WebhookHead): Html =>
  state === 'deleted'
    ? notice('bad', 'This webhook is deleted. You can’t change it.')
    : html`${namesTable(headerNames, null)}<p class="quiet">The webhook is managed in Kubernetes.</p>`;

const changeable = (visit: MemberVisit, { headerNames }: WebhookHead, state: FormState): Html => html`
  ${namesTable(headerNames, (header) =>
    buttonForm(visit, {
      action: webhookPath(visit, '/headers/remove'),
      button: 'Remove',
      about: `header ${header}`,
      values: { name: header },
    }),
  )}
  <section aria-labelledby="set"><h2 id="set">Set a header</h2>
    ${
      headerNames.length < headersPerWebhook
        ? nothing
        : notice(
            'info',
            `This webhook has ${headersPerWebhook} custom headers, which is the maximum. You can replace a value, or ` +
              'remove a header first.',
          )
    }
    ${form(visit, {
      action: webhookPath(visit, '/headers'),
      state,
      button: 'Save header',
      cancel: webhookPath(visit, '?tab=settings'),
      fields: html`
        ${textField(state, {
          name: 'name',
          label: 'Name',
          hint: 'For example Authorization or X-Api-Key. The name of a header that exists replaces its value.',
          exact: true,
          maxLength: headerNameMaxCharacters,
        })}
        ${textField(state, {
          name: 'value',
          label: 'Value',
          hint: 'It is stored encrypted and never shown again.',
          masked: true,
          exact: true,
          maxLength: headerValueMaxCharacters,
        })}`,
    })}</section>`;

function namesTable(names: readonly string[], actions: ((name: string) => Html) | null): Html {
  if (names.length === 0) return html`<p>No custom headers.</p>`;
  return table<string>({
    caption: 'Custom headers',
    rows: names,
    columns: [{ heading: 'Name', main: true, cell: (header) => html`<code>${header}</code>` }],
    actions,
  });
}
