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

/** Inviting somebody: a one-time link, which whoever invites hands over, since we send no mail. */
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
      email: line('The e-mail address', 254),
      name: line('The name', 200),
      title: optionalLine('The title', 200),
      roles: z
        .array(z.string().max(255))
        .min(1, 'Choose one role at least; “Member” shows the organization and its people.')
        .max(600),
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
    title: 'Invite somebody',
    breadcrumbs: [['Members', visit.at('/members')]],
    body: form(visit, {
      action: visit.at('/members/invite'),
      state,
      button: 'Make the invitation',
      secondary: html`<a href="${visit.at('/members')}">Back</a>`,
      fields: html`
        <p>You get a link to hand over yourself: no mail is sent. It works once, for ${enrolmentHours} hours. Whoever opens it chooses a password and a second factor, or joins with those they have.</p>
        ${textField(state, { name: 'email', label: 'E-mail address', type: 'email', maxLength: 254, hint: 'What they will sign in with.' })}
        ${textField(state, { name: 'name', label: 'Name', maxLength: 200, hint: 'As your organization calls them.' })}
        ${textField(state, { name: 'title', label: 'Title', required: false, maxLength: 200, hint: 'May stay empty: “Paralegal”, “Mediator”.' })}
        ${choiceField(state, {
          name: 'roles',
          label: 'Roles',
          kind: 'checkbox',
          hint: 'What they may do. You can give the roles whose every permission you hold yourself.',
          choices: roleChoices(visit, roles, ({ key }) => key),
        })}`,
    }),
  });
}
