import { CompiledQuery } from 'kysely';
import { stopRequiringProvider } from '#domain/identity/sso-provider.ts';
import { type Context, type Noun, type Options, orgOption } from './command.ts';
import { CommandError } from './errors.ts';
import {
  findOrganizationSql,
  listOrganizationsSql,
  type OrganizationDetails,
  type OrganizationRow,
} from './organizations.ts';
import { fields, table } from './table.ts';

/** Returns the organization that `--org` names. */
export async function getOrganization(options: Options, { database }: Context): Promise<OrganizationDetails> {
  const statement = CompiledQuery.raw(findOrganizationSql, [options.getId('org')]);
  const [found] = await database.query<OrganizationDetails>(statement);
  if (found === undefined) throw new CommandError('This organization does not exist in this region.');
  return found;
}

/** `orgctl org …` */
export const org: Noun = {
  noun: 'org',
  summary: 'organizations of the region',
  commands: [
    {
      verb: 'list',
      summary: 'list all organizations by name',
      options: {},
      async run(_options, { database }) {
        const rows = await database.query<OrganizationRow>(CompiledQuery.raw(listOrganizationsSql));
        const cells = rows.map(({ id, status, kind, createdAt, name }) => [id, status, kind, createdAt, name]);
        return { json: rows, text: table(['ID', 'STATUS', 'KIND', 'CREATED', 'NAME'], cells, 'No organizations.') };
      },
    },
    {
      verb: 'show',
      summary: 'show one organization, with its counts',
      options: orgOption,
      async run(options, context) {
        const found = await getOrganization(options, context);
        return { json: found, text: fields({ ...found }) };
      },
    },
    {
      verb: 'sso-off',
      summary: 'accept passwords again, when no owner can sign in with the provider',
      options: orgOption,
      async run(options, { database }) {
        const { changed } = await stopRequiringProvider(database, options.getId('org'));
        const text = changed ? 'Members can sign in with a password again.' : 'The provider was not required.';
        return { json: { changed }, text };
      },
    },
  ],
};
