import { Agent, get } from 'node:http';

/** `fetch` would use a proxy of the environment (`NODE_USE_ENV_PROXY`). */
const agent = new Agent({ keepAlive: false });

/**
 * Reads an address of this machine without a proxy.
 *
 * @throws Error when there is no response within `timeoutMs`.
 */
export function getDirectly(url: string, timeoutMs: number): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent, signal: AbortSignal.timeout(timeoutMs) }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      response.on('error', reject);
    });
    request.on('error', reject);
  });
}
