import { Client, Connection } from '@temporalio/client';
import { inject, onTestFinished } from 'vitest';
import { testNamespace } from './worker.ts';

/** A client of this test process's namespace, closed when the test ends. */
export async function openTestTemporal(): Promise<Client> {
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  onTestFinished(() => connection.close());
  return new Client({ connection, namespace: testNamespace() });
}
