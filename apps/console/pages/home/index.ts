import { page, redirect } from '../../web/answer.ts';
import { html } from '../../web/html.ts';
import { person } from '../../web/route.ts';

/** The start: on to the one organization, or a choice of several. */
export const routes = [
  person.view({
    name: 'showHome',
    path: '/',
    show({ session }) {
      const active = session.memberships.filter(({ status }) => status === 'active');
      const [first] = active;
      if (first !== undefined && active.length === 1) return redirect(`/o/${first.organizationId}`);
      if (first === undefined)
        return page({
          title: 'No organization yet',
          body: html`<p>You are signed in, but no organization has you as an active member now. Open the link of your invitation, or ask an owner for one.</p>`,
        });
      return page({
        title: 'Your organizations',
        body: html`<ul class="choices-list">${active.map(
          ({ organizationId, organizationName, title }) =>
            html`<li><a href="/o/${organizationId}"><strong>${organizationName}</strong>${title ? html`<span class="quiet">${title}</span>` : null}</a></li>`,
        )}</ul>`,
      });
    },
  }),
];
