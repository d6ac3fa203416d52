import { z } from 'zod';
import { createEnrolment } from '#domain/identity/enrolment.ts';
import { enrolmentHours } from '#domain/identity/limits.ts';
import { listRoles } from '#domain/organization/list-roles.ts';
import { choiceField, form, textField } from '../../components/form.ts';
import { type Page, page } from '../../web/answer.ts';
import { type FormState, freshForm, line, optionalLine } from '../../web/form.ts';
import { html } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { roleChoices } from './grantable.ts';
import { linkPage } from './link.ts';

/** Invites a member with a one-time link, which the inviter hands over, because no mail is sent. */
export const inviteRoutes = [
  member.view({
    name: 'showInvite',
    path: '/members/invite',
    permission: 'org.members.manage',
    query: z.object({ email: z.string().max(254).catch('') }),
    show: (visit, { email }) => invitePage(visit, freshForm({ email, roles: ['member'] })),
  }),

  member.action({
    name: 'inviteMember',
    path: '/members/invite',
    permission: 'org.members.manage',
    stepUp: true,
    once: true,
    form: z.object({
      email: line('an email address', 254),
      name: line('a name', 200),
      title: optionalLine(200),
      roles: z.array(z.string().max(255)).min(1, 'Choose at least one role.').max(600),
    }),
    async act(visit, { email, name, title, roles }) {
      const { em, now } = visit.console;
      const { organizationId } = visit.organization;
      const created = await createEnrolment(
        em,
        { organizationId, email, name, title, roleKeys: roles, by: visit.by },
        now,
      );
      return linkPage(visit, created);
    },
    redraw: invitePage,
  }),
];

async function invitePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const roles = await listRoles(visit.console.em, visit.organization.organizationId);
  return page({
    title: 'Invite member',
    breadcrumbs: [['Members', visit.at('/members')]],
    body: form(visit, {
      action: visit.at('/members/invite'),
      state,
      button: 'Create invitation',
      secondary: html`<a href="${visit.at('/members')}">Cancel</a>`,
      fields: html`
        <p>You get an invitation link to share yourself. No email is sent. The link works once, for ${enrolmentHours}
          hours.</p>
        ${textField(state, {
          name: 'email',
          label: 'Email address',
          type: 'email',
          maxLength: 254,
          hint: 'Used to sign in.',
        })}
        ${textField(state, {
          name: 'name',
          label: 'Name',
          maxLength: 200,
          hint: 'Shown in the console and in the API.',
        })}
        ${textField(state, {
          name: 'title',
          label: 'Title (optional)',
          required: false,
          maxLength: 200,
          hint: 'For example “Paralegal” or “Mediator”.',
        })}
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
