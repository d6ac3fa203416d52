/** A region where nothing changes: which requests the operator still sends to the API server. */
import { expect, it, vi } from 'vitest';
import { arrangeRegion, waiting } from '../arrange-region.ts';
import { shareApiServer } from '../share-api-server.ts';

const passes = 4;

const server = shareApiServer();

it('a Region that has converged causes only watches and relists, and a change of it one write of its status', {
  timeout: 400_000,
}, async () => {
  const t = await arrangeRegion(server());
  const operator = t.startOperator('one');
  await t.release();
  await vi.waitFor(async () => expect(await t.conditions()).toContain('Ready True AllConditionsHold'), waiting);
  const running = operator.lines.find((line) => line.includes('"the operator is running"')) ?? '{}';
  const { metricsUrl } = JSON.parse(running) as { metricsUrl: string };
  const countPasses = async () => {
    const page = await (await fetch(new URL('/metrics', metricsUrl))).text();
    return Number(/^org_api_operator_passes_total\{kind="Region"\} (\d+)$/m.exec(page)?.[1]);
  };
  /**
   * Waits for whole passes over the Region. Returns their requests; the Lease is renewed beside
   * them.
   */
  const runPasses = async (count: number): Promise<string[]> => {
    const before = t.installed.listRequests().length;
    const from = await countPasses();
    // One more, because a pass counts when it begins.
    await vi.waitFor(async () => expect(await countPasses()).toBeGreaterThan(from + count), waiting);
    const requests = t.installed.listRequests().slice(before);
    return requests.map(({ request }) => request).filter((one) => !one.endsWith(' leases'));
  };
  // The last step may be younger than the last pass.
  await vi.waitFor(async () => expect(await runPasses(1)).not.toContain('patch regions/status'), waiting);

  const requested = await runPasses(passes);
  process.stdout.write(
    `${passes} passes over a converged Region: ${requested.length} requests (${requested.join(', ')})\n`,
  );
  // Every five minutes it lists Regions and reads the Secret again; neither may happen with each
  // pass.
  expect(requested.filter((request) => !['watch regions', 'list regions', 'get secrets'].includes(request))).toEqual(
    [],
  );
  expect(requested.filter((request) => !request.startsWith('watch')).length).toBeLessThan(passes);

  await t.owner.pool.query(`update webhook set state = 'suspended', suspended_reason = 'failures'`);
  const afterChange = await runPasses(2);
  expect(afterChange.filter((request) => request === 'patch regions/status')).toHaveLength(1);
  expect((await t.read()).status?.suspendedWebhooks).toBe(1);
});
