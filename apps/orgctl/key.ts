import { fingerprints } from '#domain/keys/fingerprint.ts';
import { listKeys } from '#domain/keys/list.ts';
import { revokeKey } from '#domain/keys/revoke.ts';
import { type Context, type Noun, Options } from './command.ts';
import { getOrganization } from './org.ts';
import { Refused, WrongUse } from './refused.ts';
import { table } from './table.ts';

/** `orgctl key …` */
export const key: Noun = {
  noun: 'key',
  summary: 'API keys; they are made in the console, by their owners',
  commands: [
    {
      verb: 'list',
      summary: 'every key an organization ever had, oldest first; never its value',
      options: { org: { value: 'ID', about: 'the organization', required: true } },
      async run(options, context) {
        const { id: organizationId } = await getOrganization(options, context);
        const keys = await listKeys(context.database.orm.em, organizationId, new Date());
        const cells = keys.map(({ id, state, hint, makerId, scopes, label }) => [
          id,
          state,
          hint,
          makerId,
          scopes.join(','),
          label,
        ]);
        return { json: keys, text: table(['ID', 'STATE', 'HINT', 'MAKER', 'SCOPES', 'LABEL'], cells, 'No keys.') };
      },
    },
    {
      verb: 'revoke',
      summary: 'revoke a key at once',
      options: {
        key: { value: 'ID|KEY', about: 'its id, or the key itself when that is all there is', required: true },
      },
      async run(options, context) {
        const found = await findKey(options.get('key'), context);
        if (found === null) throw new Refused('This region has no such key.');
        await revokeKey(context.database.orm.em, { ...found, by: 'operator' });
        const text = `Revoked ${found.keyId}; every request from now on is refused.`;
        return { json: { id: found.keyId, state: 'revoked' }, text };
      },
    },
  ],
};

async function findKey(asked: string, context: Context): Promise<{ organizationId: string; keyId: string } | null> {
  const columns = 'select k.organization_id as "organizationId", k.id as "keyId" from api_key k';
  const { pool } = context.database;
  if (!asked.startsWith('aln_')) {
    const { rows } = await pool.query(`${columns} where k.id = $1`, [new Options({ key: asked }).getId('key')]);
    return rows[0] ?? null;
  }
  const { peppers } = context.config;
  if (peppers === null)
    throw new WrongUse('A key is found by its value only with KEY_PEPPERS, which is missing; give its id instead.');
  const { rows } = await pool.query(`${columns} where k.fingerprint = any ($1)`, [fingerprints(asked, peppers)]);
  return rows[0] ?? null;
}
