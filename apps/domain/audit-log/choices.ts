import { sql } from 'kysely';
import type { Queryable } from '../db/database.ts';

/** The choices in the filter of the audit log: a few hundred, and always the current choice. */

export interface KeyChoice {
  id: string;
  label: string;
  hint: string;
}

/** Lists keys with the chosen one, if any. Ended keys are included: their entries remain. */
export const listKeyChoices = (db: Queryable, organizationId: string, chosen: string | null): Promise<KeyChoice[]> =>
  db.query(sql<KeyChoice>`
    select c.id, c.label, c.hint from (
      (select k.id, k.label, k.hint from api_key k where k.organization_id = ${organizationId}
        order by k.created_at desc, k.id desc
        limit 200)
      union
      select k.id, k.label, k.hint from api_key k where k.organization_id = ${organizationId} and k.id = ${chosen}
    ) c
    order by c.label collate "und-x-icu", c.id`);

export interface PersonChoice {
  personId: string;
  name: string;
}

/** Lists people with the chosen one, if any. Former members are included. */
export const listPeopleChoices = (
  db: Queryable,
  organizationId: string,
  chosen: string | null,
): Promise<PersonChoice[]> =>
  db.query(sql<PersonChoice>`
    select c."personId", c.name from (
      (select m.person_id as "personId", m.name from membership m where m.organization_id = ${organizationId}
        order by left(m.name, 100) collate "und-x-icu", m.person_id limit 500)
      union
      select m.person_id, m.name from membership m
      where m.organization_id = ${organizationId} and m.person_id = ${chosen}
    ) c
    order by c.name collate "und-x-icu", c."personId"`);
