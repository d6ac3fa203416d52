/** docs/platform.md: its examples run in their order, and its words are the comments of the database. */
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { platformFunctions, platformViews } from '#domain/contract/platform.ts';
import { platformErrors } from '#domain/contract/platform-errors.ts';
import { childEnvironment } from '#test/child-environment.ts';
import { runCommand } from '#test/run-command.ts';
import { setupDatabase } from '#test/setup.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { functionComment } from '../../apps/migrate/comments.ts';
import { readPlatformFunctions, readPlatformViews } from '../migrate/platform-catalog.ts';

const page = readFileSync(path.join(import.meta.dirname, '../../docs/platform.md'), 'utf8');
const example = /^```(?<language>sql|json|sh)\n(?<code>[\s\S]*?)^```\n(?:\n```text\n(?<shown>[\s\S]*?)^```\n)?/gm;

/** Returns rows as lines of values, or an error as `code (SQLSTATE): message`, detail and hint. */
async function answer(client: pg.Client, text: string): Promise<string> {
  try {
    // Several statements have a result each.
    const results = [await client.query<unknown[]>({ text, rowMode: 'array' })].flat();
    return results.flatMap(({ rows }) => rows.map((row) => `${row.join(' | ')}\n`)).join('');
  } catch (error) {
    const { constraint, code, message, detail, hint } = error as pg.DatabaseError;
    return `${constraint} (${code}): ${message}\n${detail}\n${hint}\n`;
  }
}

it('every example of the page answers what it shows, in the order of the page', async () => {
  const { database } = await setupDatabase();
  const client = new pg.Client({ connectionString: database.urls.platform });
  await client.connect();
  onTestFinished(() => client.end());
  const examples = [...page.matchAll(example)].map(({ groups = {} }) => groups);
  expect(examples.map(({ language }) => language)).toEqual(expect.arrayContaining(['sql', 'json', 'sh']));
  let document = '';
  const folder = temporaryFolder();
  const env = { ...childEnvironment, REGION: 'us', DATABASE_URL: database.ownerUrl, INIT_CWD: folder };
  /** Runs imports of the page on its last document. Returns what they print. */
  async function carryOut(code: string, text: string): Promise<string> {
    const printed: string[] = [];
    for (const [, args = ''] of code.matchAll(/^npm run -s import -- (.*)$/gm)) {
      const flags = args.split(' ');
      await writeFile(path.join(folder, flags.at(-1) ?? ''), text);
      const { stdout, stderr } = await runCommand(['apps/import/main.ts', ...flags], env);
      printed.push(stdout || stderr);
    }
    expect(printed).toHaveLength(code.trim().split('\n').length);
    return printed.join('');
  }
  for (const { language, code = '', shown } of examples) {
    if (language === 'json') document = code;
    else {
      const answered = language === 'sql' ? await answer(client, code) : await carryOut(code, document);
      expect(`${code}${answered}`).toBe(`${code}${shown}`);
    }
  }
});

it('every view, column and function of the platform has its sentence as its comment, and nothing else is described', async () => {
  const { owner } = await setupDatabase();
  const views = await readPlatformViews(owner.pool);
  const inCatalog = [...views].map(([view, columns]) => [
    view,
    { is: columns[0]?.is, columns: columns.map(({ column, text }) => [column, text]) },
  ]);
  const inContract = Object.entries(platformViews).map(([view, { is, columns }]) => [
    view,
    { is, columns: Object.entries(columns) },
  ]);
  expect(Object.fromEntries(inCatalog)).toEqual(Object.fromEntries(inContract));
  const functions = await readPlatformFunctions(owner.pool);
  expect(functions.map(({ name }) => name)).toEqual(Object.keys(platformFunctions).sort());
  for (const { name, comment, arguments: signature, codes } of functions) {
    const description = platformFunctions[name] as (typeof platformFunctions)[string];
    const names = (isOptional: boolean) =>
      signature.filter((text) => text.includes(' DEFAULT ') === isOptional).map((text) => text.split(' ')[0]);
    expect([name, comment]).toEqual([name, functionComment(description)]);
    expect([name, names(false)]).toEqual([name, Object.keys(description.required)]);
    expect([name, names(true)]).toEqual([name, Object.keys(description.optional ?? {})]);
    expect([name, codes]).toEqual([name, [...description.codes].sort()]);
  }
});

it('every code has the SQLSTATE of the table, and the table has no other code', async () => {
  const { owner } = await setupDatabase();
  const { rows } = await owner.pool.query<{ code: string; state: string }>(
    `select distinct m[1] as code, m[2] as state from pg_proc p,
       regexp_matches(p.prosrc, 'platform\\.reject\\(''(\\w+)'', ''(\\w+)''', 'g') m
     where p.pronamespace = 'platform'::regnamespace`,
  );
  const states = Object.entries(platformErrors).map(([code, { state }]) => ({ code, state }));
  expect(rows.toSorted((a, b) => a.code.localeCompare(b.code))).toEqual(
    states.toSorted((a, b) => a.code.localeCompare(b.code)),
  );
});
