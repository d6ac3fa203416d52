import { createEnrolment } from '#domain/identity/enrolment.ts';
import { enrolmentLink } from '#domain/identity/enrolment-link.ts';
import {
  changeAddress,
  confirmSignInOf,
  endSessionsOf,
  getSignIn,
  releaseAddress,
} from '#domain/identity/operator-actions.ts';
import type { Noun } from './command.ts';
import { getOrganization } from './org.ts';
import { WrongUse } from './refused.ts';
import { fields, table } from './table.ts';

const purposes = {
  enrol: 'the person sets a password and a second factor with it',
  join: 'the person signs in as ever and joins the organization with it',
  recover: 'the person sets a new password and second factor with it; the old ones, and their sessions, end then',
};

const sessionsEnded = (ended: number) => `${ended === 1 ? 'One session' : `${ended} sessions`} ended.`;
const email = { value: 'E', about: 'the address the person signs in with', required: true };

/** `orgctl person …` */
export const person: Noun = {
  noun: 'person',
  summary: 'people who sign in to the console',
  commands: [
    {
      verb: 'invite',
      summary: 'print a one-time link with which a person enrols, joins one more organization, or gets back in',
      options: {
        org: { value: 'ID', about: 'the organization', required: true },
        email,
        name: { value: 'N', about: 'what the organization calls a new member' },
        roles: { value: 'K,…', about: 'keys of the roles to assign; a new member is a plain member when left out' },
      },
      async run(options, context) {
        const { consoleUrl } = context.config;
        if (consoleUrl === null)
          throw new WrongUse('CONSOLE_URL is missing: set it to the address of the console, where the link leads.');
        const { id: organizationId } = await getOrganization(options, context);
        const [name, roles] = [options.find('name'), options.find('roles')];
        const { token, expiresAt, personId, kind } = await createEnrolment(context.database.orm.em, {
          organizationId,
          email: options.get('email'),
          by: 'operator',
          ...(name === null ? {} : { name }),
          ...(roles === null ? {} : { roleKeys: options.getList('roles') }),
        });
        const url = enrolmentLink(consoleUrl, token);
        const text =
          `${url}\nGood once, until ${expiresAt.toISOString()}: ${purposes[kind]}. Every holder of ` +
          'the link can use it: give it to this person only.';
        return { json: { url, expiresAt: expiresAt.toISOString(), personId, kind }, text };
      },
    },
    {
      verb: 'confirm',
      summary:
        'let an active member enter an organization that has not confirmed their sign-in; make sure that it is theirs',
      options: { org: { value: 'ID', about: 'the organization', required: true }, email },
      async run(options, context) {
        const { id: organizationId } = await getOrganization(options, context);
        const done = await confirmSignInOf(context.database.orm.em, { organizationId, email: options.get('email') });
        const text = done.confirmed
          ? `${done.personId} can enter the organization from now on.`
          : `${done.personId} could enter the organization before.`;
        return { json: done, text };
      },
    },
    {
      verb: 'show',
      summary: 'who signs in with an address, and where they are a member',
      options: { email },
      async run(options, { database }) {
        const found = await getSignIn(database.orm.em.fork(), options.get('email'));
        const { memberships, ...signIn } = found;
        const cells = memberships.map((one) => [
          one.organizationId,
          one.status,
          one.confirmed ? 'yes' : 'no',
          one.name,
          one.organizationName,
        ]);
        const list = table(
          ['ORGANIZATION', 'STATUS', 'CONFIRMED', 'CALLED', 'NAME'],
          cells,
          'A member of no organization.',
        );
        return { json: found, text: `${fields({ ...signIn, createdAt: signIn.createdAt.toISOString() })}\n\n${list}` };
      },
    },
    {
      verb: 'end-sessions',
      summary: 'end all sessions of a person at once, in every organization; password and second factors stay',
      options: { email },
      async run(options, { database }) {
        const done = await endSessionsOf(database.orm.em, options.get('email'));
        return { json: done, text: `${sessionsEnded(done.ended)} They can sign in again.` };
      },
    },
    {
      verb: 'change-address',
      summary: 'give a person another address to sign in with; all else of their sign-in stays',
      options: { email, to: { value: 'E', about: 'the new address', required: true } },
      async run(options, { database }) {
        const [from, to] = [options.get('email'), options.get('to')];
        const done = await changeAddress(database.orm.em, { email: from, to });
        return {
          json: { ...done, email: to.trim() },
          text: `${done.personId} signs in with ${to.trim()} from now on.`,
        };
      },
    },
    {
      verb: 'release-address',
      summary:
        'take an address back from who signs in with it and cannot prove that it is theirs: password, ' +
        'second factors, sessions and open links are gone, memberships stay',
      options: { email },
      async run(options, { database }) {
        const done = await releaseAddress(database.orm.em, options.get('email'));
        const text =
          `The address is free; ${done.personId} can no longer sign in. ${sessionsEnded(done.ended)} ` +
          'Invite the one it belongs to now (orgctl person invite): until they have enrolled, it can be taken again.';
        return { json: done, text };
      },
    },
  ],
};
