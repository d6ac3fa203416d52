import { type Agent, type IncomingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';

/** An answer that was received completely. */
export interface Exchanged {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

/**
 * Makes one HTTP exchange that `fetch` hides or forbids: an agent of the test, a path sent as
 * written, a connection that is cut.
 *
 * @throws the socket's error when the answer does not arrive completely.
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
      (answer) => {
        let body = '';
        answer.setEncoding('utf8');
        answer.on('data', (part: string) => {
          body += part;
        });
        answer.on('end', () => {
          if (answer.complete) resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body });
        });
        answer.on('error', reject);
        answer.on('aborted', () => reject(new Error('the answer was cut off')));
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
