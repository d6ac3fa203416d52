import { unconfirmedNotice } from '../../components/unconfirmed.ts';
import { page, redirect } from '../../web/answer.ts';
import { html, nothing } from '../../web/html.ts';
import { person } from '../../web/route.ts';

/** The start: on to the one organization, or a choice of several. */
export const routes = [
  person.view({
    name: 'showHome',
    path: '/',
    show({ session }) {
      const { memberships, unconfirmed } = session;
      const [first] = memberships;
      if (first !== undefined && memberships.length === 1 && unconfirmed.length === 0)
        return redirect(`/o/${first.organizationId}`);
      const waiting = unconfirmed.length === 0 ? nothing : unconfirmedNotice(unconfirmed.length);
      if (first === undefined)
        return page({
          title: 'No organization yet',
          body: html`${waiting}<p>You are signed in, but no organization is open to you now. Open the link of your invitation, or ask an owner for one.</p>`,
        });
      return page({
        title: 'Your organizations',
        body: html`${waiting}<ul class="choices-list">${memberships.map(
          ({ organizationId, organizationName, title }) =>
            html`<li><a href="/o/${organizationId}"><strong>${organizationName}</strong>${title ? html`<span class="quiet">${title}</span>` : null}</a></li>`,
        )}</ul>`,
      });
    },
  }),
];
