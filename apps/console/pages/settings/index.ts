import { z } from 'zod';
import { readableEmail } from '#domain/contract/email.ts';
import {
  changeSettings,
  displayNameMaxCharacters,
  findContactProblem,
  findDomainsProblem,
  getSettings,
  invitationDomainsAtMost,
  type OrganizationSettings,
  sessionHoursRange,
  timeZoneNames,
} from '#domain/identity/organization-settings.ts';
import { findContactMail } from '#domain/mail/find-mail.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { checkboxField, form, linesField, selectField, textField } from '../../components/form.ts';
import { describeMail, withoutMail } from '../../components/mail-outcome.ts';
import { notice } from '../../components/notice.ts';
import { detailList } from '../../components/table.ts';
import { displayName } from '../../components/text.ts';
import { checkbox, type FormState, type FormValues, listOfLines, optionalLine } from '../../web/form.ts';
import { type Page, page, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { isOwner } from '../members/assignable-roles.ts';

/** Reports what is wrong with a field. `find` returns a sentence, or null. */
const checked =
  <Value>(find: (value: Value) => string | null) =>
  (value: Value, context: z.RefinementCtx): void => {
    const message = find(value);
    if (message !== null) context.addIssue({ code: 'custom', message });
  };

/** The settings of an organization. Owners change them; members who manage members see them. */
export const routes = member.formPage({
  pageName: 'showSettings',
  name: 'changeSettings',
  path: '/settings',
  permission: 'org.members.manage',
  stepUp: true,
  async values(_query, visit): Promise<FormValues> {
    const settings = await getSettings(visit.console.database, visit.organizationId);
    const { displayName, timeZone, securityContact, invitationDomains, passkeysRequired, sessionHours } = settings;
    return {
      displayName: displayName ?? '',
      timeZone: timeZone ?? '',
      securityContact: securityContact === null ? '' : readableEmail(securityContact),
      invitationDomains: invitationDomains.join('\n'),
      ...(passkeysRequired ? { passkeysRequired: 'on' } : {}),
      sessionHours: String(sessionHours),
    };
  },
  form: z.object({
    displayName: optionalLine(displayNameMaxCharacters),
    timeZone: z.enum(['', ...timeZoneNames], { error: 'Choose a time zone from the list.' }),
    securityContact: optionalLine(254).superRefine(
      checked((address) => (address === '' ? null : findContactProblem(address))),
    ),
    invitationDomains: listOfLines(6_000).superRefine(checked(findDomainsProblem)),
    passkeysRequired: checkbox,
    sessionHours: z.coerce
      .number({ error: 'Choose a number of hours.' })
      .int()
      .min(sessionHoursRange.min)
      .max(sessionHoursRange.max),
  }),
  async act(visit, { displayName, timeZone, securityContact, ...settings }) {
    await changeSettings(visit.console.database, {
      ...visit.request,
      ...settings,
      displayName: displayName || null,
      timeZone: timeZone || null,
      securityContact: securityContact || null,
    });
    return redirect(visit.at('/settings'), { flash: 'Settings saved.' });
  },
  render: (visit, state) => (isOwner(visit) ? settingsPage(visit, state) : readOnlyPage(visit)),
});

async function settingsPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const contact = await describeContactMail(visit);
  return page({
    title: 'Settings',
    body: html`${withoutMail(visit.console)}${form(visit, {
      state,
      button: 'Save settings',
      cancel: visit.at(''),
      fields: html`${organizationFields(state, contact)}${accessFields(state)}`,
    })}`,
  });
}

/** Says what became of the last email to the security contact. */
async function describeContactMail({ console, organizationId }: MemberVisit): Promise<Html> {
  const mail = await findContactMail(console.database, organizationId);
  return mail === null ? nothing : describeMail(mail, 'The last email');
}

const organizationFields = (state: FormState, contact: Html): Html => html`<h2>Organization</h2>
  ${textField(state, {
    name: 'displayName',
    label: 'Display name (optional)',
    required: false,
    maxLength: displayNameMaxCharacters,
    hint: 'What members read in the console and in email. Invitations, receipts and the API keep the registered name.',
  })}
  ${selectField(state, {
    name: 'timeZone',
    label: 'Time zone',
    required: false,
    hint: 'Of times in the console, in email and in CSV files of the audit log.',
    options: [
      { value: '', label: 'Each viewer’s own' },
      ...timeZoneNames.map((name) => ({ value: name, label: name.replaceAll('_', ' ') })),
    ],
  })}
  ${textField(state, {
    name: 'securityContact',
    label: 'Security contact (optional)',
    required: false,
    inputMode: 'email',
    exact: true,
    maxLength: 254,
    hint: html`Gets a copy of emails about security that members can’t turn off, and each month the end of the audit
      log. For example the address of your IT desk. ${contact}`,
  })}`;

const accessFields = (state: FormState): Html => html`<h2>Access</h2>
  ${linesField(state, {
    name: 'invitationDomains',
    label: 'Allowed address domains for invitations (optional)',
    rows: 3,
    maxLength: 6_000,
    hint: html`One domain on each line, such as example.org, at most ${invitationDomainsAtMost}. Subdomains are not
      included. Empty: every address can be invited. Members stay, whatever their address is.`,
  })}
  ${checkboxField(state, {
    name: 'passkeysRequired',
    label: 'Require a passkey',
    hint:
      'A member without a passkey must add one before the organization opens. It asks whether they have one, not ' +
      'whether they sign in with it: their authenticator apps and recovery codes keep working.',
  })}
  ${selectField(state, {
    name: 'sessionHours',
    label: 'Sessions end after',
    hint: 'Also sessions that are open now. A member of several organizations has the shortest of their times.',
    options: Array.from({ length: sessionHoursRange.max }, (_, index) => {
      const hours = index + sessionHoursRange.min;
      return { value: String(hours), label: hours === 1 ? '1 hour' : `${hours} hours` };
    }),
  })}`;

async function readOnlyPage(visit: MemberVisit): Promise<Page> {
  const settings = await getSettings(visit.console.database, visit.organizationId);
  return page({
    title: 'Settings',
    body: html`${withoutMail(visit.console)}${notice('info', 'Only an owner can change these settings.')}${settingsList(
      settings,
      await describeContactMail(visit),
    )}`,
  });
}

const settingsList = (settings: OrganizationSettings, contact: Html): Html =>
  detailList([
    ['Display name', settings.displayName === null ? 'The registered name' : displayName(settings.displayName)],
    ['Time zone', settings.timeZone ?? 'Each viewer’s own'],
    [
      'Security contact',
      settings.securityContact === null
        ? 'None'
        : html`<bdi>${readableEmail(settings.securityContact)}</bdi> <span class="quiet">${contact}</span>`,
    ],
    [
      'Allowed address domains',
      settings.invitationDomains.length === 0 ? 'Any' : settings.invitationDomains.join(', '),
    ],
    ['Passkey', settings.passkeysRequired ? 'Required' : 'Not required'],
    ['Sessions end after', settings.sessionHours === 1 ? '1 hour' : `${settings.sessionHours} hours`],
  ]);
