import { createEnrolment } from '#domain/identity/create-link.ts';
import {
  changeAddress,
  confirmSignInByAddress,
  endSessionsByAddress,
  freeAddress,
  getSignIn,
} from '#domain/identity/orgctl-actions.ts';
import { enrolmentLink } from '#domain/identity/token.ts';
import { UsageError } from '#runtime/errors.ts';
import { type Noun, orgOption } from './command.ts';
import { getOrganization } from './org.ts';
import { fields, table } from './table.ts';

const purposes = {
  invite: 'The person joins the organization with it: they sign in, or set a password and a second factor',
  recover:
    'The person uses it to set a new password and second factor, which replaces the old ones and ends all sessions',
};

const sessionsEnded = (ended: number) => `${ended === 1 ? 'One session' : `${ended} sessions`} ended.`;
const emailOption = { email: { value: 'E', about: 'the sign-in address of the person', required: true } };

/** `orgctl person …` */
export const person: Noun = {
  noun: 'person',
  summary: 'people who sign in to the console',
  commands: [
    {
      verb: 'invite',
      summary: 'print a one-time link to join an organization, or to recover an account',
      options: {
        ...orgOption,
        ...emailOption,
        name: { value: 'N', about: 'the name of a new member' },
        roles: { value: 'K,…', about: 'keys of the roles to assign (default member)' },
      },
      async run(options, context) {
        const { consoleUrl } = context.config;
        if (consoleUrl === null) throw new UsageError('CONSOLE_URL is missing. Set it to the address of the console.');
        const { id: organizationId } = await getOrganization(options, context);
        const [name, roleKeys] = [options.find('name'), options.findList('roles')];
        const { token, expiresAt, personId, kind } = await createEnrolment(context.database, {
          organizationId,
          email: options.get('email'),
          by: 'orgctl',
          ...(name === null ? {} : { name }),
          ...(roleKeys === null ? {} : { roleKeys }),
        });
        const url = enrolmentLink(consoleUrl, token);
        const text =
          `${url}\nThe link works once, until ${expiresAt.toISOString()}. ${purposes[kind]}. ` +
          'Anyone who has the link can use it. Send it to this person only, through a private channel.';
        return { json: { url, expiresAt: expiresAt.toISOString(), personId, kind }, text };
      },
    },
    {
      verb: 'confirm',
      summary: 'confirm the sign-in of an active member for an organization; verify first that the sign-in is theirs',
      options: { ...orgOption, ...emailOption },
      async run(options, context) {
        const { id: organizationId } = await getOrganization(options, context);
        const done = await confirmSignInByAddress(context.database, { organizationId, email: options.get('email') });
        const text = `${done.personId} ${done.confirmed ? 'can now' : 'could already'} enter the organization.`;
        return { json: done, text };
      },
    },
    {
      verb: 'show',
      summary: 'show the person who signs in with an address, and their memberships',
      options: emailOption,
      async run(options, { database }) {
        const found = await getSignIn(database, options.get('email'));
        const { memberships, ...signIn } = found;
        const cells = memberships.map(({ organizationId, status, confirmed, name, organizationName }) => [
          organizationId,
          status,
          confirmed ? 'yes' : 'no',
          name,
          organizationName,
        ]);
        const list = table(['ORGANIZATION', 'STATUS', 'CONFIRMED', 'CALLED', 'NAME'], cells, 'No memberships.');
        return { json: found, text: `${fields({ ...signIn, createdAt: signIn.createdAt.toISOString() })}\n\n${list}` };
      },
    },
    {
      verb: 'end-sessions',
      summary: 'end all sessions of a person in every organization; password and second factors do not change',
      options: emailOption,
      async run(options, { database }) {
        const done = await endSessionsByAddress(database, options.get('email'));
        return { json: done, text: `${sessionsEnded(done.ended)} They can sign in again.` };
      },
    },
    {
      verb: 'change-address',
      summary: 'change the sign-in address of a person; password and second factors do not change',
      options: { ...emailOption, to: { value: 'E', about: 'the new address', required: true } },
      async run(options, { database }) {
        const [from, to] = [options.get('email'), options.get('to')];
        const done = await changeAddress(database, { email: from, to });
        return { json: done, text: `${done.personId} now signs in with ${done.email}.` };
      },
    },
    {
      verb: 'free-address',
      summary:
        'free an address whose user cannot prove that it is theirs: deletes the password, second factors, ' +
        'sessions and open links of that sign-in; keeps the memberships',
      options: emailOption,
      async run(options, { database }) {
        const done = await freeAddress(database, options.get('email'));
        const text =
          `The address is free. ${done.personId} can no longer sign in. ${sessionsEnded(done.ended)} ` +
          'Invite the owner of the address now (orgctl person invite): another person can claim it until they enrol.';
        return { json: done, text };
      },
    },
  ],
};
