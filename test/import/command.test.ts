import { execFileSync, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { childEnvironment } from '#test/child-environment.ts';
import { createTestDatabase, type TestDatabase } from '#test/database.ts';
import { ids, otherOrganization, query, smallDocument } from './document.ts';

const app = (name: string) => fileURLToPath(new URL(`../../apps/import/${name}.ts`, import.meta.url));

let us: TestDatabase;
let ca: TestDatabase;
let folder: string;

beforeAll(async () => {
  [us, ca] = await Promise.all([createTestDatabase(), createTestDatabase()]);
  folder = await mkdtemp(path.join(tmpdir(), 'org-api-import-'));
  const other = { region: 'ca', asOf: '2026-11-20', organizations: [otherOrganization()] };
  await writeFile(path.join(folder, 'us.json'), JSON.stringify(smallDocument()));
  await writeFile(path.join(folder, 'ca.json'), JSON.stringify(other));
  await writeFile(path.join(folder, 'bad.json'), '{"region":"us","asOf":"2026-11-20","organizations":[{}]}');
  const regions = [
    { region: 'us', databaseUrl: us.ownerUrl },
    { region: 'ca', databaseUrl: ca.ownerUrl },
  ];
  await writeFile(path.join(folder, 'stack.json'), JSON.stringify({ regions }));
});
afterAll(async () => {
  await Promise.all([us.drop(), ca.drop(), rm(folder, { recursive: true })]);
});

interface Ran {
  code: number | null;
  stdout: string;
  stderr: string;
}

function run(name: string, args: string[], environment: Record<string, string> = {}, input = ''): Promise<Ran> {
  const bare = { ...childEnvironment, INIT_CWD: folder };
  const running = spawn(process.execPath, [app(name), ...args], { cwd: folder, env: { ...bare, ...environment } });
  const ran: Ran = { code: null, stdout: '', stderr: '' };
  running.stdout.on('data', (chunk) => {
    ran.stdout += chunk;
  });
  running.stderr.on('data', (chunk) => {
    ran.stderr += chunk;
  });
  running.stdin.on('error', () => {}); // a process that rejects what it reads may end before its last byte
  running.stdin.end(input);
  return new Promise((resolve, reject) => {
    running.on('error', reject);
    running.on('close', (code) => resolve({ ...ran, code }));
  });
}

const stack = () => ({ ORG_API_STATE: folder });

describe('npm run import', () => {
  it('does not say that nothing was imported when its commit got no response', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    await query(
      database.ownerUrl,
      `create function end_session() returns trigger language plpgsql security definer as $$
         begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
       create constraint trigger end_session after insert on organization deferrable initially deferred
         for each row execute function end_session()`,
    );
    const { code, stderr } = await run('main', ['us.json'], { DATABASE_URL: database.ownerUrl, REGION: 'us' });
    expect([code, stderr]).toEqual([1, expect.stringMatching(/us\.json: PostgreSQL ended the connection.* may have/)]);
    expect(stderr).not.toContain('Nothing of it was imported');
  });

  it('reads database and region of each file from the stack', async () => {
    const ran = await run('main', ['--json', '--today', 'us.json', 'ca.json'], stack());
    expect(ran).toMatchObject({ code: 0, stderr: expect.stringContaining('us.json: checking') });
    const { imported } = JSON.parse(ran.stdout);
    expect(imported.map((one: { region: string }) => one.region)).toEqual(['us', 'ca']);
    expect(await query(ca.ownerUrl, 'select slug from organization')).toEqual([{ slug: 'other' }]);
  });

  it('prefers them from the environment, and reads a document from standard input', async () => {
    const environment = { DATABASE_URL: us.ownerUrl, REGION: 'us' };
    const ran = await run('main', ['-'], environment, JSON.stringify(smallDocument()));
    expect(ran).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^standard input: imported into us\n.*organizations/s),
    });
  });

  it('reads each source once, to the stack’s region that it names: standard input and a pipe', async () => {
    const [ca, usAgain] = [path.join(folder, 'ca.json'), path.join(folder, 'us.json')];
    const input = await run('main', ['--json', '-'], stack(), await readFile(ca, 'utf8'));
    expect(input, input.stderr).toMatchObject({ code: 0 });
    expect(JSON.parse(input.stdout).imported).toMatchObject([{ fileName: 'standard input', region: 'ca' }]);

    const pipe = path.join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    for (const [file, region] of [
      [ca, 'ca'],
      [usAgain, 'us'],
    ] as const) {
      const running = run('main', ['--json', 'pipe'], stack());
      await writeFile(pipe, await readFile(file));
      const ran = await running;
      expect(ran, ran.stderr).toMatchObject({ code: 0 });
      expect(JSON.parse(ran.stdout).imported).toMatchObject([{ fileName: 'pipe', region }]);
    }
  });

  it('says that it needs REGION for a source that names its region after its first MiB', async () => {
    const gap = ' '.repeat(700_000);
    const organizations = `"organizations":[${gap}${JSON.stringify(otherOrganization())}${gap}]`;
    const late = `{${organizations},"asOf":"2026-11-20","region":"ca"}`;
    const ran = await run('main', ['-'], stack(), late);
    expect([ran.code, ran.stderr]).toEqual([2, expect.stringMatching(/^-: It does not name its region .* set REGION/)]);
    expect(await run('main', ['-'], { ...stack(), REGION: 'ca' }, late)).toMatchObject({ code: 0 });
  });

  it('prints what an import would change and what it would end, and then does it', async () => {
    const document = smallDocument();
    document.organizations[0].grants.splice(2, 1);
    document.organizations[0].families[0].name = 'Renamed';
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const to = { DATABASE_URL: database.ownerUrl, REGION: 'us' };
    await run('main', ['us.json'], to);
    await writeFile(path.join(folder, 'complete.json'), JSON.stringify(document));
    const dry = await run('main', ['--dry-run', '--complete', '--list', '1', 'complete.json'], to);
    const changes = [
      '  families              1 updated, 2 unchanged',
      '  left out, so ended    grants 1 (--ending 1)',
      '  event client.ended    1 (deliveries: 0)',
    ];
    expect(dry).toMatchObject({ code: 0, stderr: expect.stringContaining('complete.json: comparing') });
    expect(dry.stdout).toContain('complete.json: dry run, nothing was written: would be imported into us\n');
    for (const line of changes) expect(dry.stdout).toContain(`${line}\n`);
    expect(dry.stdout.endsWith(`\n  update family ${ids.families[0]}: name\n`)).toBe(true);
    const other = await run('main', ['--complete', '--ending', '2', 'complete.json'], to);
    expect(other.code).toBe(1);
    expect(other.stderr).toContain('$: would end 1 object, and not the 2 that --ending names');
    const real = await run('main', ['--complete', '--ending', '1', 'complete.json'], to);
    expect(real).toMatchObject({ code: 0, stdout: expect.stringContaining(changes[1] ?? '') });
  });

  it('stops at a rejected file, and lists which files were imported and which were not tried', async () => {
    const ran = await run('main', ['us.json', 'bad.json', 'ca.json'], stack());
    expect(ran.code).toBe(1);
    expect(ran.stdout).toMatch(/^us\.json: imported/);
    expect(ran.stderr).toContain('bad.json was rejected with 6 problems; nothing of it was imported:');
    expect(ran.stderr).toContain('  $.organizations[0].slug: is missing');
    expect(ran.stderr).toMatch(/Imported before it: us\.json\.\nNot tried any more: ca\.json\.\n$/);
  });

  it('prints the problems as JSON on request', async () => {
    const ran = await run('main', ['--json', 'bad.json'], stack());
    expect(ran.code).toBe(1);
    expect(JSON.parse(ran.stdout)).toMatchObject({ imported: [], rejected: { file: 'bad.json', total: 6 } });
  });

  const failures: [
    what: string,
    args: string[],
    environment: () => Record<string, string>,
    code: number,
    message: RegExp,
  ][] = [
    ['a file that is not there', ['nothing.json'], stack, 1, /^nothing\.json: There is no such file/m],
    ['a folder', ['.'], stack, 1, /is a folder/],
    ['no file', [], stack, 2, /Name at least one file/],
    ['an unknown flag', ['--now', 'us.json'], stack, 2, /--now/],
    ['a complete file without the number of ends', ['--complete', 'us.json'], stack, 2, /print.* as --ending/],
    ['a number of ends without --complete', ['--ending', '1', 'us.json'], stack, 2, /--ending needs --complete/],
    ['one number of ends for two', ['--complete', '--ending=1', 'us.json', 'ca.json'], stack, 2, /of one file/],
    ['a number that is none', ['--complete', '--ending', 'x', 'us.json'], stack, 2, /must be a whole number/],
    ['a list without --dry-run', ['--list', '1', 'us.json'], stack, 2, /--list needs --dry-run/],
    ['no stack and no settings', ['us.json'], () => ({}), 1, /run npm start first, or set DATABASE_URL and REGION/],
    ['a database without its region', ['us.json'], () => ({ DATABASE_URL: us.ownerUrl }), 1, /REGION is missing/],
    ['a region that the stack lacks', ['us.json'], () => ({ ...stack(), REGION: 'mx' }), 1, /REGION: must be us or ca/],
    [
      'no PostgreSQL there',
      ['us.json'],
      () => ({ REGION: 'us', DATABASE_URL: 'postgresql://u:topsecret@127.0.0.1:1/x' }),
      1,
      /No PostgreSQL answers/,
    ],
  ];
  it.each(failures)(
    'explains in one sentence what is wrong and what to do: %s',
    async (_what, args, environment, code, message) => {
      const ran = await run('main', args, environment());
      expect(ran.code).toBe(code);
      expect(ran.stderr).toMatch(message);
      expect(ran.stderr).not.toMatch(/^\s+at |topsecret/m);
      expect(ran.stdout).toBe('');
    },
  );

  it('explains what to do about a database without the schema', async () => {
    const empty = await createTestDatabase({ empty: true });
    const ran = await run('main', ['us.json'], { DATABASE_URL: empty.ownerUrl, REGION: 'us' });
    expect(ran).toMatchObject({ code: 1, stderr: expect.stringContaining('Run node apps/migrate/main.ts first.') });
    await empty.drop();
  });

  it('prints its help', async () => {
    expect(await run('main', ['--help'])).toMatchObject({ code: 0, stdout: expect.stringContaining('--today') });
  });
});

describe('npm run generate', () => {
  it('writes a document that npm run import accepts', async () => {
    const sample = await run('generate/main', [
      '--region',
      'us',
      '--organizations',
      '2',
      '--families',
      '9',
      '--as-of',
      '2026-11-20',
    ]);
    expect(sample).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(sample.stdout)).toMatchObject({ region: 'us', asOf: '2026-11-20' });
    expect(await run('main', ['-'], { ...stack(), REGION: 'us' }, sample.stdout)).toMatchObject({ code: 0 });
  });

  it.each([
    ['--region', 'mx'],
    ['--families', 'many'],
    ['--as-of', '2026-02-30'],
    ['--as-of', '9999-12-31'],
    ['--nothing'],
  ])('rejects %s %s', async (...args) => {
    expect(await run('generate/main', args.filter(Boolean))).toMatchObject({ code: 2, stdout: '' });
  });
});
