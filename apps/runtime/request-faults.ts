import { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** What makes a request invalid as HTTP (RFC 9110 and 9112), with the status of its response. */
export interface RequestFault {
  status: 400 | 408 | 417 | 431;
  message: string;
}

const malformed: RequestFault = { status: 400, message: 'The request is not well-formed HTTP.' };

const faultsOfParser: Readonly<Record<string, RequestFault>> = {
  HPE_HEADER_OVERFLOW: { status: 431, message: 'The request’s headers are too large.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'The request was not sent in time.' },
};

/** The faults of requests that the parser gave up, which have no other content. */
const parserFaults = new WeakMap<IncomingMessage, RequestFault>();

/** Returns a request for what the parser gave up on this connection, so that it gets a response. */
export function createFaultyRequest(socket: Socket, code: string | undefined): IncomingMessage {
  const request = new IncomingMessage(socket);
  Object.assign(request, { url: '/', httpVersion: '1.1', httpVersionMajor: 1, httpVersionMinor: 1 });
  parserFaults.set(request, faultsOfParser[code ?? ''] ?? malformed);
  return request;
}

/** A host and port (RFC 3986, section 3.2.2); may be empty. */
const hostForm = /^(?:\[[0-9a-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/i;

/**
 * Returns what is wrong with a request, or null: what the parser rejected, its host, an expectation
 * that is not known, or its target.
 */
export function findRequestFault(request: IncomingMessage): RequestFault | null {
  const found = parserFaults.get(request);
  if (found !== undefined) return found;
  const { httpVersion, url = '' } = request;
  const hosts = listHosts(request);
  const [host = null] = hosts;
  if (host === null && httpVersion === '1.1') return { status: 400, message: 'Send the header Host.' };
  if (hosts.length > 1) return { status: 400, message: 'Send the header Host once.' };
  if (host !== null && !hostForm.test(host)) return { status: 400, message: 'The header Host is not a host.' };
  // Node itself sends 100 where the client asks for it.
  const { expect = '100-continue' } = request.headers;
  if (httpVersion === '1.1' && expect.toLowerCase() !== '100-continue')
    return { status: 417, message: 'The header Expect can only be 100-continue.' };
  if (url !== '*' && !url.startsWith('/')) return { status: 400, message: 'The request’s target is not a path.' };
  return null;
}

/** Returns every `Host` as sent; Node keeps the first of them in `headers`. */
function listHosts({ rawHeaders }: IncomingMessage): string[] {
  const hosts: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.length === 4 && rawHeaders[at]?.toLowerCase() === 'host') hosts.push(rawHeaders[at + 1] ?? '');
  }
  return hosts;
}

/** `http://host/path?query`, as proxies are asked; a login before the host is not accepted. */
const absoluteForm = /^https?:\/\/[^/?#@\\]+([/?].*)?$/i;

/** Gives a request whose target is a whole URL the path of it (RFC 9112, section 3.2.2). */
export function useTargetPath(request: IncomingMessage): void {
  const found = absoluteForm.exec(request.url ?? '');
  if (found === null) return;
  const [, path = ''] = found;
  request.url = path.startsWith('/') ? path : `/${path}`;
}
