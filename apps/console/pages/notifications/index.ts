import { z } from 'zod';
import { type OptionalKind, optionalKinds } from '#domain/mail/kinds.ts';
import { listOptOuts, replaceOptOuts } from '#domain/mail/opt-outs.ts';
import { html } from '#runtime/pages/html.ts';
import { choiceField, form } from '../../components/form.ts';
import { optionalLabels } from '../../components/mail-kinds.ts';
import { withoutMail } from '../../components/mail-outcome.ts';
import type { FormState } from '../../web/form.ts';
import { type Page, page, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';

const kinds = Object.keys(optionalKinds) as OptionalKind[];

/** What a member gets by mail, and may turn off. */
export const routes = member.formPage({
  pageName: 'showNotifications',
  name: 'changeNotifications',
  path: '/notifications',
  form: z.object({ kinds: z.array(z.enum(kinds)).max(kinds.length) }),
  async values(_query, visit) {
    const optedOut = await listOptOuts(visit.console.database, getRecipient(visit));
    return { kinds: kinds.filter((kind) => !optedOut.includes(kind)) };
  },
  async act(visit, { kinds: wanted }) {
    const optedOut = kinds.filter((kind) => !wanted.includes(kind));
    await replaceOptOuts(visit.console.database, getRecipient(visit), optedOut);
    return redirect(visit.at('/notifications'), { flash: 'Email settings saved.' });
  },
  render: notificationsPage,
});

const getRecipient = ({ organizationId, by }: MemberVisit) => ({ organizationId, personId: by.personId });

function notificationsPage(visit: MemberVisit, state: FormState): Page {
  return page({
    title: 'Email notifications',
    breadcrumbs: [['Your account', '/account']],
    body: html`${withoutMail(visit.console)}
      <p>Emails about the security of your sign-in, about API keys that are created, revoked or opened to other
        addresses, and about owners, the sign-in provider and exports of the audit log can’t be turned off.</p>
      ${form(visit, {
        state,
        button: 'Save',
        cancel: '/account',
        fields: choiceField(state, {
          name: 'kinds',
          label: 'Email me about',
          kind: 'checkbox',
          hint: 'You get those that your roles allow.',
          choices: kinds.map((value) => ({ value, label: optionalLabels[value] })),
        }),
      })}`,
  });
}
