/**
 * Requests that two servers could read differently. Each has a second request inside, to a path that
 * answers 200. An app that answers it has read one request as two.
 */

/** The request inside: only its response is 200. */
const inner = 'GET /livez HTTP/1.1\r\nHost: inner\r\n\r\n';
const chunk = `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`;
const post = (head: string, body: string) => `POST /nowhere HTTP/1.1\r\nHost: outer\r\n${head}\r\n${body}`;
const get = (head: string, body = '') => `GET /nowhere HTTP/1.1\r\nHost: outer\r\n${head}\r\n${body}`;
const form = 'Content-Type: application/x-www-form-urlencoded\r\n';

/** Well-formed requests whose body looks like another request: one response each. */
export const wholeRequests: Readonly<Record<string, string>> = {
  'a body with a length': post(`Content-Length: ${inner.length}\r\n`, inner),
  'a form with a length': post(`${form}Content-Length: ${inner.length}\r\n`, inner),
  'a body of chunks': post('Transfer-Encoding: chunked\r\n', chunk),
  'a body of chunks, in capitals': post('TRANSFER-ENCODING: Chunked\r\n', chunk),
  'a GET with a body': get(`Content-Length: ${inner.length}\r\n`, inner),
  'a GET with chunks': get('Transfer-Encoding: chunked\r\n', chunk),
  'chunks with an extension': post('Transfer-Encoding: chunked\r\n', chunk.replace('\r\n', ';a="b"\r\n')),
  'chunks with a trailer': post('Transfer-Encoding: chunked\r\n', chunk.replace(/\r\n$/, 'Host: other\r\n\r\n')),
  'HTTP/1.0 with a length': post(`Content-Length: ${inner.length}\r\n`, inner).replace('HTTP/1.1', 'HTTP/1.0'),
};

/** Lengths that are not a plain number. */
const lengths = [
  '+5',
  '-1',
  '0x25',
  '5 5',
  '5,5',
  '5, 6',
  '',
  'five',
  '5.0',
  '1e1',
  '99999999999999999999999',
  '\v5',
  '5\0',
];
/** Codings that are not exactly "chunked". */
const codings = [
  'chunked-x',
  'chunked, identity',
  'identity, chunked, x',
  '"chunked"',
  'chunked;q=1',
  '\vchunked',
  'chunked\0',
  'gzip',
];
/** First lines of a chunk that are not a plain hexadecimal number. */
const sizes = ['0x25', '+25', '-1', '', ' 25', '25 x', 'g', 'FFFFFFFFFFFFFFFFFF', '25\n'];

/**
 * Requests without one meaning, or with one that servers disagree about: at most one response, then
 * the connection ends.
 */
export const ambiguousRequests: Readonly<Record<string, string>> = {
  'a length and chunks': post('Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', `0\r\n\r\n${inner}`),
  'chunks and a length': post(`Transfer-Encoding: chunked\r\nContent-Length: ${chunk.length}\r\n`, chunk),
  'two different lengths': post(`Content-Length: 0\r\nContent-Length: ${inner.length}\r\n`, inner),
  'two equal lengths': post(`Content-Length: ${inner.length}\r\nContent-Length: ${inner.length}\r\n`, inner),
  'two codings': post('Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n', chunk),
  'a coding with a space before the colon': post('Transfer-Encoding : chunked\r\n', chunk),
  'a length with a space before the colon': post(`Content-Length : ${inner.length}\r\n`, inner),
  'a folded header': post('X: a\r\n Transfer-Encoding: chunked\r\n', chunk),
  'a folded coding': post('Transfer-Encoding:\r\n chunked\r\n', chunk),
  'a coding behind a bare LF': post('X: a\nTransfer-Encoding: chunked\r\n', chunk),
  'a coding behind a bare CR': post('X: a\rTransfer-Encoding: chunked\r\n', chunk),
  'a length with underscores': post('Content_Length : 0\r\n', inner),
  'bare LFs': post(`Content-Length: ${inner.length}\r\n`, inner).replaceAll('\r\n', '\n'),
  'bare CRs': get('X: a\r\n').replaceAll('\r\n', '\r'),
  'HTTP/1.0 with chunks': post('Transfer-Encoding: chunked\r\n', chunk).replace('HTTP/1.1', 'HTTP/1.0'),
  'HTTP/0.9': 'GET /nowhere\r\n',
  'HTTP/2 in plain text': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'another version': get('').replace('HTTP/1.1', 'HTTP/9.1'),
  'no colon': get('Host\r\n'),
  'an empty name': get(': x\r\n'),
  'a NUL in a value': get('X: a\0b\r\n'),
  'a NUL in the path': get('').replace('/nowhere', '/no\0where'),
  'a space in the path': get('').replace('/nowhere', '/no where'),
  'no name before the version': 'GET  HTTP/1.1\r\nHost: outer\r\n\r\n',
  'a TLS greeting': `\x16\x03\x01\x02\x00\x01${inner}`,
  'chunk data without an end': post('Transfer-Encoding: chunked\r\n', chunk.replace(`${inner}\r\n0`, `${inner}0`)),
  'chunk data that is longer than its size': post('Transfer-Encoding: chunked\r\n', `1\r\n${inner}\r\n0\r\n\r\n`),
  'a chunk extension of 100 KB': post('Transfer-Encoding: chunked\r\n', `1;${'x'.repeat(100_000)}\r\na\r\n0\r\n\r\n`),
  'a header of 20 KB': get(`X: ${'x'.repeat(20_000)}\r\n`),
  'a path of 20 KB': get('').replace('/nowhere', `/${'x'.repeat(20_000)}`),
  '5,000 headers': get('X: y\r\n'.repeat(5_000)),
  'no host': get('').replace('Host: outer\r\n', ''),
  'two hosts': get('Host: other\r\n'),
  CONNECT: 'CONNECT inner:443 HTTP/1.1\r\nHost: outer\r\n\r\n',
  'an unknown expectation': post('Expect: much\r\nContent-Length: 0\r\n', ''),
  ...Object.fromEntries(
    lengths.map((length) => [`the length ${JSON.stringify(length)}`, post(`Content-Length: ${length}\r\n`, inner)]),
  ),
  ...Object.fromEntries(
    codings.map((coding) => [`the coding ${JSON.stringify(coding)}`, post(`Transfer-Encoding: ${coding}\r\n`, chunk)]),
  ),
  ...Object.fromEntries(
    sizes.map((size) => [
      `the chunk size ${JSON.stringify(size)}`,
      post('Transfer-Encoding: chunked\r\n', `${size}\r\n${inner}\r\n0\r\n\r\n`),
    ]),
  ),
};

/** Requests that try to leave HTTP/1.1 or the server's own paths: one response each, never 200. */
export const otherForms: Readonly<Record<string, string>> = {
  'another host in the path': get('').replace('/nowhere', 'http://other.example/nowhere'),
  'an asterisk': get('').replace('/nowhere', '*'),
  'an upgrade to WebSocket': get('Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'),
  'an upgrade to HTTP/2': get('Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n'),
  TRACE: get('').replace('GET', 'TRACE'),
  'an unknown method': get('').replace('GET', 'PROPFIND'),
};
