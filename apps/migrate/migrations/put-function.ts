/** What identifies a row of a function's table: an id of the region, an id of the organization, or the organization. */
type Key = 'region' | 'organization' | 'one';

interface PutFunction {
  /** The function is `put_<noun>`; its audit entries are of the action `platform.put_<noun>`. */
  noun: string;
  table: string;
  key: Key;
  /** Arguments without a default, by name, with their types. Each is a column of the same name. */
  required: Readonly<Record<string, string>>;
  /** The same with a default, which the type is followed by. */
  optional?: Readonly<Record<string, string>>;
  /** SQL that rejects arguments by themselves. */
  checks?: string;
  /** SQL that rejects them against other rows, once the organization's row is locked. */
  rules?: string;
  /** The id in the audit entry, such as `roleId`; none for a family, whose erasure must find no id there. */
  idInLog?: string;
}

/**
 * Returns SQL that creates a function of schema `platform` which creates a row or changes it: it
 * returns `created`, `changed` or `unchanged`. Its arguments are columns of the same name.
 */
export function putFunction(put: PutFunction): string {
  const { noun, table, key, required, optional = {}, checks = '', rules = '', idInLog } = put;
  const ids: Record<string, string> = key === 'one' ? { organization: 'uuid' } : { organization: 'uuid', id: 'uuid' };
  const needed = Object.keys({ ...ids, ...required });
  const columns = Object.keys({ ...required, ...optional });
  const signature = Object.entries({ ...ids, ...required, ...optional }).map(([name, type]) => `${name} ${type}`);
  const keyColumns = key === 'one' ? ['organization_id'] : ['organization_id', 'id'];
  const keyValues = key === 'one' ? ['organization'] : ['organization', 'id'];
  const isStored = { region: 't.id = id', organization: 't.organization_id = organization and t.id = id' };
  const where = key === 'one' ? 't.organization_id = organization' : isStored[key];
  const about = idInLog === undefined ? `'{}'::jsonb` : `jsonb_build_object('${idInLog}', id)`;
  const differing = columns.map((name) => `case when stored.${name} is distinct from ${name} then '${name}' end`);
  return /* sql */ `
    create function platform.put_${noun}(${signature.join(', ')}) returns text
    language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
    #variable_conflict use_variable
    declare
      stored public.${table};
      differing text[];
    begin
      perform platform.check_call(array['${needed.join(`', '`)}'],
        array[${needed.map((name) => `${name} is null`).join(', ')}]);
      ${checks}
      perform platform.lock_organization(organization);
      ${rules}
      insert into ${table} (${[...keyColumns, ...columns].join(', ')})
        values (${[...keyValues, ...columns].join(', ')}) on conflict do nothing;
      if found then
        perform platform.record_change(organization, 'put_${noun}', ${about} || '{"created": true}');
        return 'created';
      end if;
      -- Waits for an import that writes the same row.
      select * into strict stored from ${table} t where ${where} for no key update;
      ${key === 'region' ? 'perform platform.check_owner(organization, stored.organization_id);' : ''}
      differing := array_remove(array[${differing.join(',\n        ')}], null);
      if differing = '{}' then return 'unchanged'; end if;
      update ${table} t set ${columns.map((name) => `${name} = put_${noun}.${name}`).join(', ')} where ${where};
      perform platform.record_change(organization, 'put_${noun}',
        ${about} || jsonb_build_object('changed', differing));
      return 'changed';
    end $$;`;
}
