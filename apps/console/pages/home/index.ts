import { html, nothing } from '#runtime/pages/html.ts';
import { closedNotice, unconfirmedNotice } from '../../components/unconfirmed.ts';
import { page, redirect } from '../../web/response.ts';
import { person } from '../../web/route.ts';

/** Redirects to the only organization, or lists several to choose from. */
export const routes = [
  person.view({
    name: 'showHome',
    path: '/',
    show({ session }) {
      const { memberships, unconfirmed, closed } = session;
      const [first] = memberships;
      if (first !== undefined && memberships.length === 1 && unconfirmed.length + closed.length === 0)
        return redirect(`/o/${first.organizationId}`);
      const waiting = html`${unconfirmed.length === 0 ? nothing : unconfirmedNotice(unconfirmed.length)}
        ${closed.length === 0 ? nothing : closedNotice(closed.length)}`;
      if (first === undefined)
        return page({
          title: 'No organization',
          body: html`${waiting}${
            closed.length > 0
              ? nothing
              : html`<p>You are signed in, but you are not a member of an organization. Open your invitation link, or
                ask an owner to invite you.</p>`
          }`,
        });
      return page({
        title: 'Your organizations',
        body: html`${waiting}<ul class="choices-list">${memberships.map(
          ({ organizationId, organizationName, title }) =>
            html`<li><a href="/o/${organizationId}"><strong>${organizationName}</strong>${
              title ? html`<span class="quiet">${title}</span>` : null
            }</a></li>`,
        )}</ul>`,
      });
    },
  }),
];
