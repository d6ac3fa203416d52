import { z } from 'zod';
import { getMemberDetails } from '#domain/organization/list-members.ts';
import { changeMember } from '#domain/organization/members.ts';
import { truncate } from '../../components/display-name.ts';
import { form, textField } from '../../components/form.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm, line, optionalLine } from '../../web/form.ts';
import { html } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { memberPath, personIdOf } from './path.ts';

/** What the organization calls a member. */
export const changeRoutes = [
  member.view({
    name: 'showMemberChange',
    path: '/members/person/:personId/change',
    permission: 'org.members.manage',
    show: (visit) => changePage(visit, null),
  }),

  member.action({
    name: 'changeMember',
    path: '/members/person/:personId/change',
    permission: 'org.members.manage',
    stepUp: true,
    form: z.object({ name: line('The name', 200), title: optionalLine('The title', 200) }),
    async act(visit, { name, title }) {
      const personId = personIdOf(visit);
      const { organizationId } = visit.organization;
      await changeMember(visit.console.em, { organizationId, personId, by: visit.by, name, title: title || null });
      return redirect(memberPath(visit, personId), { flash: 'The member is changed.' });
    },
    redraw: changePage,
  }),
];

/** `state` null: as they are called now. */
async function changePage(visit: MemberVisit, typed: FormState | null): Promise<Page> {
  const { em, now } = visit.console;
  const shown = await getMemberDetails(em, visit.organization.organizationId, personIdOf(visit), now());
  const here = memberPath(visit, shown.personId);
  const state = typed ?? freshForm({ name: shown.name, title: shown.title ?? '' });
  return page({
    title: 'Change name or title',
    breadcrumbs: [
      [truncate(shown.name, 80), here],
      ['Members', visit.at('/members')],
    ],
    body: form(visit, {
      action: `${here}/change`,
      state,
      button: 'Change',
      secondary: html`<a href="${here}">Back</a>`,
      fields: html`
        ${textField(state, { name: 'name', label: 'Name', maxLength: 200, hint: 'As your organization calls them, here and in the API.' })}
        ${textField(state, { name: 'title', label: 'Title', required: false, maxLength: 200 })}`,
    }),
  });
}
