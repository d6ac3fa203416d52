import type { Pool } from 'pg';

/** The choices in the filter of the audit log: a few hundred, and always the current choice. */

export interface KeyChoice {
  id: string;
  label: string;
  hint: string;
}

/** `$1` organization, `$2` the chosen key or null. Ended keys are included: their entries remain. */
const keyChoicesSql = /* sql */ `
  select c.id, c.label, c.hint from (
    (select k.id, k.label, k.hint from api_key k where k.organization_id = $1 order by k.created_at desc, k.id desc
      limit 200)
    union
    select k.id, k.label, k.hint from api_key k where k.organization_id = $1 and k.id = $2
  ) c
  order by c.label collate "und-x-icu", c.id`;

export async function listKeyChoices(pool: Pool, organizationId: string, chosen: string | null): Promise<KeyChoice[]> {
  const values = [organizationId, chosen];
  const { rows } = await pool.query<KeyChoice>({ name: 'listKeyChoices', text: keyChoicesSql, values });
  return rows;
}

export interface PersonChoice {
  personId: string;
  name: string;
}

/** `$1` organization, `$2` the chosen person, or null. Former members are included. */
const peopleChoicesSql = /* sql */ `
  select c."personId", c.name from (
    (select m.person_id as "personId", m.name from membership m where m.organization_id = $1
      order by left(m.name, 100) collate "und-x-icu", m.person_id limit 500)
    union
    select m.person_id, m.name from membership m where m.organization_id = $1 and m.person_id = $2
  ) c
  order by c.name collate "und-x-icu", c."personId"`;

export async function listPeopleChoices(
  pool: Pool,
  organizationId: string,
  chosen: string | null,
): Promise<PersonChoice[]> {
  const values = [organizationId, chosen];
  const { rows } = await pool.query<PersonChoice>({ name: 'listPeopleChoices', text: peopleChoicesSql, values });
  return rows;
}
