import { z } from 'zod';
import { createEnrolment } from '#domain/identity/enrolment.ts';
import { enrolmentHours } from '#domain/identity/limits.ts';
import { listRoles } from '#domain/organization/list-roles.ts';
import { choiceField, form, textField } from '../../components/form.ts';
import { type Page, page } from '../../web/answer.ts';
import { type FormState, line } from '../../web/form.ts';
import { html } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { roleChoices } from './assignable-roles.ts';
import { memberFields, renderMemberFields } from './fields.ts';
import { linkPage } from './link.ts';

/** Invites a member with a one-time link. No mail is sent: the inviter sends the link. */
export const inviteRoutes = member.formPage({
  pageName: 'showInvite',
  name: 'inviteMember',
  path: '/members/invite',
  permission: 'org.members.manage',
  stepUp: true,
  once: true,
  query: z.object({ email: z.string().max(254).catch('') }),
  values: ({ email }) => ({ email, roles: ['member'] }),
  form: z.object({
    email: line('an email address', 254),
    ...memberFields,
    roles: z.array(z.string().max(255)).min(1, 'Choose at least one role.').max(600),
  }),
  async act(visit, { email, name, title, roles }) {
    const { em, now } = visit.console;
    const created = await createEnrolment(em, { ...visit.request, email, name, title, roleKeys: roles }, now);
    return linkPage(visit, created);
  },
  render: invitePage,
});

async function invitePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const roles = await listRoles(visit.console.em, visit.organizationId);
  return page({
    title: 'Invite member',
    breadcrumbs: [['Members', visit.at('/members')]],
    body: form(visit, {
      state,
      button: 'Create invitation',
      cancel: visit.at('/members'),
      fields: html`
        <p>You get an invitation link that you share yourself. No email is sent. The link works once, for
          ${enrolmentHours} hours.</p>
        ${textField(state, {
          name: 'email',
          label: 'Email address',
          type: 'email',
          maxLength: 254,
          hint: 'Used to sign in.',
        })}
        ${renderMemberFields(state)}
        ${choiceField(state, {
          name: 'roles',
          label: 'Roles',
          kind: 'checkbox',
          hint: 'You can assign roles whose permissions you all have.',
          choices: roleChoices(visit, roles, ({ key }) => key),
        })}`,
    }),
  });
}
