import { type RawBuilder, sql } from 'kysely';
import { fingerprints } from '#domain/keys/key.ts';
import { listKeys } from '#domain/keys/list.ts';
import { revokeKey } from '#domain/keys/revoke.ts';
import { UsageError } from '#runtime/errors.ts';
import { type Context, type Noun, Options, orgOption } from './command.ts';
import { CommandError } from './errors.ts';
import { getOrganization } from './org.ts';
import { table } from './table.ts';

/** `orgctl key …` */
export const key: Noun = {
  noun: 'key',
  summary: 'API keys; members create them in the console',
  commands: [
    {
      verb: 'list',
      summary: 'list all keys of an organization, including ended ones, oldest first, without their values',
      options: orgOption,
      async run(options, context) {
        const { id: organizationId } = await getOrganization(options, context);
        const keys = await listKeys(context.database, organizationId, new Date());
        const cells = keys.map(({ id, state, hint, creatorId, scopes, allowedAddresses, label }) => [
          id,
          state,
          hint,
          creatorId,
          scopes.join(','),
          allowedAddresses.join(',') || 'any',
          label,
        ]);
        const headings = ['ID', 'STATE', 'HINT', 'CREATOR', 'SCOPES', 'ADDRESSES', 'LABEL'];
        return { json: keys, text: table(headings, cells, 'No keys.') };
      },
    },
    {
      verb: 'revoke',
      summary: 'revoke a key immediately',
      options: { key: { value: 'ID|KEY', about: 'the key ID, or the key itself', required: true } },
      async run(options, context) {
        const found = await findKey(options.get('key'), context);
        if (found === null) throw new CommandError('This key does not exist in this region.');
        await revokeKey(context.database, { ...found, by: 'orgctl' });
        const text = `Revoked ${found.keyId}. All further requests with it return 401.`;
        return { json: { id: found.keyId, state: 'revoked' }, text };
      },
    },
  ],
};

async function findKey(requested: string, context: Context): Promise<{ organizationId: string; keyId: string } | null> {
  const select = async (which: RawBuilder<unknown>) => {
    const [key] = await context.database.query(sql<{ organizationId: string; keyId: string }>`
      select k.organization_id as "organizationId", k.id as "keyId" from api_key k where ${which}`);
    return key ?? null;
  };
  if (!requested.startsWith('aln_')) return select(sql`k.id = ${new Options({ key: requested }).getId('key')}`);
  const { peppers } = context.config;
  if (peppers === null)
    throw new UsageError(
      'KEY_PEPPERS is missing, which is needed to find a key by its value. Enter the key ID instead.',
    );
  return select(sql`k.fingerprint = any (${fingerprints(requested, peppers)}::bytea[])`);
}
