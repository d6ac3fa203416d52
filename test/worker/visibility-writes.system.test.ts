import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { startTestWorker, testNamespace } from '#test/worker.ts';
import { getFreePort } from '../../apps/dev/servers/ports.ts';
import { startTemporal } from '../../apps/dev/servers/temporal.ts';

const deliveries = 20;
/** Longer than the 50 ms after which the server reads a start by default. */
const answerMs = 100;
const patient = { timeout: 30_000, interval: 10 };

/** The server accepts unknown settings without an error, so the test counts its writes. */
it('most deliveries that succeed at once are written to Temporal’s visibility store only when they end', {
  timeout: 120_000,
}, async () => {
  const temporal = await openTemporalWithMetrics();
  const { database, make } = await setupDatabase();
  const receiver = await startReceiver();
  receiver.answer = (response) => void setTimeout(() => response.writeHead(200).end(), answerMs);
  const professional = await make.member();
  await make.webhook({ orgId: professional.orgId, url: receiver.url });
  await startTestWorker(database, { TEMPORAL_ADDRESS: temporal.address });

  for (let count = 1; count <= deliveries; count += 1) {
    await make.grant({ professional });
    await vi.waitFor(() => expect(receiver.received).toHaveLength(count), patient);
  }

  await vi.waitFor(
    async () => expect(await temporal.countWrites('Closed')).toBeGreaterThanOrEqual(deliveries),
    patient,
  );
  expect(await temporal.countWrites('Started')).toBeLessThan(deliveries * 0.75);
});

async function openTemporalWithMetrics() {
  const stateFolder = mkdtempSync(path.join(tmpdir(), 'org-api-temporal-'));
  chmodSync(stateFolder, 0o711);
  onTestFinished(() => rmSync(stateFolder, { recursive: true, force: true }));
  const namespace = testNamespace();
  const metricsPort = await getFreePort();
  const options = { stateFolder, namespaces: [namespace], metricsPort, inMemory: true, report: () => {} };
  const { address, stop } = await startTemporal(options);
  onTestFinished(stop);
  return {
    address,
    async countWrites(what: 'Started' | 'Closed'): Promise<number> {
      const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
      const operation = `operation="RecordWorkflowExecution${what}"`;
      const lines = text.split('\n').filter((line) => line.startsWith('visibility_persistence_requests{'));
      const counts = lines.filter((line) => line.includes(operation)).map((line) => Number(line.split(' ').at(-1)));
      return counts.reduce((sum, count) => sum + count, 0);
    },
  };
}
