import { type Agent, type IncomingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';

/** A response that was received completely. */
export interface Exchanged {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

/**
 * Makes one HTTP exchange that `fetch` hides or forbids: an agent of the test, a path sent as
 * written, a connection that is cut.
 *
 * @throws the socket's error when the response does not arrive completely.
 */
export function exchange(
  url: string,
  options: { method?: string; headers?: Record<string, string>; agent?: Agent } = {},
): Promise<Exchanged> {
  const { origin } = new URL(url);
  return new Promise((resolve, reject) => {
    const sent = request(
      origin,
      {
        path: url.slice(origin.length),
        method: options.method ?? 'GET',
        headers: options.headers ?? {},
        ...(options.agent === undefined ? {} : { agent: options.agent }),
      },
      (response) => {
        let body = '';
        response.setEncoding('utf8');
        response.on('data', (part: string) => {
          body += part;
        });
        response.on('end', () => {
          if (response.complete) resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
        });
        response.on('error', reject);
        response.on('aborted', () => reject(new Error('the response was cut off')));
      },
    );
    sent.on('error', reject);
    sent.end();
  });
}

/** Sends bytes as they are and reads until the server closes. */
export function sendRaw(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    let received = '';
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    socket.setEncoding('utf8');
    socket.on('data', (part: string) => {
      received += part;
    });
    socket.on('close', () => resolve(received));
    socket.on('error', reject);
  });
}
