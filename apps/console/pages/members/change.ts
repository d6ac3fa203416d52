import { z } from 'zod';
import { changeMember } from '#domain/members/change.ts';
import { form } from '../../components/form.ts';
import { truncate } from '../../components/text.ts';
import type { FormState } from '../../web/form.ts';
import { type Page, page, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { memberFields, renderMemberFields } from './fields.ts';
import { getMember } from './find-member.ts';
import { memberBreadcrumbs, memberPath, readPersonId } from './path.ts';

/** Edits a member's name and title. */
export const changeRoutes = member.formPage({
  pageName: 'showMemberChange',
  name: 'changeMember',
  path: '/members/person/:personId/change',
  permission: 'org.members.manage',
  stepUp: true,
  async values(_query, visit) {
    const { name, title } = await getMember(visit);
    return { name, title: title ?? '' };
  },
  form: z.object(memberFields),
  async act(visit, { name, title }) {
    const personId = readPersonId(visit);
    await changeMember(visit.console.database, { ...visit.request, personId, name, title: title || null });
    return redirect(memberPath(visit, personId), { flash: 'Member updated.' });
  },
  render: changePage,
});

async function changePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const shown = await getMember(visit);
  return page({
    title: `Edit ${truncate(shown.name, 80)}`,
    breadcrumbs: memberBreadcrumbs(visit, shown),
    body: form(visit, {
      state,
      button: 'Save changes',
      cancel: memberPath(visit, shown.personId),
      fields: renderMemberFields(state),
    }),
  });
}
