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

/** Edits a member's name and title. */
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
    form: z.object({ name: line('a name', 200), title: optionalLine(200) }),
    async act(visit, { name, title }) {
      const personId = personIdOf(visit);
      const { organizationId } = visit.organization;
      await changeMember(visit.console.em, { organizationId, personId, by: visit.by, name, title: title || null });
      return redirect(memberPath(visit, personId), { flash: 'Member updated.' });
    },
    redraw: changePage,
  }),
];

/** Draws the form. `typed` null: with the current values. */
async function changePage(visit: MemberVisit, typed: FormState | null): Promise<Page> {
  const { em, now } = visit.console;
  const shown = await getMemberDetails(em, visit.organization.organizationId, personIdOf(visit), now());
  const here = memberPath(visit, shown.personId);
  const state = typed ?? freshForm({ name: shown.name, title: shown.title ?? '' });
  return page({
    title: `Edit ${truncate(shown.name, 80)}`,
    breadcrumbs: [
      [truncate(shown.name, 80), here],
      ['Members', visit.at('/members')],
    ],
    body: form(visit, {
      action: `${here}/change`,
      state,
      button: 'Save changes',
      secondary: html`<a href="${here}">Cancel</a>`,
      fields: html`
        ${textField(state, {
          name: 'name',
          label: 'Name',
          maxLength: 200,
          hint: 'Shown in the console and in the API.',
        })}
        ${textField(state, { name: 'title', label: 'Title (optional)', required: false, maxLength: 200 })}`,
    }),
  });
}
