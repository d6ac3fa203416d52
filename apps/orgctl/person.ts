import { createEnrolment } from '#domain/identity/enrolment.ts';
import type { Noun } from './command.ts';
import { getOrganization } from './org.ts';
import { WrongUse } from './refused.ts';

const purposes = {
  enrol: 'the person sets a password and a second factor with it',
  join: 'the person signs in as ever and joins the organization with it',
  recover: 'the person sets a new password and second factor with it; the old ones, and their sessions, end then',
};

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
        email: { value: 'E', about: 'the address the person signs in with', required: true },
        name: { value: 'N', about: 'what the organization calls somebody new' },
        roles: { value: 'K,…', about: 'keys of roles to give them; somebody new is a member when left out' },
      },
      async run(options, context) {
        const { consoleUrl } = context.config;
        if (consoleUrl === null)
          throw new WrongUse('CONSOLE_URL is missing: set it to the address of the console, where the link leads.');
        const { id: organizationId } = await getOrganization(options, context);
        const [name, roles] = [options.find('name'), options.find('roles')];
        const { token, expiresAt, personId, kind } = await createEnrolment(context.database.orm.em, {
          ...{ organizationId, email: options.get('email'), by: 'operator' },
          ...(name === null ? {} : { name }),
          ...(roles === null ? {} : { roleKeys: options.getList('roles') }),
        });
        const url = `${consoleUrl}/enrol/${token}`;
        const text = `${url}\nGood once, until ${expiresAt.toISOString()}: ${purposes[kind]}. Whoever has it can use it; hand it to them alone.`;
        return { json: { url, expiresAt: expiresAt.toISOString(), personId, kind }, text };
      },
    },
  ],
};
