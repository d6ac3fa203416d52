import { Agent, get } from 'node:http';

/** One kept connection, so that handshakes are not measured. */
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

export interface Visited {
  status: number;
  /** From the request to the first byte of the body. */
  firstByteMs: number;
  bytes: number;
}

/** Requests a page and reads it; with `firstByteOnly` it closes the connection after that byte. */
export function visit(
  url: string,
  cookie: string,
  options: { firstByteOnly?: boolean; onBytes?: (bytes: number) => void } = {},
): Promise<Visited> {
  return new Promise((resolve, reject) => {
    const startedAt = performance.now();
    const request = get(url, { agent, headers: { cookie } }, (response) => {
      let firstByteMs = 0;
      let bytes = 0;
      const done = () => resolve({ status: response.statusCode ?? 0, firstByteMs, bytes });
      response.on('data', (chunk: Buffer) => {
        if (bytes === 0) firstByteMs = performance.now() - startedAt;
        bytes += chunk.length;
        options.onBytes?.(bytes);
        if (!options.firstByteOnly) return;
        done();
        request.destroy();
      });
      response.on('end', done);
      response.on('error', () => {});
    });
    request.on('error', reject);
  });
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export const endVisits = (): void => agent.destroy();
