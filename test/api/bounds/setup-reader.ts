import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import { fingerprints } from '#domain/keys/key.ts';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { openTracing, type Tracing } from '#runtime/tracing.ts';
import { TrackedResponse } from '#runtime/tracked-response.ts';
import type { MadeKey } from '#test/make.ts';
import { testKeySecrets } from '#test/secrets.ts';
import { setupDatabase } from '#test/setup.ts';
import type { Encoding } from '../../../apps/api/accept-encoding.ts';
import { BodyReader } from '../../../apps/api/body-reader.ts';
import { endpoints } from '../../../apps/api/endpoints.ts';
import { giveGrants } from './readers.ts';

const getFirmRoster = endpoints.find(({ operationId }) => operationId === 'getFirmRoster') ?? expect.fail();

export const newResponse = () => new TrackedResponse(new IncomingMessage(new Socket()));

/**
 * Creates a reader of bodies, with an organization of 1,000 grants and so many keys for each of
 * `keyCounts`. Encodings begin only when `release` is called. A response ends when the test ends it, and
 * a read waits for a minute, so that a slow machine changes no count.
 */
export async function setupReader(keyCounts: readonly number[], databasePoolMax = 40) {
  const { database, owner, make } = await setupDatabase();
  const api = await openDatabase({
    server: parsePostgresUrl(database.urls.api),
    applicationName: 'bodies',
    poolMax: databasePoolMax,
    connectTimeoutMs: 20_000,
    statementTimeoutMs: 60_000,
  });
  onTestFinished(() => api.close());
  const keys: MadeKey[] = [];
  for (const count of keyCounts) {
    const creator = await make.member();
    await giveGrants(owner, creator, 1_000);
    for (let n = 0; n < count; n += 1) keys.push(await make.apiKey({ creator }));
  }
  const released = Promise.withResolvers<void>();
  const encoders = { running: 0, most: 0, all: 0 };
  const span = async <T>(name: string, run: () => Promise<T>): Promise<T> => {
    if (name !== 'encoding') return run();
    encoders.all += 1;
    encoders.running += 1;
    encoders.most = Math.max(encoders.most, encoders.running);
    await released.promise;
    return run().finally(() => {
      encoders.running -= 1;
    });
  };
  const tracing: Tracing = { ...(await openTracing({ otlpEndpoint: null, app: 'test', region: 'us' })), span };
  const bodyReader = new BodyReader({ pool: api.pool, tracing, memoryMiB: 512, databasePoolMax, readWaitMs: 5_000 });
  const read = (
    { key, orgId }: MadeKey,
    response = newResponse(),
    encoding: Encoding | null = 'br',
    endpoint = getFirmRoster,
  ) =>
    bodyReader.read({
      endpoint,
      fingerprints: fingerprints(key, testKeySecrets.peppers),
      organizationId: orgId,
      address: null,
      response,
      encoding,
      deadlineMs: performance.now() + 60_000,
    });
  return { owner, make, keys, read, bodyReader, encoders, release: released.resolve };
}
