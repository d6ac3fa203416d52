import { expect, it } from 'vitest';
import { scopes } from '#domain/contract/scopes.ts';
import { readPaths, readStatuses, setupDevStack } from '#test/stack.ts';

it('npm start brings up two regions beside another stack; a key of one region is referred to its region; dev:key creates and revokes keys', async () => {
  const [dev, neighbor] = [await setupDevStack(), await setupDevStack()];
  await neighbor.start('--no-samples');
  await dev.start('--regions', 'us,ca');
  expect(neighbor.stack().regions[0]?.organizations).toEqual([]);
  const { regions } = dev.stack();
  const [us, ca] = regions as [(typeof regions)[number], (typeof regions)[number]];
  const [org] = us.organizations as [(typeof us.organizations)[number]];

  const lost = await fetch(`${ca.api}/v1/orgs/${org.id}`, {
    headers: { authorization: `Bearer ${org.sampleKey}` },
  });
  expect(lost.status).toBe(401);
  expect(await lost.json()).toEqual({
    error: 'invalid_api_key',
    message: `This API key is for United States; send it to ${us.api}.`,
  });

  const make = ['--region', 'us', '--org', org.id, '--creator', org.ownerUserId, '--scopes'];
  const made = await dev.command('apps/dev/create-key.ts', ...make, 'org.read');
  expect(made.code).toBe(0);
  const key = made.stdout.trim();
  expect((await readStatuses(us.api, org.id, key)).filter((status) => status === 200)).toHaveLength(1);
  expect(await dev.command('apps/dev/create-key.ts', '--region', 'us', '--revoke', key)).toMatchObject({ code: 0 });
  expect(await readStatuses(us.api, org.id, key)).toEqual(readPaths.map(() => 401));
  expect(await dev.command('apps/dev/create-key.ts', ...make, 'org.nothing')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(scopes[0]),
  });
}, 180_000);
