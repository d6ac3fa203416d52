/** The development server's download: only the expected file is used. */
import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { expect, it } from 'vitest';
import { listenLocally } from '#test/listen-locally.ts';
import { fetchVerified, temporalArchives } from '../../apps/dev/servers/temporal-program.ts';

const archive = randomBytes(10_000);
const sha256 = createHash('sha256').update(archive).digest('hex');

async function serve(bytes: Buffer, status = 200): Promise<string> {
  const port = await listenLocally(createServer((_request, response) => response.writeHead(status).end(bytes)));
  return `http://127.0.0.1:${port}/archive.tar.gz`;
}

it('a download with the pinned SHA-256 is used', async () => {
  expect(await fetchVerified(await serve(archive), sha256, () => {})).toEqual(archive);
});

it('a download that differs in one bit is rejected with the reason', async () => {
  const changed = Buffer.from(archive);
  changed[9_999] = (changed[9_999] ?? 0) ^ 1;
  const lines: string[] = [];
  expect(await fetchVerified(await serve(changed), sha256, (line) => lines.push(line))).toBeNull();
  expect(lines).toEqual([expect.stringMatching(/cannot be used \(its SHA-256/)]);
});

it('an error page with the right bytes is rejected', async () => {
  const lines: string[] = [];
  expect(await fetchVerified(await serve(archive, 404), sha256, (line) => lines.push(line))).toBeNull();
  expect(lines).toEqual([expect.stringMatching(/cannot be used \(HTTP status 404\)/)]);
});

it('each supported platform has its own digest', () => {
  expect(Object.keys(temporalArchives).sort()).toEqual(['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64']);
  const digests = Object.values(temporalArchives).map((one) => one.sha256);
  expect(new Set(digests).size).toBe(4);
  for (const digest of digests) expect(digest).toMatch(/^[0-9a-f]{64}$/);
});
