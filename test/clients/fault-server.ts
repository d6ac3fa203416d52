/** An HTTP server that answers as servers and proxies do, and as the API never does. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { listenLocally } from '#test/listen-locally.ts';

export interface Reply {
  status: number;
  headers?: Record<string, string>;
  body?: string;
  /** Sends the head and a space, then no more. `headers`: a header line without an end. */
  stall?: 'headers' | 'body';
  /** Closes the connection in the middle of the body. */
  isCut?: boolean;
}

/** Replies to one request after the other, the last one to all later ones. Ends with the test. */
export async function startFaultServer(replies: readonly Reply[]) {
  const requests: { path: string; headers: IncomingHttpHeaders }[] = [];
  const server = createServer((request, response) => {
    requests.push({ path: request.url ?? '', headers: request.headers });
    const reply = replies[Math.min(requests.length, replies.length) - 1] ?? { status: 500 };
    const { status, headers = {}, body = '', stall, isCut } = reply;
    if (stall === 'headers') return void request.socket.write(`HTTP/1.1 ${status} OK\r\nSlow: `);
    response.writeHead(status, isCut || stall ? { ...headers, 'Content-Length': '1000' } : headers);
    if (isCut) return void response.write(' ', () => request.socket.destroy());
    if (stall === 'body') return void response.write(' ');
    response.end(body);
  });
  const port = await listenLocally(server);
  const countConnections = () =>
    new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)));
  return { url: `http://127.0.0.1:${port}`, requests, countConnections };
}
