/** docs/operations/run-orgctl.md, with its own commands: from an empty region to the first read, and an erasure. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { scopes } from '#domain/contract/scopes.ts';
import { createKey } from '#domain/keys/create.ts';
import { childEnvironment } from '#test/child-environment.ts';
import { testKeySecrets } from '#test/secrets.ts';
import { setupDatabase, startTestApi } from '#test/setup.ts';
import { carryOut, readSection, without } from './page.ts';
import { openShell } from './shell.ts';

const page = 'run-orgctl.md';
const root = path.join(import.meta.dirname, '../..');

it('an empty region gets its first organization, owner and read by the commands of the guide', {
  timeout: 180_000,
}, async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'org-api-page-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { database, owner, make } = await setupDatabase();
  const api = await startTestApi(database);
  const run = openShell({
    ...childEnvironment,
    PATH: [path.dirname(process.execPath), childEnvironment.PATH].join(':'),
    NS: 'org-api-us',
    REGION: 'us',
    DATABASE_URL: database.ownerUrl,
    CONSOLE_URL: 'https://console.us.example.com',
    ORG_API_STATE: path.join(folder, 'none'),
  });
  await run(`cd ${folder}`);
  await run(`kubectl() { while [ "$1" != -- ]; do shift; done; shift; (cd ${root} && "$@"); }`);
  await carryOut(readSection(page, 'Start the pod'), [
    [/^orgctl\(\) /, run],
    [/^orgctl (--help|ledger)$/, run],
    [/^orgctl org list$/, async (command) => expect(await run(command)).toContain('No organizations.')],
    [/^kubectl |^# orgctl\.yaml/, without('the commands of the pod run here')],
  ]);

  let organizationId = '';
  await carryOut(readSection(page, 'Import organizations'), [
    [/ node apps\/import\/generate\/main\.ts .* > organizations\.json$/, run],
    [/ node apps\/import\/main\.ts .* < organizations\.json$/, run],
    [
      /^orgctl org list$/,
      async (command) => {
        [organizationId = ''] = /^[0-9a-f-]{36}/m.exec(await run(command)) ?? [];
      },
    ],
  ]);
  await carryOut(readSection(page, 'Invite the first owner'), [
    [
      /^orgctl person invite --org ORGANIZATION /,
      async (command) =>
        expect(await run(command.replace('ORGANIZATION', organizationId))).toMatch(
          /^https:\/\/console\.us\.example\.com\/enrol#\S+$/m,
        ),
    ],
    [
      /^curl /,
      async (command) => {
        await run(`KEY=${await createKeyAsOwner()}`);
        const here = command.replace('https://api.us.example.com', api.url).replace('ORGANIZATION', organizationId);
        expect(JSON.parse(await run(here))).toMatchObject({ id: organizationId });
      },
    ],
  ]);

  const family = await make.family({ orgId: organizationId, name: 'Marker family' });
  let erasure = '';
  await carryOut(readSection(page, 'Erase a family'), [
    [
      /^orgctl family erase /,
      async (command) => {
        [erasure = ''] = /(?<="erasureId": ")[^"]+/.exec(await run(command.replace('FAMILY', family))) ?? [];
      },
    ],
    [
      /^orgctl family certificate /,
      async (command) =>
        expect(JSON.parse(await run(command.replace('ERASURE', erasure)))).toMatchObject({
          organizationId,
          erasedBy: 'orgctl',
          reference: 'case-17',
        }),
    ],
  ]);
  expect((await owner.pool.query(`select from family where id = $1`, [family])).rowCount).toBe(0);

  /** Creates the key that the owner creates in the console, which the console's own tests do. */
  async function createKeyAsOwner(): Promise<string> {
    const { rows } = await owner.pool.query<{ id: string }>(
      `select person_id as id from membership_role join role on role.id = role_id
        where membership_role.organization_id = $1 and role.key = 'owner'`,
      [organizationId],
    );
    const input = { organizationId, creatorId: rows[0]?.id ?? '', scopes, label: 'first', expiresAt: null };
    return (await createKey(owner, { ...input, by: 'orgctl' }, testKeySecrets)).key;
  }
});
