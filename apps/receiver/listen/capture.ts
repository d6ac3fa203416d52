import type { CapturedHeaders } from '#domain/webhooks/verification/captured-headers.ts';

/** A captured request: the parts that are signed, byte for byte. */
interface Capture {
  headers: CapturedHeaders;
  body: Buffer;
}

/**
 * Reads a captured request: the request as it was sent (with or without a request line, headers, an
 * empty line, the body), or JSON `{headers, body}`.
 *
 * A body in JSON is a string, so that form only works for UTF-8. Returns null for any other file.
 */
export function readCapture(file: Buffer): Capture | null {
  return readJson(file) ?? readMessage(file);
}

function readJson(file: Buffer): Capture | null {
  try {
    const value: unknown = JSON.parse(file.toString('utf8'));
    if (typeof value !== 'object' || value === null || !('headers' in value) || !('body' in value)) return null;
    if (typeof value.headers !== 'object' || typeof value.body !== 'string') return null;
    return { headers: value.headers as CapturedHeaders, body: Buffer.from(value.body) };
  } catch {
    return null;
  }
}

function readMessage(file: Buffer): Capture | null {
  const [head, body] = splitAtEmptyLine(file);
  if (head === null) return null;
  const headers: Record<string, string[]> = {};
  for (const line of head.split(/\r?\n/)) {
    const [, name, value = ''] = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? [];
    if (name === undefined) {
      if (/^[A-Z]+ \S+( HTTP\/[\d.]+)?$/.test(line)) continue; // the request line
      return null;
    }
    headers[name.toLowerCase()] = [...(headers[name.toLowerCase()] ?? []), value];
  }
  return { headers, body };
}

function splitAtEmptyLine(file: Buffer): [string, Buffer] | [null, Buffer] {
  for (const end of ['\r\n\r\n', '\n\n']) {
    const at = file.indexOf(end);
    const isFirst = at >= 0 && (end === '\r\n\r\n' || !file.subarray(0, at).includes('\r\n\r\n'));
    if (isFirst) return [file.subarray(0, at).toString('latin1'), file.subarray(at + end.length)];
  }
  return [null, file];
}

/**
 * Writes a request in the form in which it was sent. `rawHeaders` is Node's list, names and values
 * in turn.
 */
export function writeCapture(request: { path: string; rawHeaders: readonly string[]; body: Buffer }): Buffer {
  const { path, rawHeaders, body } = request;
  const lines = [`POST ${path} HTTP/1.1`];
  for (let index = 0; index < rawHeaders.length; index += 2)
    lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`);
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), body]);
}
