import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { setupDatabase } from '#test/setup.ts';

it('docs/data-model.md lists every table, and no other', async () => {
  const { owner } = await setupDatabase();
  const { rows } = await owner.pool.query<{ name: string }>(
    `select c.relname as name from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition`,
  );
  const page = readFileSync(path.join(import.meta.dirname, '../../docs/data-model.md'), 'utf8');
  const cells = page.matchAll(/^\| (`[^|]+`) \|/gm);
  const listed = [...cells].flatMap(([, cell = '']) => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name));
  expect(listed.sort()).toEqual(rows.map(({ name }) => name).sort());
});
