import { z } from 'zod';
import { createEnrolment } from '#domain/identity/create-link.ts';
import { AlreadyMemberError } from '#domain/identity/errors.ts';
import { enrolmentHours } from '#domain/identity/limits.ts';
import { getSettings } from '#domain/identity/organization-settings.ts';
import { listRoles } from '#domain/members/list-roles.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { choiceField, form, textField } from '../../components/form.ts';
import { notice } from '../../components/notice.ts';
import { shownBefore } from '../../components/secret.ts';
import { displayName } from '../../components/text.ts';
import { emailLine, type FormState, freshForm } from '../../web/form.ts';
import { type Page, page } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { roleChoices } from './assignable-roles.ts';
import { memberFields, renderMemberFields } from './fields.ts';
import { findMailKeys, formerText, invitationText, linkPage } from './link.ts';
import { memberPath } from './path.ts';

/** Invites a member with a one-time link, which a mail takes to them; without a mail server, the inviter does. */
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
    email: emailLine('an email address'),
    ...memberFields,
    roles: z.array(z.string().max(255)).min(1, 'Choose at least one role.').max(600),
  }),
  async act(visit, { email, name, title, roles }) {
    const { database, now } = visit.console;
    const input = { ...visit.request, email, name, title, roleKeys: roles, mailKeys: findMailKeys(visit) };
    try {
      const created = await createEnrolment(database, input, now);
      return await linkPage(visit, created, created.wasMember ? formerText : invitationText);
    } catch (error) {
      if (!(error instanceof AlreadyMemberError)) throw error;
      return { ...(await invitePage(visit, freshForm({ email, name, title, roles }), error)), status: 422 };
    }
  },
  again: (visit) =>
    visit.console.sendsMail
      ? nothing
      : shownBefore(
          'The invitation link',
          'If you didn’t send it, create a new one on the member’s page.',
          visit.at('/members?status=invited'),
          'View invited members',
        ),
  render: (visit, state) => invitePage(visit, state),
});

/** Renders the form. `present`: the member who has the address already. */
async function invitePage(visit: MemberVisit, state: FormState, present?: AlreadyMemberError): Promise<Page> {
  const { database } = visit.console;
  const roles = await listRoles(database, visit.organizationId);
  const { invitationDomains } = await getSettings(database, visit.organizationId);
  return page({
    title: 'Invite member',
    breadcrumbs: [['Members', visit.at('/members')]],
    body: html`${present === undefined ? nothing : alreadyMember(visit, present)}${form(visit, {
      state,
      button: visit.console.sendsMail ? 'Send invitation' : 'Create invitation',
      cancel: visit.at('/members'),
      fields: html`
        <p>${
          visit.console.sendsMail
            ? `The member gets an email with a link, which works once, for ${enrolmentHours} hours.`
            : `You get an invitation link that you share yourself. No email is sent. The link works once, for ${
                enrolmentHours
              } hours.`
        }</p>
        ${textField(state, {
          name: 'email',
          label: 'Email address',
          inputMode: 'email',
          exact: true,
          maxLength: 254,
          hint: `Used to sign in.${allowedDomains(invitationDomains)}`,
        })}
        ${renderMemberFields(state)}
        ${choiceField(state, {
          name: 'roles',
          label: 'Roles',
          kind: 'checkbox',
          hint: 'You can assign roles if you have all of their permissions.',
          choices: roleChoices(visit, roles, ({ key }) => key),
        })}`,
    })}`,
  });
}

const allowedDomains = (domains: readonly string[]): string =>
  domains.length === 0 ? '' : ` Only addresses at ${domains.join(', ')} can be invited.`;

/** Says who has the address, and where a link can be created for them. */
function alreadyMember(visit: MemberVisit, { personId, memberName, present }: AlreadyMemberError): Html {
  const open = html`<a href="${memberPath(visit, personId)}">Open the member</a>`;
  return notice(
    'bad',
    html`${displayName(memberName)} is already ${present}. Nothing was changed. ${open} to edit them, or to create a new
      sign-in link if they can’t sign in yet.`,
  );
}
