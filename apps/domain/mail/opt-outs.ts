import { sql } from 'kysely';
import type { Database, Queryable } from '../db/database.ts';
import type { OptionalKind } from './kinds.ts';
import type { StoppedMail } from './stop-link.ts';

type Recipient = Pick<StoppedMail, 'organizationId' | 'personId'>;

/** Lists the kinds of mails that a member turned off. */
export async function listOptOuts(db: Queryable, { organizationId, personId }: Recipient): Promise<OptionalKind[]> {
  const rows = await db.query(sql<{ kind: OptionalKind }>`
    select f.kind from mail_opt_out f where f.organization_id = ${organizationId} and f.person_id = ${personId}
    order by f.kind`);
  return rows.map(({ kind }) => kind);
}

/** Replaces what a member turned off. */
export async function replaceOptOuts(
  database: Database,
  { organizationId, personId }: Recipient,
  kinds: readonly OptionalKind[],
): Promise<void> {
  await database.change(async (tx) => {
    await tx.query(sql`delete from mail_opt_out f
      where f.organization_id = ${organizationId} and f.person_id = ${personId}`);
    for (const kind of kinds) await optOut(tx, { organizationId, personId, kind });
  });
}

/** Turns one kind off. Safe to repeat; of a person who is no member it does nothing. */
export async function optOut(db: Queryable, { organizationId, personId, kind }: StoppedMail): Promise<void> {
  await db.query(sql`
    insert into mail_opt_out (organization_id, person_id, kind)
    select m.organization_id, m.person_id, ${kind} from membership m
    where m.organization_id = ${organizationId} and m.person_id = ${personId}
    on conflict do nothing`);
}
