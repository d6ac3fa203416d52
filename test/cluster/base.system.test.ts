/** How the cluster test finds that its base has other migrations than this checkout. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { setupDatabase } from '#test/setup.ts';
import { compareSchemas, listObjects } from './base.ts';
import { repository } from './images.ts';

/** A checkout whose migration of schema `platform` has one function more. */
function checkOutOther(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'org-api-other-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const one of ['apps', 'package.json'])
    cpSync(path.join(repository, one), path.join(folder, one), { recursive: true });
  symlinkSync(path.join(repository, 'node_modules'), path.join(folder, 'node_modules'));
  const migration = path.join(folder, 'apps/migrate/migrations/0015-platform.ts');
  const source = readFileSync(migration, 'utf8');
  const schema = 'create schema platform;';
  expect(source).toContain(schema);
  const added = 'create function platform.left_over() returns int language sql return 1;';
  writeFileSync(migration, source.replace(schema, `${schema}\n${added}`));
  return folder;
}

it('a base with another migration differs, and this checkout does not differ from itself', {
  timeout: 180_000,
}, async () => {
  const started = new AsyncDisposableStack();
  onTestFinished(() => started.disposeAsync());
  const compare = (before: string) => compareSchemas({ before, after: repository }, started, () => {});
  expect(await compare(repository)).toEqual([]);
  expect(await compare(checkOutOther())).toEqual([
    expect.stringMatching(/^only after an upgrade: function CREATE OR REPLACE FUNCTION platform\.left_over/),
  ]);
});

it('what a migration may define is compared in every schema', async () => {
  const { database, owner } = await setupDatabase();
  const list = () => listObjects(database.ownerUrl);
  let before = await list();
  for (const statement of [
    'alter table webhook alter column url drop not null',
    'create table platform.left_over (id int primary key)',
    'create view platform.left_overs as select id from platform.left_over',
    'comment on view platform.left_overs is $$A note.$$',
    'create function api.left_over() returns int language sql return 1',
    'grant execute on function api.left_over to public',
    'grant usage on schema api to public',
  ]) {
    await owner.pool.query(statement);
    const after = await list();
    expect(after, statement).not.toEqual(before);
    before = after;
  }
});
