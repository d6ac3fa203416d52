/** Reads what a server sent on one connection, answer by answer. */
import { connect } from 'node:net';

export interface RawResponse {
  status: number;
  headers: Headers;
  body: string;
}

/**
 * Sends bytes, and reads what the server answers to all of them. It closes by itself, or the client
 * does when the server has read everything: a server answers in the order in which bytes arrive, so
 * it has when two later requests on other connections are answered.
 */
export function sendBytes(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    const socket = connect(Number(port), hostname, () => {
      socket.write(bytes, 'latin1', () => void waitForOthers(url).then(() => socket.end(), reject));
    });
    socket.on('data', (part: Buffer) => void parts.push(part));
    socket.on('error', () => {}); // the server may close while bytes are under way
    socket.on('close', () => resolve(Buffer.concat(parts).toString('utf8')));
  });
}

async function waitForOthers(url: string): Promise<void> {
  for (const path of ['/livez', '/nowhere']) await (await fetch(url + path)).text();
}

/** @throws when the bytes are not whole responses one behind the other. */
export function readResponses(received: string): RawResponse[] {
  const responses: RawResponse[] = [];
  let rest = Buffer.from(received);
  while (rest.length > 0) {
    const end = rest.indexOf('\r\n\r\n');
    const [line = '', ...lines] = rest.subarray(0, end).toString().split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1]);
    if (end < 0 || !status) throw new Error(`no response begins here: ${rest.subarray(0, 200)}`);
    rest = rest.subarray(end + 4);
    if (status === 100) continue;
    const headers = new Headers(lines.map((each) => each.split(/: ?(.*)/s).slice(0, 2) as [string, string]));
    const { body, length } = readBody(rest, headers);
    responses.push({ status, headers, body });
    rest = rest.subarray(length);
  }
  return responses;
}

function readBody(rest: Buffer, headers: Headers): { body: string; length: number } {
  if (headers.get('transfer-encoding') !== 'chunked') {
    const length = Number(headers.get('content-length') ?? 0);
    if (rest.length < length) throw new Error('the response is cut off');
    return { body: rest.subarray(0, length).toString(), length };
  }
  let [body, at] = ['', 0];
  for (;;) {
    const line = rest.indexOf('\r\n', at);
    const size = Number.parseInt(rest.subarray(at, line).toString(), 16);
    if (line < 0 || Number.isNaN(size)) throw new Error('the response is cut off');
    body += rest.subarray(line + 2, line + 2 + size).toString();
    at = line + 2 + size + 2;
    if (size === 0) return { body, length: at };
  }
}
