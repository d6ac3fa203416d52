import { it } from 'vitest';
import { type ApiServer, startApiServer } from '#test/api-server.ts';

// biome-ignore lint/correctness/noEmptyPattern: Vitest reads there which other fixtures it needs
const withApiServer = it.extend('apiServer', { scope: 'worker' }, async ({}, { onCleanup }) => {
  const server = await startApiServer();
  onCleanup(server.stop);
  return server;
});

/**
 * Shares one API server with all files of the process: each test creates a namespace of its own in it.
 * @returns a function that returns it in a test.
 */
export function shareApiServer(): () => ApiServer {
  let shared: ApiServer;
  withApiServer.beforeAll(({ apiServer }) => {
    shared = apiServer;
  });
  return () => shared;
}
