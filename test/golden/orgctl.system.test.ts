/**
 * The JSON of `orgctl`, on which operators' scripts rely: the output of every command that prints a
 * document.
 */
import { expect, it, vi } from 'vitest';
import { hostileShell, setHostileDefaults } from '#test/hostile-surroundings.ts';
import { setupOrgctl } from '#test/orgctl.ts';
import { startReceiver } from '#test/receiver.ts';
import { startTestWorker } from '#test/worker.ts';
import { createStable, goldenText } from './stable.ts';

/** Measured values differ from run to run; scripts rely on their being numbers. */
function withoutMeasures(value: unknown, name = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutMeasures(item));
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutMeasures(item, key)]));
  const isMeasure = typeof value === 'number' && /^(dns|connect|tls|firstByte|total)$|Ms$/.test(name);
  return isMeasure ? '<ms>' : value;
}

it('every command prints an unchanged document, whatever the defaults of the database and the shell', {
  timeout: 300_000,
}, async () => {
  const { database, owner: installer, make, orgctl } = await setupOrgctl(hostileShell);
  await setHostileDefaults(installer.pool);
  const receiver = await startReceiver();
  const owner = await make.member();
  const org = ['--org', owner.orgId];
  await startTestWorker(database, { DELIVERY_SCHEDULE: '10ms' });
  const stable = createStable();
  const printed: Record<string, unknown> = {};
  const run = async <T>(...args: string[]): Promise<T> => {
    const called = await orgctl(...args, '--region', 'us', '--json');
    expect({ args, code: called.code, stderr: called.code === 0 ? '' : called.stderr }).toMatchObject({ code: 0 });
    const name = args.filter((arg, at) => !arg.startsWith('--') && (args[at - 1]?.startsWith('--') ? '' : arg));
    printed[name.join(' ')] = stable(withoutMeasures(called.json()));
    return called.json<T>();
  };

  await run('org', 'list');
  await run('org', 'show', ...org);
  const types = ['--types', 'client.started,client.ended'];
  const url = ['--url', `${receiver.url}/hooks/one`];
  const { id } = await run<{ id: string }>('webhook', 'create', ...org, ...url, ...types, '--description', 'Cases');
  const webhook = ['--webhook', id];
  await make.grant({ professional: owner });
  await vi.waitFor(() => expect(receiver.received).toHaveLength(1), { timeout: 20_000 });
  const delivered = async () => {
    const [first] = await run<{ eventId: string; state: string }[]>('delivery', 'list', ...webhook);
    expect(first?.state).toBe('delivered');
    return ['--event', first?.eventId ?? ''];
  };
  const event = await vi.waitFor(delivered, { timeout: 20_000 });
  await run('delivery', 'show', ...webhook, ...event);
  await run('ledger');
  await run('webhook', 'list', ...org);
  await run('webhook', 'show', ...webhook);
  await run('webhook', 'test', ...webhook);
  await run('webhook', 'rotate', ...webhook);
  await run('webhook', 'pause', ...webhook);
  await run('webhook', 'resume', ...webhook);
  await run('webhook', 'detach', ...webhook);
  await run('delivery', 'redeliver', ...webhook, ...event);
  await run('webhook', 'delete', ...webhook);
  const key = await make.apiKey({ creator: owner });
  await run('key', 'revoke', '--key', key.id);
  await expect(goldenText(printed)).toMatchFileSnapshot('orgctl.json');
});
